"""`kontrast explain` of data that is too old, which says nothing about the present."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest
from click.testing import CliRunner

from cli.main import main
from cli.sources.options import Chosen
from controller.restore.stored_context import new_context
from ingest.files.data_directory import Until
from ingest.files.history import FileHistory
from questions.gathering import Gathering
from questions.picture import Picture, Present
from tests.recorded_moment import MOMENT_MS

_WELL_MS = MOMENT_MS - 84_000
_STALE_AFTER_MS = 30_000


@pytest.fixture(scope="module")
def well(recorded_files: Path) -> Picture:
    gathering = Gathering(new_context("shop"))
    gathering.take(list(FileHistory((recorded_files,), "shop", chroot="/", until=Until(time_ms=_WELL_MS)).records()))
    return gathering.picture()


@pytest.mark.parametrize(("age_ms", "code"), [(1_000, 0), (600_000, 3)])
@pytest.mark.parametrize("question", ["t1-0", "t1", "broker 2", "controller", "t1 --key a"])
def test_old_data_does_not_end_with_0(monkeypatch, well, question, age_ms, code):
    shown = msgspec.structs.replace(well, present=Present(well.as_of_ms + age_ms, _STALE_AFTER_MS))

    class Source:
        is_live = True
        has_past = True

        def picture(self, *_: object) -> Picture:
            return shown

    monkeypatch.setattr(Chosen, "source", lambda *_, **__: Source())
    done = CliRunner().invoke(main, ["explain", *question.split(), "--zookeeper", "zk:1"])
    assert done.exit_code == code, done.output
