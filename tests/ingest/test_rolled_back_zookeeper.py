"""A forwarder on servers that are restored from a backup or empty. A new generation publishes their data."""

from __future__ import annotations

import queue
import shutil
import threading
from collections.abc import Callable
from pathlib import Path

import msgspec
import pytest

from cli.embedded.zookeeper import ZooKeeper
from controller.contract.alert_row import AlertRow
from controller.contract.records import Record, RecordKind
from controller.restore.stored_context import new_context
from controller.step import steps
from ingest.config import IngestConfig
from ingest.election import Election, ForwardingTerm
from tests.clients import zookeeper_client
from tests.ingest.conftest import Watching, make_cluster, replayed_tree, server_tree, server_zxid
from tests.ingest.ensemble import Ensemble
from tests.lanes import in_gate
from tests.older_releases import ZOOKEEPER_3_4, older_jars
from tests.waiting import eventually
from transport.address import KafkaAddress
from transport.forwarding import ReadReason

Watch = Callable[..., Watching]
SESSION_SECONDS = 30  # outlives a restart. Each client is new, because servers refuse one that has seen more


def pages(records: list[Record]) -> list[str]:
    """Return the causes of the pages about a rollback, as the core publishes them until some seconds later."""
    newest = next(record for record in reversed(records) if record.kind is RecordKind.HEARTBEAT)
    later = {"observed_ms": newest.observed_ms + 9_000, "steady_ms": newest.steady_ms + 9_000}
    end = msgspec.structs.replace(newest, seq=records[-1].seq + 1, **later)
    rows = steps(new_context("test", chunk_count=8), [*records, end]).effects
    found = [row for row in rows if isinstance(row, AlertRow) and row.alert == "ZooKeeperRolledBack"]
    return [row.cause for row in found if row.state == "open"]


def lost_zxid(cause: str) -> int:
    return int(cause.split(" after ")[1].split(":")[0], 16)


def generations(watching: Watching) -> list[int]:
    return sorted({record.generation for record in watching.records()})


def wait_for_rollback(watching: Watching, times: int) -> None:
    """Return when the data of the present server has been read in a generation of its own."""
    eventually(lambda: watching.forwarding.complete_reads[ReadReason.ROLLED_BACK] == times or watching.error)
    assert watching.error is None
    watching.settled()


def newest_tree(watching: Watching) -> dict[str, tuple[bytes | None, int, int]]:
    records = watching.records()
    return replayed_tree([record for record in records if record.generation == records[-1].generation])


def restart_with(server: ZooKeeper, data: Path | None) -> None:
    server.kill()
    shutil.rmtree(server.data_directory / "version-2")
    if data is not None:
        shutil.copytree(data, server.data_directory / "version-2")
    server.start()


@pytest.mark.parametrize("release", in_gate("newest", of=["newest", "3.4"]))
def test_a_server_that_was_restored_and_then_lost_its_data(
    java: Path, tmp_path: Path, watch: Watch, release: str
) -> None:
    jars = older_jars(ZOOKEEPER_3_4) if release == "3.4" else ()
    with ZooKeeper(tmp_path / "zookeeper", jars=jars) as server:
        with zookeeper_client(server.connect_string, SESSION_SECONDS) as kafka:
            make_cluster(kafka)
            kafka.create("/brokers/topics/kept", b"1")
            backup = shutil.copytree(server.data_directory / "version-2", tmp_path / "backup")
            kafka.set("/brokers/topics/kept", b"2")
            kafka.create("/brokers/topics/lost", b"{}")
            kafka.set("/controller_epoch", b"57")
            watching = watch(zookeeper=server.connect_string)
            watching.settled()
            before = server_zxid(server)
        restart_with(server, backup)
        wait_for_rollback(watching, 1)
        with zookeeper_client(server.connect_string, SESSION_SECONDS) as kafka:
            kafka.create("/brokers/topics/after", b"{}")
            watching.settled()
            restored = newest_tree(watching)
            assert restored == server_tree(kafka)
            assert restored["/controller_epoch"][0] == b"1"
            assert restored["/brokers/topics/kept"][0] == b"1"
            assert "/brokers/topics/lost" not in restored
            after = server_zxid(server)
        restart_with(server, None)
        wait_for_rollback(watching, 2)
        assert newest_tree(watching) == {}
        with zookeeper_client(server.connect_string, SESSION_SECONDS) as kafka:
            make_cluster(kafka)
            watching.settled()
            assert newest_tree(watching) == server_tree(kafka)
    first, second = pages(watching.records())
    assert lost_zxid(first) >= before
    assert lost_zxid(second) >= after
    assert len(generations(watching)) == 3


@pytest.mark.nightly
def test_a_restored_ensemble_counts_on_from_a_newer_epoch(java: Path, tmp_path: Path, watch: Watch) -> None:
    with Ensemble(tmp_path / "ensemble") as ensemble:
        with zookeeper_client(ensemble.connect_string, SESSION_SECONDS) as kafka:
            make_cluster(kafka)
            kafka.create("/brokers/topics/kept", b"1")
            backups = {
                number: shutil.copytree(server.data_directory / "version-2", tmp_path / f"backup-{number}")
                for number, server in ensemble.servers.items()
            }
            _, stat = kafka.set("/brokers/topics/kept", b"2"), kafka.exists("/brokers/topics/kept")
            kafka.create("/brokers/topics/lost", b"{}")
            watching = watch(zookeeper=ensemble.connect_string)
            watching.settled()
            before = server_zxid(ensemble.leader())
        ensemble.kill()
        for number, server in ensemble.servers.items():
            shutil.rmtree(server.data_directory / "version-2")
            shutil.copytree(backups[number], server.data_directory / "version-2")
        ensemble.start()
        wait_for_rollback(watching, 1)
        assert server_zxid(ensemble.leader()) > before
        with zookeeper_client(ensemble.connect_string, SESSION_SECONDS) as kafka:
            kafka.create("/brokers/topics/after", b"{}")
            watching.settled()
            assert newest_tree(watching) == server_tree(kafka)
    (page,) = pages(watching.records())
    assert f" after {stat.mzxid:#x}: " in page
    sessions = [record for record in watching.records() if record.kind is RecordKind.SESSION]
    assert sum("lost_zxid" in (record.data or "") for record in sessions) == 1


@pytest.mark.nightly
def test_an_election_goes_on_when_its_ensemble_has_lost_its_data(java: Path, tmp_path: Path) -> None:
    stop = threading.Event()
    with ZooKeeper(tmp_path / "zookeeper") as server:
        config = IngestConfig(
            cluster="blue",
            zookeeper="watched:2181",
            to=KafkaAddress("h:1", "t"),
            election_zookeeper=server.connect_string,
            session_timeout_seconds=2,
        )
        elections = [Election(config, stop, lambda: 0, lambda _: None) for _ in range(2)]
        terms: queue.Queue[tuple[int, ForwardingTerm | None]] = queue.Queue()

        def run_for(candidate: int) -> None:
            terms.put((candidate, elections[candidate].next_term()))

        def wait_in_a_thread(candidate: int) -> None:
            threading.Thread(target=run_for, args=(candidate,), daemon=True).start()

        wait_in_a_thread(0)
        leader, before = terms.get(timeout=60)
        wait_in_a_thread(1)
        with zookeeper_client(server.connect_string, SESSION_SECONDS) as look:
            eventually(lambda: len(look.get_children("/kontrast/blue/candidates")) == 2)
        restart_with(server, None)
        assert before is not None
        eventually(lambda: not before.holds())
        wait_in_a_thread(leader)
        newest, term = terms.get(timeout=60)
        assert term is not None
        assert term.generation > before.generation
        elections[newest].close()
        other, last = terms.get(timeout=60)
        assert last is not None
        assert last.generation > term.generation
        assert other != newest
        stop.set()
        elections[other].close()
