"""A job that hangs, which ends itself. An idle job, or one that must wait, does not."""

from __future__ import annotations

import os
import resource
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from streaming.checkpoint.files import FruitlessStarts, fruitless_starts
from streaming.errors import StalledError
from streaming.processes import descendants
from streaming.watchdog import Watchdog
from tests.processes import command_line_of, is_running
from tests.streaming.cluster_records import Streams, life_of
from tests.waiting import eventually
from transport.journal_reading import end_offset

_ROOT = Path(__file__).parents[2]
_LIMIT_SECONDS = 6.0
_BATCH_SECONDS = 45.0  # the first batch of a job took 15 s where eight others shared two cores


@pytest.fixture
def java() -> Iterator[subprocess.Popen[bytes]]:
    """Run a process in Java's place, which the watchdog only kills."""
    with subprocess.Popen(["sleep", "600"]) as process:
        yield process
        process.kill()


def _planned(streams: Streams, batch: int, end: int) -> None:
    _log(streams, "offsets", batch, f'v1\n{{}}\n{{"offset":{end}}}')


def _finished(streams: Streams, batch: int) -> None:
    _log(streams, "commits", batch, 'v1\n{"nextBatchWatermarkMs":0}')


def _log(streams: Streams, log: str, batch: int, content: str) -> None:
    directory = streams.checkpoint / "spark-1" / log  # as after a rebuild
    directory.mkdir(parents=True, exist_ok=True)
    (directory / str(batch)).write_text(content)


def _watchdog(streams: Streams, java: subprocess.Popen[bytes], *, away: bool = False) -> Watchdog:
    config = streams.config(stalled_after_seconds=_LIMIT_SECONDS)
    return Watchdog(config, streams.checkpoint / "spark-1", java.pid, lambda: away)


def _look(watchdog: Watchdog, *, answers: bool = True) -> None:
    """Look for as long as the limit is, twice."""
    for _ in range(int(_LIMIT_SECONDS) + 1):
        if answers:
            watchdog.java_answered()
        watchdog.look(2.0)


def test_an_idle_source_stalls_nothing(streams, java):
    streams.append(life_of("east", topics=1).lines)
    _planned(streams, 0, end_offset(streams.input))
    _finished(streams, 0)
    _look(_watchdog(streams, java))
    assert java.poll() is None


@pytest.mark.parametrize("case", ["a batch that does not end", "records that no batch takes", "Java does not answer"])
def test_what_waits_without_a_batch_ends_spark(streams, java, case):
    streams.append(life_of("east", topics=1).lines)
    behind = case == "records that no batch takes"
    _planned(streams, 0, 0 if behind else end_offset(streams.input))
    _finished(streams, 0)
    if case == "a batch that does not end":
        _planned(streams, 1, end_offset(streams.input))
    watchdog = _watchdog(streams, java)
    with pytest.raises(StalledError, match="no batch finished for 6 s although records wait"), watchdog.watching():
        _look(watchdog, answers=case != "Java does not answer")
    assert java.wait() == -signal.SIGKILL


def test_a_batch_that_ends_begins_the_time_anew(streams, java):
    streams.append(life_of("east", topics=1).lines)
    watchdog = _watchdog(streams, java)
    for batch in range(10):
        _planned(streams, batch + 1, 0)
        _finished(streams, batch)
        watchdog.look(_LIMIT_SECONDS / 2)
    assert java.poll() is None


def test_a_start_after_fruitless_ones_gets_more_time_until_it_finishes_a_batch(streams, java):
    directory, spark = streams.checkpoint, streams.checkpoint / "spark-1"
    _planned(streams, 0, 0)
    _finished(streams, 0)
    _planned(streams, 1, 0)
    starts = [fruitless_starts(directory, spark) for _ in range(3)]
    assert starts == [FruitlessStarts(spark.name, finished=0, count=count) for count in range(3)]
    watchdog = Watchdog(streams.config(stalled_after_seconds=_LIMIT_SECONDS), spark, java.pid, lambda: False, starts[1])
    for seconds in (0.0, 1.9 * _LIMIT_SECONDS):
        watchdog.look(seconds)
    assert java.poll() is None
    _finished(streams, 1)
    _planned(streams, 2, 0)
    for seconds in (0.0, _LIMIT_SECONDS):
        watchdog.look(seconds)
    assert java.wait(timeout=10) == -signal.SIGKILL
    assert fruitless_starts(directory, spark) == FruitlessStarts(spark.name, finished=1)


def test_the_time_of_a_start_grows_to_eight_times_the_limit(streams, java):
    _planned(streams, 0, 0)
    config = streams.config(stalled_after_seconds=_LIMIT_SECONDS)
    watchdog = Watchdog(config, streams.checkpoint / "spark-1", java.pid, lambda: False, FruitlessStarts(count=9))
    watchdog.look(7.9 * _LIMIT_SECONDS)
    assert java.poll() is None
    watchdog.look(0.1 * _LIMIT_SECONDS)
    assert java.wait(timeout=10) == -signal.SIGKILL


@pytest.mark.parametrize("content", [b"", b"[]", b'{"directory": "spark-1", "finished": -1, "starts": "many"}'])
def test_a_count_of_starts_that_cannot_be_read_is_none(content, tmp_path):
    (tmp_path / "kontrast.starts").write_bytes(content)
    assert fruitless_starts(tmp_path, tmp_path / "spark-1") == FruitlessStarts("spark-1")
    assert fruitless_starts(tmp_path, tmp_path / "spark-1").count == 1


def test_under_spark_submit_the_sentence_is_logged_before_java_ends_us(streams, java, monkeypatch, caplog):
    monkeypatch.setenv("PYSPARK_GATEWAY_PORT", "1")
    _planned(streams, 0, 0)
    _look(_watchdog(streams, java))
    assert "no batch finished for 6 s although records wait" in caplog.text


def test_a_kafka_that_is_away_stalls_nothing(streams, java):
    _planned(streams, 0, 0)
    _look(_watchdog(streams, java, away=True))
    assert java.poll() is None


@pytest.mark.nightly
def test_a_job_whose_workers_are_stopped_ends_with_its_sentence_and_exit_code(streams):
    process, others = _started(streams)
    try:
        for pid in others[1:]:
            os.kill(pid, signal.SIGSTOP)
        streams.append(life_of("west", topics=1).lines)
        assert _ending(process).startswith(
            f"kontrast: no batch finished for {_BATCH_SECONDS:g} s although records wait in journal:{streams.input}"
        )
        assert process.returncode == 4
        eventually(lambda: not any(map(is_running, others)))
    finally:
        process.kill()
        process.wait()


@pytest.mark.nightly
def test_a_job_without_a_free_file_ends(streams):
    process, others = _started(streams)
    try:
        for pid in others:
            count = len(os.listdir(f"/proc/{pid}/fd"))
            resource.prlimit(pid, resource.RLIMIT_NOFILE, (count, count))
        streams.append(life_of("west", topics=1).lines)
        said = _ending(process)
        assert process.returncode in (3, 4), said
        eventually(lambda: not any(map(is_running, others)))
    finally:
        process.kill()
        process.wait()


def _started(streams: Streams) -> tuple[subprocess.Popen[bytes], list[int]]:
    """Return a job after its first batch, and the processes below it, Java first."""
    streams.append(life_of("east", topics=2).lines)
    command = [sys.executable, "-m", "cli", "stream", "--checkpoint", str(streams.checkpoint), "--master", "local[2]"]
    command += ["--from", f"journal:{streams.input}", "--to", f"journal:{streams.outputs}"]
    command += ["--stalled-after-seconds", str(_BATCH_SECONDS)]
    process = subprocess.Popen(command, cwd=_ROOT, stderr=subprocess.PIPE)

    def has_begun() -> bool:
        assert process.poll() is None, "the job ended by itself"
        return end_offset(streams.outputs / "gauges") > 0

    eventually(has_begun)
    others = descendants(process.pid)
    assert "java" in command_line_of(others[0])
    return process, others


def _ending(process: subprocess.Popen[bytes]) -> str:
    """Return the only line on standard error without the log's INFO lines."""
    _, errors = process.communicate(timeout=240)
    (line,) = [line for line in errors.decode().splitlines() if " INFO " not in line]
    return line
