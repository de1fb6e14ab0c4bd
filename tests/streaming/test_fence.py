"""A zombie driver, whose locks are gone, beside the driver that has taken its place."""

from __future__ import annotations

import contextlib
import ctypes
import fcntl
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from kafka import KafkaConsumer, TopicPartition

from controller.contract.outputs import OUTPUTS
from streaming.checkpoint.files import numbered
from streaming.errors import StreamError
from tests.processes import descendants
from tests.streaming.checkpoints import newest_rows
from tests.streaming.cluster_records import Streams, life_of
from tests.waiting import DEADLINE_SECONDS, eventually
from transport.address import KafkaAddress
from transport.topics import output_topic

pytestmark = [pytest.mark.deploy, pytest.mark.xdist_group("pipelines")]

_ROOT = Path(__file__).parents[2]
_PIDFD_GETFD = 438  # on every architecture


def _rows(sink: KafkaAddress) -> dict[str, list[bytes]]:
    consumer = KafkaConsumer(bootstrap_servers=sink.bootstrap_servers, auto_offset_reset="earliest")
    rows: dict[str, list[bytes]] = {}
    for output in OUTPUTS:
        partition = TopicPartition(output_topic(sink, output), 0)
        consumer.assign([partition])
        (end,) = consumer.end_offsets([partition]).values()
        rows[output] = []
        while consumer.position(partition) < end:
            rows[output] += [message.value for messages in consumer.poll(1000).values() for message in messages]
    consumer.close()
    return rows


def _signal(process: subprocess.Popen[bytes], number: signal.Signals) -> None:
    for pid in (process.pid, *descendants(process.pid)):
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, number)


def _lose_locks(pid: int, below: Path) -> None:
    """Release the locks that another process holds, as a network file system does that gives a machine up."""
    process, libc = os.pidfd_open(pid), ctypes.CDLL(None, use_errno=True)
    for file in Path(f"/proc/{pid}/fd").iterdir():
        if below in file.readlink().parents:
            descriptor = libc.syscall(_PIDFD_GETFD, process, int(file.name), 0)
            assert descriptor >= 0, os.strerror(ctypes.get_errno())
            fcntl.flock(descriptor, fcntl.LOCK_UN)
            os.close(descriptor)
    os.close(process)


def _is_idle(streams: Streams) -> bool:
    spark = streams.checkpoint / "spark"
    return numbered(spark / "offsets") == numbered(spark / "commits") != []


def _stop_in_a_batch(zombie: subprocess.Popen[bytes], streams: Streams, lines: list[bytes]) -> bool:
    """Let it begin a batch and stop it there. Let it go on, and return False, if the batch has ended before."""
    streams.append([lines.pop(0)])
    eventually(lambda: not _is_idle(streams), pause_seconds=0.001)
    _signal(zombie, signal.SIGSTOP)
    if not _is_idle(streams):
        return True
    _signal(zombie, signal.SIGCONT)
    return False


@pytest.mark.parametrize("into", ["kafka", "journal"])
def test_a_zombie_driver_writes_no_row_after_another_one_has_started(into, shared_broker, own_name, streams, work_off):
    life = life_of("east", topics=10)
    third = len(life.lines) // 3
    first, middle, last = life.lines[:third], life.lines[third : 2 * third], life.lines[2 * third :]
    kafka = KafkaAddress(shared_broker, own_name)
    config = streams.config(sink=kafka) if into == "kafka" else streams.config()
    command = [sys.executable, "-m", "cli", "stream", "--checkpoint", str(streams.checkpoint), "--master", "local[2]"]
    command += ["--from", f"journal:{streams.input}", "--to", str(config.sink)]
    streams.append(first)

    def written() -> dict[str, list[bytes]]:
        return _rows(kafka) if into == "kafka" else streams.read_all()

    with subprocess.Popen(command, cwd=_ROOT, stderr=subprocess.PIPE) as zombie:
        try:
            eventually(lambda: _is_idle(streams))
            if into == "kafka":
                _signal(zombie, signal.SIGSTOP)
            else:
                eventually(lambda: _stop_in_a_batch(zombie, streams, middle))
            with pytest.raises(StreamError, match="is in use by process"):
                work_off(config)
            _lose_locks(zombie.pid, streams.checkpoint.parent)
            streams.append(middle)
            work_off(config)
            by_the_second = written()
            streams.append(last)
            _signal(zombie, signal.SIGCONT)
            _, complaint = zombie.communicate(timeout=DEADLINE_SECONDS)
        finally:
            _signal(zombie, signal.SIGKILL)
    assert zombie.returncode == 3, complaint.decode()
    assert b"another job has started on" in complaint
    assert written() == by_the_second
    work_off(config)
    assert newest_rows(written()["metadata"]) == newest_rows(life.rows()["metadata"])
