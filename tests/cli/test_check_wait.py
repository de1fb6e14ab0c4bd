"""`kontrast check --wait` repeats until the cluster is well, or its time is over."""

from __future__ import annotations

from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from cli.main import main
from cli.sources import Source
from cli.sources.options import Chosen
from controller.restore.stored_context import new_context
from ingest.errors import IngestError
from ingest.files.data_directory import Until
from ingest.files.history import FileHistory
from questions.gathering import Gathering
from questions.picture import Picture
from questions.question import Scope
from tests.recorded_moment import MOMENT_MS

_WELL_MS = MOMENT_MS - 84_000


class Moments(Source):
    """A live source that shows these moments in turn, the last one again and again. An error among them is raised."""

    is_live = True
    has_past = False

    def __init__(self, *looks: Picture | IngestError) -> None:
        self._looks = list(looks)

    def picture(self, _scope: Scope, _stop: object) -> Picture:
        look = self._looks.pop(0) if len(self._looks) > 1 else self._looks[0]
        if isinstance(look, IngestError):
            raise look
        return look


@pytest.fixture(scope="module")
def at(recorded_files: Path):
    def picture(time_ms: int) -> Picture:
        gathering = Gathering(new_context("shop"))
        gathering.take(list(FileHistory((recorded_files,), "shop", chroot="/", until=Until(time_ms=time_ms)).records()))
        return gathering.picture()

    return picture


@pytest.fixture
def ask(monkeypatch):
    def asked(*looks: Picture | IngestError, patience: str = "1m") -> Result:
        source = Moments(*looks)
        monkeypatch.setattr(Chosen, "source", lambda *_, **__: source)
        return CliRunner().invoke(main, ["check", "--zookeeper", "zk:1", "--wait", patience, "--every", "0.5"])

    return asked


def test_it_returns_when_the_cluster_is_well_and_tells_each_reason_to_wait(ask, at):
    done = ask(IngestError("no answer"), at(MOMENT_MS), at(MOMENT_MS), at(_WELL_MS))
    assert done.exit_code == 0
    assert done.stdout.startswith("shop: well")
    reasons = done.stderr.splitlines()
    assert len(reasons) == 2
    assert reasons[0].endswith("asking again, because no answer")
    assert "shop: " in reasons[1]


def test_it_ends_with_the_last_answer_when_its_time_is_over(ask, at):
    done = ask(at(MOMENT_MS), patience="1s")
    assert done.exit_code == 1
    assert done.stdout.startswith("shop: clients affected")
