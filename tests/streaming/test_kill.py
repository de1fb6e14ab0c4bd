"""A job with a killed process, which goes on from its checkpoint without a trace."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from streaming.processes import kill
from tests.processes import descendants, holders_of, is_running, program_of
from tests.streaming.cluster_records import Streams, life_of
from tests.waiting import eventually
from transport.journal_reading import end_offset

pytestmark = pytest.mark.xdist_group("pipelines")

_ROOT = Path(__file__).parent.parent.parent
_DEADLINE_SECONDS = 600  # only a job that hangs reaches it
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
    life = life_of("east", losses=4)
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
    # A job that starts at once waits until the killed job's processes have ended.
    again = _start(streams, available_now=True)
    assert again.wait(_DEADLINE_SECONDS) == 0
    assert streams.read_all() == life.rows()
    eventually(lambda: not any(map(is_running, others)))
    assert holders_of(streams.checkpoint) == []


def _command(streams: Streams) -> list[str]:
    command = [sys.executable, "-m", "cli", "stream", "--checkpoint", str(streams.checkpoint), "--master", "local[2]"]
    return [*command, "--from", f"journal:{streams.input}", "--to", f"journal:{streams.outputs}"]


@contextmanager
def _at_work(streams: Streams) -> Iterator[tuple[subprocess.Popen[bytes], list[int]]]:
    """Yield the command after its first batch, in its own process group, and the processes below it, Java first."""
    streams.append(life_of("east", topics=2).lines)
    process = subprocess.Popen(_command(streams), cwd=_ROOT, start_new_session=True, stderr=subprocess.PIPE)
    others: list[int] = []
    try:
        _while_it_runs(process, lambda: end_offset(streams.outputs / "gauges") > 0)
        others = descendants(process.pid)
        assert program_of(others[0]) == "java"
        yield process, others
    finally:
        kill([process.pid, *others])
        process.communicate()


def _lines_of_errors(process: subprocess.Popen[bytes]) -> list[str]:
    """Return the lines on standard error, except those at level INFO."""
    _, errors = process.communicate(timeout=_DEADLINE_SECONDS)
    return [line for line in errors.decode().splitlines() if " INFO " not in line]


@pytest.mark.nightly
def test_a_java_process_that_is_killed_is_one_sentence_and_nothing_else(streams):
    with _at_work(streams) as (process, others):
        os.kill(others[0], signal.SIGKILL)
        lines = _lines_of_errors(process)
        assert len(lines) == 1, lines
        said = "kontrast: Spark's Java process is gone: SIGKILL ended it. The kernel sends that signal"
        assert lines[0].startswith(said)
        assert process.returncode == 3
        eventually(lambda: not any(map(is_running, others)))


@pytest.mark.nightly
def test_a_second_sigterm_ends_processes_that_do_not_react(streams):
    with _at_work(streams) as (process, others):
        for pid in others:
            os.kill(pid, signal.SIGSTOP)
        process.send_signal(signal.SIGTERM)
        assert b"stopping on SIGTERM" in next(line for line in process.stderr if b" INFO " not in line)
        process.send_signal(signal.SIGTERM)
        assert process.wait(_DEADLINE_SECONDS) == 128 + signal.SIGTERM
        eventually(lambda: not any(map(is_running, others)))
    assert holders_of(streams.checkpoint) == []


@pytest.mark.nightly
def test_one_sigterm_ends_processes_that_do_not_react_after_30_seconds(streams):
    with _at_work(streams) as (process, others):
        os.kill(others[0], signal.SIGSTOP)
        began = time.monotonic()
        process.send_signal(signal.SIGTERM)
        assert _lines_of_errors(process) == [
            "kontrast: stopping on SIGTERM, a second one ends at once",
            "kontrast: not finished after 30 s, ended at once",
        ]
        assert time.monotonic() - began >= 30
        assert process.returncode == 128 + signal.SIGTERM
        eventually(lambda: not any(map(is_running, others)))
    assert holders_of(streams.checkpoint) == []


@pytest.mark.nightly
def test_a_signal_to_the_whole_process_group_ends_the_job_in_order(streams):
    with _at_work(streams) as (process, others):
        os.killpg(process.pid, signal.SIGTERM)
        errors = _lines_of_errors(process)
        eventually(lambda: not any(map(is_running, others)))
    assert process.returncode == 0
    assert errors == ["kontrast: stopping on SIGTERM, a second one ends at once"]
    assert streams.read_all() == life_of("east", topics=2).rows()
