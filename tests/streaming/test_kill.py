"""A job whose process is killed goes on from its checkpoint as if nothing had happened."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.processes import descendants, holders_of, is_running, program_of
from tests.streaming.cluster_records import Streams, life_of
from tests.waiting import eventually
from transport.journal import end_offset

pytestmark = pytest.mark.xdist_group("pipelines")

_ROOT = Path(__file__).parent.parent.parent
_DEADLINE_SECONDS = 150
_RUN = """
import sys, threading
from pathlib import Path
from streaming.config import StreamConfig
from streaming.job import run
from transport.address import JournalAddress

source, sink, checkpoint, available_now = sys.argv[1:]
config = StreamConfig(source=JournalAddress(Path(source)), sink=JournalAddress(Path(sink)), checkpoint=checkpoint,
                      master="local[2]", max_batch_bytes=8192)
run(config, threading.Event(), available_now=bool(int(available_now)))
"""


def _start(streams: Streams, *, available_now: bool, stderr: int | None = None) -> subprocess.Popen[bytes]:
    paths = [str(path) for path in (streams.input, streams.outputs, streams.checkpoint)]
    return subprocess.Popen([sys.executable, "-c", _RUN, *paths, str(int(available_now))], cwd=_ROOT, stderr=stderr)


def _while_it_runs(process: subprocess.Popen[bytes], happened: Callable[[], bool]) -> None:
    def still_runs() -> None:
        assert process.poll() is None, "the job ended by itself"

    eventually(happened, meanwhile=still_runs, pause_seconds=0.01)


def test_a_job_that_is_killed_in_the_middle_loses_and_doubles_nothing(streams):
    life = life_of("east", topics=40, losses=8)
    streams.append(life.lines[: len(life.lines) // 4])
    process = _start(streams, available_now=False)
    try:
        _while_it_runs(process, lambda: end_offset(streams.outputs / "metadata") > 0)
        streams.append(life.lines[len(life.lines) // 4 :])
        seen = end_offset(streams.outputs / "metadata")
        _while_it_runs(process, lambda: end_offset(streams.outputs / "metadata") > seen)
        others = descendants(process.pid)
    finally:
        process.send_signal(signal.SIGKILL)
        process.wait()
    assert len(streams.read("metadata")) < len(life.rows()["metadata"]), "it was killed too late to be in the middle"
    # Started again at once: it waits for what is left of the killed one.
    again = _start(streams, available_now=True)
    assert again.wait(_DEADLINE_SECONDS) == 0
    assert streams.read_all() == life.rows()
    eventually(lambda: not any(map(is_running, others)))
    assert holders_of(streams.checkpoint) == []


def test_a_java_process_that_dies_is_named_in_one_sentence(streams):
    streams.append(life_of("east", topics=2).lines)
    process = _start(streams, available_now=False, stderr=subprocess.PIPE)
    try:
        _while_it_runs(process, lambda: end_offset(streams.outputs / "metadata") > 0)
        (java,) = (pid for pid in descendants(process.pid) if program_of(pid) == "java")
        os.kill(java, signal.SIGKILL)
        _, errors = process.communicate(timeout=_DEADLINE_SECONDS)
    finally:
        process.kill()
        process.wait()
    assert errors.splitlines()[-1].startswith(b"streaming.errors.StreamError: Spark's Java process is gone")


def test_a_signal_to_the_whole_process_group_ends_the_job_in_order(streams):
    life = life_of("east", topics=2)
    streams.append(life.lines)
    command = [sys.executable, "-m", "cli", "stream", "--checkpoint", str(streams.checkpoint)]
    command += ["--from", f"journal:{streams.input}", "--to", f"journal:{streams.outputs}"]
    process = subprocess.Popen(command, cwd=_ROOT, start_new_session=True, stderr=subprocess.PIPE)
    try:
        _while_it_runs(process, lambda: end_offset(streams.outputs / "gauges") > 0)
        others = descendants(process.pid)
        os.killpg(process.pid, signal.SIGTERM)
        _, errors = process.communicate(timeout=_DEADLINE_SECONDS)
    finally:
        process.kill()
        process.wait()
    assert process.returncode == 0
    assert b"not finished" not in errors
    eventually(lambda: not any(map(is_running, others)))
    assert streams.read_all() == life.rows()
