"""A zombie driver, whose locks are gone, beside the driver that has taken its place."""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from kafka import KafkaConsumer, TopicPartition

from streaming.checkpoint.files import numbered
from tests.processes import descendants
from tests.streaming.checkpoints import newest_rows
from tests.streaming.cluster_records import ClusterLife, life_of
from tests.waiting import DEADLINE_SECONDS, eventually
from transport.address import KafkaAddress
from transport.journal import read_journal

pytestmark = [pytest.mark.faults, pytest.mark.timeout(900), pytest.mark.xdist_group("pipelines")]

_ROOT = Path(__file__).parents[2]


def _metadata(sink: KafkaAddress) -> list[bytes]:
    consumer = KafkaConsumer(bootstrap_servers=sink.bootstrap_servers, auto_offset_reset="earliest")
    partition = TopicPartition(f"{sink.topic}.metadata", 0)
    consumer.assign([partition])
    (end,) = consumer.end_offsets([partition]).values()
    rows: list[bytes] = []
    while consumer.position(partition) < end:
        rows += [message.value for messages in consumer.poll(1000).values() for message in messages]
    consumer.close()
    return rows


def _all_of(process: subprocess.Popen[bytes], number: signal.Signals) -> None:
    for pid in (process.pid, *descendants(process.pid)):
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, number)


def _lose_locks(directory: Path) -> None:
    """Put a copy in the directory's place, as a network file system that gave a machine up does with its locks."""
    held = directory.with_name(f"{directory.name}-held")
    directory.rename(held)
    shutil.copytree(held, directory)


def _is_idle(checkpoint: Path) -> bool:
    return numbered(checkpoint / "spark" / "offsets") == numbered(checkpoint / "spark" / "commits") != []


@pytest.mark.parametrize("into", ["kafka", "journal"])
def test_a_zombie_driver_writes_no_row_after_another_one_has_started(into, shared_broker, own_name, streams, work_off):
    life = life_of("east", topics=10)
    third = len(life.lines) // 3
    first = ClusterLife("east")
    first.records = life.records[:third]
    kafka = KafkaAddress(shared_broker, own_name)
    config = streams.config(sink=kafka) if into == "kafka" else streams.config()
    streams.append(life.lines[:third])
    command = [sys.executable, "-m", "cli", "stream", "--checkpoint", str(streams.checkpoint), "--master", "local[2]"]
    command += ["--from", f"journal:{streams.input}", "--to", str(config.sink)]
    held = streams.outputs.with_name(f"{streams.outputs.name}-held")

    def written() -> list[bytes]:
        return _metadata(kafka) if into == "kafka" else streams.read("metadata")

    with subprocess.Popen(command, cwd=_ROOT, stderr=subprocess.PIPE) as zombie:
        try:
            expected = len(first.rows()["metadata"])
            eventually(lambda: _is_idle(streams.checkpoint) and len(written()) == expected)
            of_the_first = written()
            _all_of(zombie, signal.SIGSTOP)
            for directory in (streams.checkpoint, streams.outputs) if into == "journal" else (streams.checkpoint,):
                _lose_locks(directory)
            streams.append(life.lines[third : 2 * third])
            work_off(config)
            by_the_second = written()
            streams.append(life.lines[2 * third :])
            _all_of(zombie, signal.SIGCONT)
            _, complaint = zombie.communicate(timeout=DEADLINE_SECONDS)
        finally:
            _all_of(zombie, signal.SIGKILL)
    assert zombie.returncode == 3, complaint.decode()
    assert b"another job has started on" in complaint
    assert written() == by_the_second
    if into == "journal":
        assert list(read_journal(held / "metadata", 0, 1 << 40).lines) == of_the_first
    work_off(config)
    assert newest_rows(written()) == newest_rows(life.rows()["metadata"])
