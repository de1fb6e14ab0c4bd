"""Spark's Java process runs out of memory within a batch. The next start with more memory loses and repeats nothing."""

from __future__ import annotations

import base64
import random
import subprocess
import sys
from pathlib import Path

import pytest

from controller.contract.records import RecordKind
from streaming.processes import descendants, kill
from tests.processes import holders_of, is_running
from tests.streaming.cluster_records import Streams, life_of
from tests.waiting import DEADLINE_SECONDS, eventually
from transport.journal_reading import end_offset

pytestmark = [pytest.mark.nightly, pytest.mark.xdist_group("pipelines")]

_ROOT = Path(__file__).parents[2]
_SMALLEST = "480m"  # Spark refuses less
_LARGE_BYTES = 120_000_000  # of one record, which Spark copies a few times and cannot split


def _start(streams: Streams, memory: str, *options: str) -> subprocess.Popen[bytes]:
    command = [sys.executable, "-m", "cli", "stream", "--checkpoint", str(streams.checkpoint), "--master", "local[2]"]
    command += ["--from", f"journal:{streams.input}", "--to", f"journal:{streams.outputs}"]
    command += ["--max-batch-bytes", str(4 * _LARGE_BYTES), "--driver-memory", memory, *options]
    return subprocess.Popen(command, cwd=_ROOT, stderr=subprocess.PIPE)


def _errors(process: subprocess.Popen[bytes]) -> list[str]:
    """Return the lines on standard error, except those at level INFO."""
    _, errors = process.communicate(timeout=DEADLINE_SECONDS)
    return [line for line in errors.decode().splitlines() if " INFO " not in line]


def test_a_batch_that_needs_more_memory_ends_the_job_and_loses_no_row(streams: Streams) -> None:
    life = life_of("east", topics=3, losses=1)
    seen = len(life.records)
    large = base64.b64encode(random.Random(1).randbytes(_LARGE_BYTES * 3 // 4)).decode()  # does not compress
    life.send(RecordKind.NODE, "/config/topics/topic-0", {"version": 1, "config": {"large": large}})
    life.lose_broker_3(3)
    lines = life.lines
    streams.append(lines[:seen])
    process = _start(streams, _SMALLEST)
    try:
        eventually(lambda: end_offset(streams.outputs / "gauges") > 0 or process.poll() is not None)
        others = descendants(process.pid)
        streams.append(lines[seen:])
        (line,) = _errors(process)
    finally:
        kill([process.pid])
        process.wait()
    assert "its memory of 480m ran out. Give it more with --driver-memory" in line
    assert process.returncode == 3
    eventually(lambda: not any(map(is_running, others)))
    assert holders_of(streams.checkpoint) == []
    again = _start(streams, "1g", "--available-now")
    assert _errors(again) == []
    assert again.returncode == 0
    assert streams.read_all() == life.rows()
