"""Failures of the job under spark-submit, as in the driver's pod of a cluster. None of them ends as success."""

from __future__ import annotations

import shutil
import signal
from pathlib import Path

import pytest

from tests.streaming.cluster_records import Streams, life_of
from tests.streaming.standalone_cluster import DEFECT, Submitted

pytestmark = [pytest.mark.deploy, pytest.mark.xdist_group("spark-submit")]

_DEADLINE_SECONDS = 240


class _Jobs:
    def __init__(self, directory: Path, streams: Streams) -> None:
        self._submitted = Submitted(directory, streams)

    def code_of(self, *options: str, before: str = "") -> int:
        """Return the exit code of spark-submit for a job with these options, and a defect in its program."""
        program = self._submitted.program
        text = program.read_text()
        program.write_text(before + text)
        try:
            return self._submitted.start("local[1]", "--available-now", *options).wait(_DEADLINE_SECONDS)
        finally:
            program.write_text(text)

    @property
    def said(self) -> str:
        return self._submitted.log.read_text(errors="replace")


def test_a_job_that_fails_ends_with_its_own_exit_code(java, streams, work_off, tmp_path):
    life = life_of("east", topics=4)
    half = len(life.lines) // 2
    streams.append(life.lines[:half])
    work_off(streams.config())
    jobs = _Jobs(tmp_path, streams)

    assert jobs.code_of("--no-such-option") == 2
    assert jobs.code_of(before=DEFECT) == 1
    assert "failed unexpectedly" in jobs.said
    streams.append(life.lines[half:])
    shutil.rmtree(streams.outputs)  # the job notices the loss in the middle of a batch
    assert jobs.code_of() == 3
    assert "lost rows of batches before" in jobs.said
    assert jobs.code_of("--rebuild") == 0


def test_a_job_whose_java_process_dies_ends_as_killed(java, streams, tmp_path):
    streams.append(life_of("east", topics=4).lines)
    killing = "import os, signal\nimport streaming.sinks.sink as sink\n"
    killing += f"sink.RowJournals.write = lambda *_: os.kill(os.getppid(), {int(signal.SIGKILL)})\n"
    assert _Jobs(tmp_path, streams).code_of(before=killing) == -signal.SIGKILL
