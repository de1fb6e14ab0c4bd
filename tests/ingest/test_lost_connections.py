"""Records after a lost connection, session or client. The forwarder publishes each difference once."""

from __future__ import annotations

import json
import random
import struct
from collections.abc import Callable

import pytest
from kazoo.client import KazooClient

from controller.contract.records import RecordKind
from tests.ingest.conftest import Watching, changes, make_cluster, replayed_tree, server_tree
from tests.ingest.zookeeper_in_memory import ZooKeeperInMemory
from tests.lanes import in_gate
from tests.relay import Relay
from tests.waiting import eventually
from transport.forwarding import ReadReason

Watch = Callable[..., Watching]


@pytest.mark.parametrize("way", ["the server is killed", "the server does not answer"])
def test_after_a_lost_connection_only_differences_are_published(
    in_memory: ZooKeeperInMemory, kafka: KazooClient, watch: Watch, way: str
) -> None:
    make_cluster(kafka)
    kafka.create("/brokers/topics/gone", b"{}")
    watching = watch(session_timeout_seconds=2)
    seq = watching.settled()
    if way == "the server is killed":
        in_memory.kill()
        eventually(lambda: watching.count(RecordKind.SESSION, "suspended") == 1)
        in_memory.start()
    else:
        kafka.set("/brokers/topics/t", b"before")
        in_memory.pause()
        eventually(lambda: watching.count(RecordKind.SESSION, "suspended") == 1)
        in_memory.resume()
    eventually(lambda: kafka.connected)
    kafka.retry(kafka.set, "/brokers/topics/t", b"during or after")
    kafka.retry(kafka.delete, "/brokers/topics/gone")
    eventually(lambda: watching.count(RecordKind.SESSION, '"connected"') == 2)
    kafka.retry(kafka.create, "/brokers/topics/later", b"{}")
    watching.settled()
    records = [record for record in watching.after(seq) if record.path]
    assert set(changes(records)) == {
        ("node", "/brokers/topics/t"),
        ("deleted", "/brokers/topics/gone"),
        ("node", "/brokers/topics/later"),
    }
    assert changes(records).count(("deleted", "/brokers/topics/gone")) == 1
    assert [record for record in records if record.path == "/brokers/topics/t"][-1].data == "during or after"


def test_what_happens_while_nobody_is_connected_is_found_by_reading_again(
    in_memory: ZooKeeperInMemory, kafka: KazooClient, watch: Watch
) -> None:
    make_cluster(kafka)
    with Relay(in_memory.port) as relay:
        watching = watch(zookeeper=f"127.0.0.1:{relay.port}")
        seq = watching.settled()
        relay.close_door()
        eventually(lambda: watching.count(RecordKind.SESSION, "suspended") == 1)
        kafka.set("/brokers/topics/t", b"{}")
        kafka.delete("/config/topics/t")
        kafka.create("/config/topics/u", b"{}")
        relay.open_door()
        eventually(lambda: watching.count(RecordKind.SESSION, '"connected"') == 2)
        watching.settled()
        records = [record for record in watching.after(seq) if record.path]
        assert sorted(changes(records)) == [
            ("deleted", "/config/topics/t"),
            ("node", "/brokers/topics/t"),
            ("node", "/config/topics/u"),
        ]
        assert all(record.resync for record in records)
        shown = watching.forwarding
        assert (shown.complete_reads[ReadReason.SUSPENDED], shown.differences) == (1, 3)
        assert 0 <= shown.jitter_wait_seconds <= watching.config.resync_jitter_seconds
        watching.stop()


def test_an_expired_session_is_followed_by_a_new_one_that_publishes_differences(
    in_memory: ZooKeeperInMemory, kafka: KazooClient, watch: Watch
) -> None:
    make_cluster(kafka)
    with Relay(in_memory.port) as relay:
        watching = watch(zookeeper=f"127.0.0.1:{relay.port}", session_timeout_seconds=1)
        seq = watching.settled()
        relay.close_door()
        zxid = in_memory.zxid
        eventually(lambda: in_memory.zxid > zxid)  # closeSession
        kafka.set("/brokers/topics/t", b"{}")
        relay.open_door()
        eventually(lambda: watching.count(RecordKind.SESSION, "lost") == 1)
        watching.settled()
        records = watching.after(seq)
        assert changes(records) == [("node", "/brokers/topics/t")]
        sessions = [json.loads(record.data or "")["session"] for record in records if record.kind is RecordKind.SESSION]
        assert sessions == ["suspended", "lost", "connected"]
        watching.stop()


@pytest.mark.filterwarnings("ignore::pytest.PytestUnhandledThreadExceptionWarning")  # which ends kazoo's thread
def test_an_answer_that_makes_no_sense_ends_the_client_not_the_forwarder(
    in_memory: ZooKeeperInMemory, kafka: KazooClient, watch: Watch
) -> None:
    make_cluster(kafka)
    with Relay(in_memory.port) as relay:
        watching = watch(zookeeper=f"127.0.0.1:{relay.port}")
        seq = watching.settled()
        relay.say_to_clients(struct.pack("!iiqi", 16, 999_999, 1, 0))
        eventually(lambda: watching.count(RecordKind.SESSION, '"connected"') == 2)
        kafka.set("/brokers/topics/t", b"{}")
        watching.settled()
        assert changes(watching.after(seq)) == [("node", "/brokers/topics/t")]
        watching.stop()


@pytest.mark.parametrize("length", [128 * 1024**2 + 1, 2**31 - 1, -1])
def test_a_packet_without_measure_is_not_gathered_and_logged_once(
    in_memory: ZooKeeperInMemory, kafka: KazooClient, watch: Watch, caplog: pytest.LogCaptureFixture, length: int
) -> None:
    make_cluster(kafka)
    with Relay(in_memory.port) as relay:
        watching = watch(zookeeper=f"127.0.0.1:{relay.port}")
        seq = watching.settled()
        for connections in (2, 3):
            relay.say_to_clients(struct.pack("!i", length))
            eventually(lambda: watching.count(RecordKind.SESSION, '"connected"') == connections)  # noqa: B023
        kafka.set("/brokers/topics/t", b"{}")
        watching.settled()
        assert changes(watching.after(seq)) == [("node", "/brokers/topics/t")]
        watching.stop()
    (told,) = [record for record in caplog.records if "announces a packet" in record.getMessage()]
    assert f"{length} bytes, expected at most" in told.getMessage()


@pytest.mark.parametrize("seed", in_gate(0, 1, of=range(5)))
def test_replaying_the_records_of_any_history_gives_the_servers_tree(
    in_memory: ZooKeeperInMemory, kafka: KazooClient, watch: Watch, seed: int
) -> None:
    make_cluster(kafka)
    paths = [f"/admin/delete_topics/{name}" for name in "abc"] + [f"/brokers/topics/{name}" for name in "uvwxyz"]
    chance = random.Random(seed)
    with Relay(in_memory.port) as relay:
        watching = watch(zookeeper=f"127.0.0.1:{relay.port}", coalesce_ms=chance.choice([0, 1, 10]))
        for _ in range(600):
            path = chance.choice(paths)
            if not kafka.exists(path):
                kafka.create(path, b"new")
            elif chance.random() < 0.5:
                kafka.set(path, str(chance.random()).encode())
            else:
                kafka.delete(path)
            if chance.random() < 0.01:
                relay.close_door()
            if chance.random() < 0.1:
                relay.open_door()
        relay.open_door()
        eventually(lambda: watching.records()[-1].data is not None and '"connected"' in watching.records()[-1].data)
        watching.settled()
        replayed = replayed_tree(watching.records())
        watching.stop()
    assert replayed == server_tree(kafka)
