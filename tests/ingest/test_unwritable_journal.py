"""A journal on a full disk, or one that is read-only. `kontrast watch` reports it, waits, and loses no record."""

from __future__ import annotations

import resource
import subprocess
import sys
import threading
import time
from pathlib import Path
from unittest.mock import Mock

import pytest
from kazoo.client import KazooClient

from cli.embedded.process import ChildProcess
from controller.contract.ids import Zxid
from controller.contract.records import Record, RecordKind, decode_record
from ingest.election import ForwardingTerm
from ingest.maintenance import MaintenanceFile
from ingest.observed.inbox import SessionState
from ingest.publisher import MachineClocks, Publisher
from ingest.sinks.sink import SinkUnavailableError
from ingest.zookeeper.reading import WatchMode
from tests.ingest.conftest import make_cluster, replayed_tree, server_tree
from tests.ingest.zookeeper_in_memory import ZooKeeperInMemory
from tests.programs import program
from tests.read_only import read_only, without_privileges
from tests.waiting import eventually
from transport.forwarding import Forwarding
from transport.journal_reading import earliest_offset, read_journal

# Only the process sees the disk, in its own namespaces, which needs no rights.
_ON_A_SMALL_DISK = 'mount -t tmpfs -o size=1m small "$0" && exec "$@"'


def test_records_wait_for_room_and_none_is_lost(
    in_memory: ZooKeeperInMemory, kafka: KazooClient, tmp_path: Path
) -> None:
    make_cluster(kafka)
    disk = tmp_path / "disk"
    disk.mkdir()
    command = [
        *(program("unshare"), "--user", "--map-root-user", "--mount", "sh", "-c", _ON_A_SMALL_DISK, disk),
        *(sys.executable, "-m", "cli", "watch", "--cluster", "blue", "--heartbeat-seconds", "0.2"),
        *("--zookeeper", in_memory.connect_string, "--to", f"journal:{disk / 'journal'}"),
    ]
    watch = ChildProcess("kontrast watch", command, tmp_path / "log")
    watch.launch()
    try:
        seen = Path(f"/proc/{watch.pid}/root") / disk.relative_to("/")

        def records() -> list[Record]:
            directory = seen / "journal"
            return [decode_record(line) for line in read_journal(directory, 0, 1 << 30).lines]

        def heartbeats() -> int:
            return sum(record.kind is RecordKind.HEARTBEAT for record in records())

        eventually(lambda: heartbeats() > 0)
        filler = seen / "filler"
        subprocess.run(["dd", "if=/dev/zero", f"of={filler}", "bs=4k"], check=False, capture_output=True)
        kafka.create("/admin/delete_topics/short-lived")
        for number in range(200):  # more than the rest of the last block
            kafka.set("/brokers/topics/t", str(number).encode() * 100)
        kafka.delete("/admin/delete_topics/short-lived")
        eventually(lambda: "no room left" in watch.log.read_text())
        before = records()
        filler.unlink()
        eventually(lambda: "without a loss" in watch.log.read_text())
        count = heartbeats()
        eventually(lambda: heartbeats() > count + 1)
        after = records()
        assert after[: len(before)] == before
        assert [record.seq for record in after] == sorted(record.seq for record in after)
        told = [record.kind for record in after if record.path == "/admin/delete_topics/short-lived"]
        assert told[0] in (RecordKind.CREATED, RecordKind.NODE)
        assert told[-1] is RecordKind.DELETED
        assert replayed_tree(after) == server_tree(kafka)
        watch.stop()
        assert "Traceback" not in watch.log.read_text()
    finally:
        watch.kill()


def test_a_watcher_that_starts_on_a_full_disk_waits_for_room(watched: str, kafka: KazooClient, tmp_path: Path) -> None:
    """A process that may write no byte into files fails as on a full disk. The limit can be raised while it runs."""
    make_cluster(kafka)
    command = [sys.executable, "-m", "cli", "watch", "--cluster", "blue", "--zookeeper", watched]
    command += ["--to", f"journal:{tmp_path / 'journal'}", "--connect-timeout-seconds", "1"]
    without_room = (0, resource.RLIM_INFINITY)
    with subprocess.Popen(
        command,
        stderr=subprocess.PIPE,
        text=True,
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, without_room),
    ) as running:
        assert running.stderr is not None
        assert next((line for line in running.stderr if "trying again until there is room" in line), "") != ""
        time.sleep(1.5)  # longer than it would wait for a journal that cannot be reached
        resource.prlimit(running.pid, resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
        eventually(lambda: b"snapshot-end" in b"".join(read_journal(tmp_path / "journal", 0, 1 << 30).lines))
        running.terminate()
        assert "Traceback" not in running.stderr.read()
    assert running.returncode == 0


def unprivileged(in_memory: ZooKeeperInMemory, journal: Path) -> list[str | Path]:
    return without_privileges(
        *(sys.executable, "-m", "cli", "watch", "--cluster", "blue", "--heartbeat-seconds", "0.2"),
        *("--zookeeper", in_memory.connect_string, "--to", f"journal:{journal}", "--journal-retain-bytes", "40000"),
    )


def test_each_reason_of_an_outage_is_told_once_whatever_its_numbers(caplog: pytest.LogCaptureFixture) -> None:
    reasons = ("no answer", "4 bytes are free", "5,000 bytes are free", "no answer", "the login is refused")
    sink, forwarding = Mock(append=Mock(side_effect=[*map(SinkUnavailableError, reasons), None])), Forwarding("blue")
    parts = ForwardingTerm(1, lambda: True), threading.Event(), forwarding, MaintenanceFile(None, forwarding)
    state = SessionState.LOST, WatchMode.PERSISTENT, Zxid(1)
    Publisher(sink, *parts, MachineClocks()).publish_state(RecordKind.SESSION, *state)
    told = [line.rpartition(": ")[2] for line in caplog.messages if "cannot be delivered" in line]
    assert told == ["no answer", "4 bytes are free", "the login is refused"]


@pytest.mark.nightly
def test_records_wait_until_the_journal_can_be_written(
    in_memory: ZooKeeperInMemory, kafka: KazooClient, tmp_path: Path
) -> None:
    make_cluster(kafka)
    journal = tmp_path / "journal"
    watch = ChildProcess("kontrast watch", unprivileged(in_memory, journal), tmp_path / "log")
    watch.launch()

    def records() -> list[Record]:
        batch = read_journal(journal, earliest_offset(journal), 1 << 30)
        assert batch.hole is None
        return [decode_record(line) for line in batch.lines]

    try:
        eventually(lambda: watch.running and journal.exists() and "heartbeat" in {r.kind.value for r in records()})
        seen = {record.seq: record for record in records()}
        with read_only(journal):
            kafka.create("/admin/delete_topics/short-lived")
            for number in range(60):  # a segment of 10,000 bytes ends, and the next cannot be made
                kafka.set("/brokers/topics/t", str(number).encode() * 150)
            kafka.delete("/admin/delete_topics/short-lived")
            eventually(lambda: f"journal {journal} cannot be written: Permission denied" in watch.log.read_text())
            seen |= {record.seq: record for record in records()}
        kafka.create("/brokers/topics/afterwards", b"{}")
        eventually(lambda: "/brokers/topics/afterwards" in {record.path for record in records()})
        seen |= {record.seq: record for record in records()}
        assert list(seen) == list(range(min(seen), max(seen) + 1)), "a record is missing"
        assert replayed_tree(list(seen.values())) == server_tree(kafka)
        watch.stop()
        assert "Traceback" not in watch.log.read_text()
    finally:
        watch.kill()


def test_a_journal_that_is_read_only_from_the_beginning_is_one_sentence(
    in_memory: ZooKeeperInMemory, tmp_path: Path
) -> None:
    closed = tmp_path / "closed"
    closed.mkdir()
    watch = ChildProcess("kontrast watch", unprivileged(in_memory, closed / "journal"), tmp_path / "log")
    with read_only(closed):
        watch.launch()
        eventually(lambda: not watch.running)
    assert watch.exit_status == 3
    assert watch.log.read_text().count("\n") == 1, watch.log.read_text()
    assert f"{closed / 'journal'}" in watch.log.read_text()
    assert list(closed.iterdir()) == []
