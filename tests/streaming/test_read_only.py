"""Outputs and a checkpoint that are or become read-only. The job ends with a sentence, and later loses no row."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from cli.embedded.process import ChildProcess
from tests.read_only import read_only, without_privileges
from tests.streaming.cluster_records import Streams, life_of
from tests.waiting import eventually
from transport.journal_reading import end_offset

pytestmark = [pytest.mark.nightly, pytest.mark.xdist_group("pipelines")]

Start = Callable[..., ChildProcess]


@pytest.fixture
def start(java: Path, streams: Streams, tmp_path: Path):
    started: list[ChildProcess] = []

    def start(*options: str) -> ChildProcess:
        command = without_privileges(
            *(sys.executable, "-m", "cli", "stream", "--from", f"journal:{streams.input}", "--master", "local[2]"),
            *("--to", f"journal:{streams.outputs}", "--checkpoint", streams.checkpoint, *options),
        )
        started.append(ChildProcess("kontrast stream", command, tmp_path / f"log-{len(started)}"))
        started[-1].launch()
        return started[-1]

    yield start
    for job in started:
        job.kill()


def assert_ended_by(job: ChildProcess, directory: Path) -> None:
    eventually(lambda: not job.running)
    said = job.log.read_text()
    assert job.exit_status == 3, said
    assert "Traceback" not in said
    assert said.splitlines()[-1].startswith("kontrast: "), said
    assert str(directory) in said.splitlines()[-1]
    assert "Permission denied" in said.splitlines()[-1]


def test_outputs_that_are_read_only_from_the_beginning_are_one_sentence(start: Start, streams: Streams) -> None:
    streams.append(life_of("east", topics=2).lines)
    streams.outputs.mkdir()
    with read_only(streams.outputs):
        assert_ended_by(start(), streams.outputs)
    assert list(streams.outputs.iterdir()) == []


def test_directories_that_become_read_only_end_the_job_and_lose_no_row(start: Start, streams: Streams) -> None:
    life = life_of("east", topics=10, losses=6)
    # All rows are kept, and half of the bytes fill a segment. So the second third needs a new segment.
    keep = f"--output-retain-bytes=metadata={2 * sum(map(len, life.rows()['metadata']))}"
    third = len(life.lines) // 3
    streams.append(life.lines[:third])
    for begin, closed in ((third, streams.outputs), (2 * third, streams.checkpoint)):
        rows = end_offset(streams.outputs / "gauges") if streams.outputs.exists() else 0
        streams.append(life.lines[begin : begin + 5])
        job = start(keep, "--max-batch-bytes=4096")
        eventually(lambda: streams.outputs.exists() and end_offset(streams.outputs / "gauges") > rows)  # noqa: B023
        with read_only(closed):
            streams.append(life.lines[begin + 5 : begin + third])
            assert_ended_by(job, closed)
    streams.append(life.lines[3 * third :])
    job = start("--available-now", keep)
    eventually(lambda: not job.running)
    assert job.exit_status == 0, job.log.read_text()
    assert streams.read_all() == life.rows()
