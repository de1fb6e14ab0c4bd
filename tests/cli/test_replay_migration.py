"""`kontrast replay` on a recorded migration to KRaft and back, with a line a phase, and its end."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from cli.main import main
from tests.conformance.recording import unpack
from tests.conformance.test_migration import PHASES
from tests.kept_texts import assert_as_before

ANSWER = Path(__file__).with_name("replay-migration.txt")
HEAD = "the way to KRaft, by phase:"


@pytest.fixture(scope="module")
def zk_data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return unpack("migration39", tmp_path_factory.mktemp("recording")).directory / "zk"


def replayed(zk_data: Path, *arguments: str) -> Result:
    result = CliRunner().invoke(main, ["replay", "--zk-data", str(zk_data), "--emit", "refused", *arguments])
    assert result.exit_code == 0, result.stderr
    return result


def told(result: Result) -> list[str]:
    """Return the lines on the migration, up to those on incidents."""
    lines = result.stdout.splitlines()
    end = next(at for at, line in enumerate(lines) if line.endswith("incidents:"))
    return lines[lines.index(HEAD) : end] if HEAD in lines else []


def test_a_line_a_phase_says_when_how_long_and_who_led(zk_data):
    assert_as_before("\n".join(told(replayed(zk_data))) + "\n", ANSWER)


def test_the_objects_are_the_phases_with_the_way_back_at_the_end_of_each(zk_data):
    rows = [json.loads(line) for line in replayed(zk_data, "--json").stdout.splitlines()]
    phases = [row for row in rows if row["kind"] == "migration_phase"]
    assert [(int(row["zxid"], 16), row["phase"]) for row in phases] == PHASES
    assert rows[-1]["kind"] == "agreement"
    for before, after in zip(phases, phases[1:], strict=False):
        assert before["time_ms"] + before["lasted_ms"] == after["time_ms"]
    last = phases[-1]
    assert (last["lasted_ms"], last["rollback"]) == (None, "done")
    silent = next(row for row in phases if row["phase"] == "silent")
    assert (silent["rollback"], silent["offset"]) == ("loses", 559)
    assert silent["led_by"] == "KRaft controller 3000, KRaft epoch 5, /controller_epoch 4"


def test_it_ends_where_the_replay_ends(zk_data):
    lines = told(replayed(zk_data, "--until", "0x3c0"))
    assert lines[-1].startswith("it ended in phase silent at offset 559; may I go back: only with the loss of")
    assert "goes on  silent" in lines[-2]


def test_before_a_quorum_came_nothing_is_said(zk_data):
    result = CliRunner().invoke(main, ["replay", "--zk-data", str(zk_data), "--emit", "refused", "--until", "0xc8"])
    assert result.exit_code == 0
    assert "KRaft" not in result.stdout


def test_the_timeline_has_each_phase_where_it_began(zk_data):
    asked = ["timeline", "--zk-data", str(zk_data), "--cluster", "c", "--controller", "--json"]
    result = CliRunner().invoke(main, asked)
    assert result.exit_code == 0, result.stderr
    answers = [json.loads(line) for line in result.stdout.splitlines()]
    events = [event for answer in answers for event in answer.get("events", [answer])]
    begins = "the way to KRaft, phase "
    phases = [(event["zxid"], event["says"]) for event in events if event.get("says", "").startswith(begins)]
    assert [(zxid, says.removeprefix(begins).partition(":")[0].replace(" ", "_")) for zxid, says in phases] == PHASES
    assert phases[1][1].endswith("KRaft controller 3001 leads, KRaft epoch 3")
    assert phases[0][1].endswith("brokers elect the controller")
