"""Questions about an earlier moment: `--until` in files, changes and outputs, and the forms of a time."""

from __future__ import annotations

import json
from datetime import datetime, timezone
from typing import Any

import pytest
from click.testing import CliRunner, Result

from cli.main import main
from controller.contract.outputs import encode_row
from controller.contract.records import encode_record
from controller.restore.stored_context import new_context
from controller.step import steps
from questions.moments import moment_ms
from tests.recorded_moment import MOMENT_MS, history
from transport.journal import JournalWriter

BROKER_LEFT = "2026-11-22T18:44:10Z"  # some moments before the end of the recording
NOW = datetime(2026, 11, 26, 13, 0, tzinfo=timezone.utc)


@pytest.fixture(scope="module")
def sources(recorded_files, tmp_path_factory) -> dict[str, list[str]]:
    """Write the recorded cluster as `kontrast watch` and `kontrast stream` do."""
    directory = tmp_path_factory.mktemp("until")
    records = list(history(recorded_files, "shop").records())
    with JournalWriter(directory / "changes") as journal:
        journal.append([encode_record(record) for record in records])
    rows = steps(new_context("shop", chunk_count=8), records).effects
    for output in ("metadata", "alerts", "gauges", "transitions"):
        with JournalWriter(directory / "outputs" / output) as journal:
            journal.append([encode_row(row) for row in rows if row.output == output])
    return {
        "files": ["--zk-data", str(recorded_files)],
        "changes": ["--from", f"journal:{directory / 'changes'}"],
        "outputs": ["--from", f"journal:{directory / 'outputs'}"],
    }


def ask(*words: object) -> Result:
    return CliRunner().invoke(main, [*map(str, words), "--cluster", "shop"])


def answer(*words: object) -> tuple[int, Any]:
    done = ask(*words, "--json")
    return done.exit_code, json.loads(done.stdout)


def test_who_was_controller_is_one_command(sources):
    for source in sources.values():
        _, then = answer("explain", "controller", *source, "--until", "2026-11-22T18:43:40Z")
        _, last = answer("explain", "controller", *source, "--until", MOMENT_MS)
        assert then["headline"] != last["headline"]
        assert "broker" in then["headline"]


@pytest.mark.parametrize(
    ("until", "says"),
    [("2001-01-01", "begins after that moment, at 2026-11-22"), ("0x10", "Give a time in place of a zxid")],
)
def test_outputs_refuse_a_moment_that_they_do_not_keep(sources, until, says):
    done = ask("check", *sources["outputs"], "--until", until)
    assert (done.exit_code, says in done.stderr) == (2, True), done.stderr


@pytest.mark.parametrize(
    ("text", "meant"),
    [
        ("12:59", "2026-11-26T12:59:00"),
        ("14:03", "2026-11-25T14:03:00"),
        ("today 14:03:30", "2026-11-26T14:03:30"),
        ("yesterday 22:00", "2026-11-25T22:00:00"),
        ("-15m", "2026-11-26T12:45:00"),
        ("-2d", "2026-11-24T13:00:00"),
        ("2026-11-20T08:00:00+02:00", "2026-11-20T06:00:00"),
        ("2026-11-20", "2026-11-20T00:00:00"),
    ],
)
def test_a_time_is_written_as_people_write_it(text, meant):
    assert moment_ms(text, NOW) == round(datetime.fromisoformat(f"{meant}+00:00").timestamp() * 1000)


def test_a_local_time_has_the_zone_of_the_machine(monkeypatch):
    here = datetime(2026, 11, 26, 10, 30).astimezone()
    assert moment_ms("2026-11-26T10:30 local", NOW) == round(here.timestamp() * 1000)
