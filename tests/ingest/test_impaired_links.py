"""A forwarder behind a slow, lossy or half-open link to ZooKeeper: no loss, repetition, invention, hang or leak."""

from __future__ import annotations

import os
import random
import threading
from collections.abc import Callable, Iterator

import pytest
from kazoo.client import KazooClient

from controller.contract.records import RecordKind
from ingest.zookeeper.restorable import SharedThreadsHandler
from tests.ingest.conftest import Watching, make_cluster, replayed_tree, server_tree
from tests.ingest.zookeeper_in_memory import ZooKeeperInMemory
from tests.relay import Relay
from tests.waiting import eventually

Watch = Callable[..., Watching]
_SEED = int(os.environ.get("KONTRAST_FAULTS_SEED", "20261124"))
_CHANGES = 200
_SESSION_SECONDS = 3


@pytest.fixture
def relay(in_memory: ZooKeeperInMemory) -> Iterator[Relay]:
    with Relay(in_memory.port) as relay:
        yield relay


def change_at_random(kafka: KazooClient, chance: random.Random, count: int) -> None:
    """Create, change and delete topics and deletions, many of them under earlier names."""
    for _ in range(count):
        path = chance.choice(("/brokers/topics/", "/admin/delete_topics/")) + chance.choice("abcdefgh")
        if not kafka.exists(path):
            kafka.create(path, b"new")
        elif chance.random() < 0.5:
            kafka.set(path, str(chance.random()).encode())
        else:
            kafka.delete(path)


def threads_that_stay() -> set[threading.Thread]:
    """Return the present threads, with those that all sessions of the process share."""
    SharedThreadsHandler().start()
    return set(threading.enumerate())


def assert_nothing_is_left(relay: Relay, threads: set[threading.Thread]) -> None:
    """Check that the forwarder has ended its threads and closed its connections."""
    eventually(lambda: relay.open_connections == 0)
    eventually(
        lambda: {each.name for each in set(threading.enumerate()) - threads if "pump" not in each.name},
        lambda names: not names,
    )


@pytest.mark.nightly
@pytest.mark.parametrize(
    ("delay_seconds", "bytes_per_second", "lost"),
    [
        (0.1, 1e9, 0.0),
        pytest.param(0.005, 20_000, 0.0, marks=pytest.mark.nightly),
        pytest.param(0.005, 1e9, 0.05, marks=pytest.mark.nightly),
    ],
)
def test_a_slow_or_lossy_link_delays_and_loses_nothing(
    in_memory: ZooKeeperInMemory,
    kafka: KazooClient,
    watch: Watch,
    relay: Relay,
    delay_seconds: float,
    bytes_per_second: float,
    lost: float,
) -> None:
    make_cluster(kafka)
    for number in range(100):
        kafka.create(f"/brokers/topics/of-the-beginning-{number}", b"x" * 200)
    relay.delay_seconds, relay.bytes_per_second, relay.lost = delay_seconds, bytes_per_second, lost
    threads = threads_that_stay()
    watching = watch(zookeeper=f"127.0.0.1:{relay.port}", session_timeout_seconds=_SESSION_SECONDS)
    change_at_random(kafka, random.Random(_SEED), _CHANGES)
    kafka.create("/brokers/topics/the-last-one", b"{}")
    eventually(lambda: "/brokers/topics/the-last-one" in {record.path for record in watching.records()})
    watching.settled()
    records = watching.records()
    assert replayed_tree(records) == server_tree(kafka)
    assert [record.seq for record in records] == list(range(records[0].seq, records[0].seq + len(records)))
    assert watching.count(RecordKind.SESSION) == 1, "the session outlives a slow link"
    assert watching.stop() < 5
    assert_nothing_is_left(relay, threads)


@pytest.mark.nightly
def test_half_open_connections_are_noticed_and_replaced(
    in_memory: ZooKeeperInMemory, kafka: KazooClient, watch: Watch, relay: Relay
) -> None:
    make_cluster(kafka)
    chance = random.Random(_SEED)
    threads = threads_that_stay()
    watching = watch(zookeeper=f"127.0.0.1:{relay.port}", session_timeout_seconds=_SESSION_SECONDS)
    for silence in (1, 2):
        change_at_random(kafka, chance, 20)
        relay.go_silent()
        change_at_random(kafka, chance, 20)
        kafka.create(f"/brokers/topics/in-silence-{silence}", b"{}")
        eventually(lambda: watching.count(RecordKind.SESSION, "suspended") == silence)  # noqa: B023
        relay.speak()
        change_at_random(kafka, chance, 20)
        eventually(lambda: watching.count(RecordKind.SESSION, '"connected"') == silence + 1)  # noqa: B023
        watching.settled()
        assert replayed_tree(watching.records()) == server_tree(kafka)
    records = watching.records()
    assert [record.seq for record in records] == list(range(records[0].seq, records[0].seq + len(records)))
    assert {record.generation for record in records} == {records[0].generation}
    relay.go_silent()
    assert watching.stop() < 10, "a server that does not answer holds nobody up"
    assert_nothing_is_left(relay, threads)


def test_a_link_that_falls_silent_in_the_complete_read_delays_it_alone(
    in_memory: ZooKeeperInMemory, kafka: KazooClient, watch: Watch, relay: Relay
) -> None:
    make_cluster(kafka)
    for number in range(50):
        kafka.create(f"/brokers/topics/{number}", b"x" * 1000)
    relay.bytes_per_second = 20_000
    watching = watch(zookeeper=f"127.0.0.1:{relay.port}", session_timeout_seconds=_SESSION_SECONDS, wait=False)
    eventually(lambda: relay.accepted == 1)
    relay.go_silent()
    kafka.create("/brokers/topics/meanwhile", b"{}")
    eventually(lambda: relay.accepted > 1)
    relay.bytes_per_second = float("inf")
    relay.speak()
    watching.wait_for_snapshot()
    watching.settled()
    assert replayed_tree(watching.records()) == server_tree(kafka)
    assert watching.count(RecordKind.SNAPSHOT_BEGIN) == watching.count(RecordKind.SNAPSHOT_END) == 1
