"""The command line names groups and teams from the file that serve keeps."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from cli.main import main
from dashboards.probe.kept_groups import keep_groups
from questions.clients.known_groups import Group, KnownGroups
from tests.recorded_moment import MOMENT_MS

ASKED_MS = MOMENT_MS - 240_000
TEAMS = '[topics]\n"t3" = { team = "ledger", contact = "#ledger" }\n"pay*" = { team = "payments", rank = 1 }\n'


def reading(name: str, topic: str, *numbers: int) -> Group:
    return Group(name, "Stable", ASKED_MS, True, {topic: dict.fromkeys(numbers, ASKED_MS)}, (topic,))


KNOWN = KnownGroups(
    ASKED_MS, {each.group: each for each in (reading("pay-3", "t3", 0, 1), reading("other", "t1", 0, 1, 2))}
)


@pytest.fixture
def ask(recorded_files: Path, tmp_path: Path) -> Callable[..., Result]:
    """Return a function that asks about a recorded cluster under this configuration."""

    def asked(question: str, probe: str) -> Result:
        file = tmp_path / "kontrast.toml"
        file.write_text(f"{TEAMS}{probe}")
        files = ["--zk-data", str(recorded_files), "--until", str(MOMENT_MS), "--cluster", "shop"]
        return CliRunner().invoke(main, [*question.split(), *files, "--config", str(file)])

    return asked


@pytest.fixture
def kept(tmp_path: Path) -> str:
    """Return the settings of a probe whose answers are kept."""
    keep_groups(tmp_path / "groups", "shop", KNOWN)
    return f'[serve.probe]\ngroups = true\ngroups_directory = "{tmp_path / "groups"}"\n'


def test_explain_names_the_owner_and_the_readers_of_a_topic(ask, kept):
    said = " ".join(ask("explain t3", kept).stdout.split())
    assert "team ledger (#ledger)" in said
    assert "read by 1 group of team payments (pay-3), as brokers answered 4 min ago" in said


def test_explain_group_shows_what_it_cannot_read(ask, kept):
    done = ask("explain group pay-3 --json", kept)
    found = json.loads(done.stdout)
    assert done.exit_code == 1
    assert found["headline"].startswith("cannot read t3-0")
    statements = {each["about"]: each["says"] for each in found["statements"]}
    assert statements["state"] == "Stable, with members, as brokers answered 4 min ago"
    assert statements["team"] == "payments"


def test_an_unknown_group_is_refused_with_a_similar_name(ask, kept):
    done = ask("explain group pay-4", kept)
    assert done.exit_code == 2
    assert "there is no group pay-4 in cluster shop. Did you mean pay-3?" in done.stderr


def test_whatif_names_the_groups_that_a_loss_stops(ask, kept):
    done = ask("whatif --lose-broker 2 --lose-broker 3 --lose-broker 4", kept)
    groups = "1 group of team payments (pay-3) and 1 group (other)"
    assert f"stops {groups}, as brokers answered 4 min ago" in " ".join(done.stdout.split())
    impacts = json.loads(ask("whatif --lose-broker 2 --lose-broker 3 --lose-broker 4 --json", kept).stdout)["impacts"]
    assert [hit["name"] for hit in impacts[0]["groups"]] == ["pay-3", "other"]


def test_restartable_names_the_groups_that_a_restart_stops(ask, kept):
    said = " ".join(ask("restartable --broker 3", kept).stdout.split())
    groups = "1 group of team payments (pay-3) and 1 group (other)"
    assert f"until broker 3 is back. This stops {groups}, as brokers answered 4 min ago" in said
    assert "pay-3: cannot read t3-1, t3-3 and t3-4 other: cannot read t1-5" in said


@pytest.mark.parametrize("question", ["whatif --lose-broker 3", "whatif --lose-broker 3 --json", "explain t3 --json"])
def test_without_answers_of_brokers_nothing_is_said_of_groups(question, ask, tmp_path):
    empty = f'[serve.probe]\ngroups = true\ngroups_directory = "{tmp_path / "none"}"\n'
    said = {ask(question, probe).stdout for probe in ("", empty)}
    assert len(said) == 1
    assert "group" not in said.pop().replace('"group":', "")
