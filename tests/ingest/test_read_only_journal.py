"""A journal that becomes read-only. `kontrast watch` reports it, waits, and loses no record."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from kazoo.client import KazooClient

from cli.embedded.process import ChildProcess
from controller.contract.records import Record, decode_record
from tests.ingest.conftest import make_cluster, replayed_tree, server_tree
from tests.ingest.zookeeper_in_memory import ZooKeeperInMemory
from tests.read_only import read_only, without_privileges
from tests.waiting import eventually
from transport.journal import earliest_offset, read_journal


def command(in_memory: ZooKeeperInMemory, journal: Path) -> list[str | Path]:
    return without_privileges(
        *(sys.executable, "-m", "cli", "watch", "--cluster", "blue", "--heartbeat-seconds", "0.2"),
        *("--zookeeper", in_memory.connect_string, "--to", f"journal:{journal}", "--journal-retain-bytes", "40000"),
    )


@pytest.mark.nightly
def test_records_wait_until_the_journal_can_be_written(
    in_memory: ZooKeeperInMemory, kafka: KazooClient, tmp_path: Path
) -> None:
    make_cluster(kafka)
    journal = tmp_path / "journal"
    watch = ChildProcess("kontrast watch", command(in_memory, journal), tmp_path / "log")
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
    watch = ChildProcess("kontrast watch", command(in_memory, closed / "journal"), tmp_path / "log")
    with read_only(closed):
        watch.launch()
        eventually(lambda: not watch.running)
    assert watch.exit_status == 3
    assert watch.log.read_text().count("\n") == 1, watch.log.read_text()
    assert f"{closed / 'journal'}" in watch.log.read_text()
    assert list(closed.iterdir()) == []
