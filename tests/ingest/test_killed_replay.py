"""`kontrast replay --into`, killed at any moment. Its stream has the beginning of the past, unmixed."""

from __future__ import annotations

import os
import random
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from cli.embedded.process import ChildProcess
from controller.contract.records import Record, decode_record
from tests.ingest.test_kafka_sink import consume
from tests.lanes import in_gate
from tests.recorded_moment import MOMENT_MS, history
from tests.waiting import eventually
from transport.address import KafkaAddress
from transport.journal import end_offset, read_journal

pytestmark = pytest.mark.nightly

_SEED = int(os.environ.get("KONTRAST_FAULTS_SEED", "20261124"))
_CLUSTER = "past"
_SPEED = "40"  # the recorded 94 seconds in 2.4


@pytest.fixture(scope="module")
def records(recorded_files: Path) -> list[Record]:
    return list(history(recorded_files, _CLUSTER).records())


def journal_of(directory: Path) -> list[Record]:
    return [decode_record(line) for line in read_journal(directory, 0, 1 << 40).lines]


def topic_of(to: KafkaAddress) -> list[Record]:
    return [record for messages in consume(to).values() for _, record in messages]


def command(recorded_files: Path, into: str, speed: str = "max") -> list[str]:
    return [
        *(sys.executable, "-m", "cli", "replay", "--zk-data", str(recorded_files), "--cluster", _CLUSTER),
        *("--until", str(MOMENT_MS), "--into", into, "--speed", speed),
    ]


def replayed(recorded_files: Path, into: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(command(recorded_files, into), capture_output=True, text=True, check=False)


def kill_behind(recorded_files: Path, into: str, log: Path, is_far_enough: Callable[[], bool]) -> None:
    replay = ChildProcess("kontrast replay", command(recorded_files, into, _SPEED), log)
    replay.launch()
    try:
        eventually(lambda: is_far_enough() or not replay.running, pause_seconds=0.002)
    finally:
        replay.kill()


@pytest.mark.parametrize("kill", in_gate(0, of=range(4)))
def test_a_journal_holds_the_beginning_of_the_past(
    recorded_files: Path, records: list[Record], tmp_path: Path, kill: int
) -> None:
    journal = tmp_path / "past"
    target_bytes = random.Random(_SEED + kill).randrange(1, 150_000)
    log = tmp_path / "log"
    kill_behind(
        recorded_files, f"journal:{journal}", log, lambda: journal.exists() and end_offset(journal) >= target_bytes
    )
    left = journal_of(journal)
    assert 0 < len(left) < len(records), "it was not killed in the middle"
    assert left == records[: len(left)]
    again = replayed(recorded_files, f"journal:{journal}")
    assert again.returncode == 3
    assert "past has records already. Name a new or empty stream" in again.stderr
    assert journal_of(journal) == left
    assert replayed(recorded_files, f"journal:{tmp_path / 'another'}").returncode == 0
    assert journal_of(tmp_path / "another") == records


def test_a_topic_holds_the_beginning_of_the_past(
    recorded_files: Path, records: list[Record], tmp_path: Path, shared_broker: str, own_name: str
) -> None:
    to = KafkaAddress(shared_broker, own_name)
    target = random.Random(_SEED).randrange(1, len(records) // 2)
    kill_behind(recorded_files, str(to), tmp_path / "log", lambda: len(topic_of(to)) >= target)
    left = topic_of(to)
    assert 0 < len(left) < len(records), "it was not killed in the middle"
    assert left == records[: len(left)]
    again = replayed(recorded_files, str(to))
    assert again.returncode == 3
    assert f"{own_name} has records already" in again.stderr
    assert topic_of(to) == left
