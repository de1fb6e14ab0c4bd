"""Storms on a real cluster, with hundreds of topics and repeated failovers. The replica's end state must be true.

KONTRAST_FAULTS_TOPICS=1000 gives the storm of topics its full size.
"""

from __future__ import annotations

import os
import random
import threading
import time
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest
from kafka.admin import KafkaAdminClient, NewTopic
from kafka.errors import NotControllerError, TopicAlreadyExistsError
from kazoo.client import KazooClient

from cli.embedded.kafka import KafkaCluster
from controller.contract.alert_row import AlertRow
from controller.contract.effect_rows import Status, Transition
from controller.contract.gauges_row import GaugesRow
from controller.contract.records import RecordKind
from controller.contract.row import Row
from controller.model.context import Context
from controller.restore.stored_context import new_context
from controller.step import steps
from ingest.complete_read import read_once
from ingest.config import IngestConfig, ZooKeeperConfig
from tests.clients import zookeeper_client
from tests.ingest.conftest import Watching, replayed_tree, server_tree
from tests.waiting import eventually
from transport.address import JournalAddress

pytestmark = [pytest.mark.nightly, pytest.mark.xdist_group("storms")]  # three brokers, started once

_SEED = int(os.environ.get("KONTRAST_FAULTS_SEED", "20261124"))
_TOPICS = int(os.environ.get("KONTRAST_FAULTS_TOPICS", "200"))
_AT_ONCE = 50
_FAILOVERS = 10
_BROKERS = (1, 2, 3)


@pytest.fixture(scope="module")
def cluster(java: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[KafkaCluster]:
    with KafkaCluster(tmp_path_factory.mktemp("storms"), broker_ids=_BROKERS) as cluster:
        yield cluster


@pytest.fixture
def kazoo(cluster: KafkaCluster) -> Iterator[KazooClient]:
    with zookeeper_client(cluster.zookeeper.connect_string, 30) as client:
        yield client


@pytest.fixture
def watching(cluster: KafkaCluster, tmp_path: Path) -> Iterator[Watching]:
    to = JournalAddress(tmp_path / "changes")
    watching = Watching(IngestConfig(cluster="c", zookeeper=cluster.zookeeper.connect_string, to=to))
    watching.start()
    watching.wait_for_snapshot()
    yield watching
    watching.stop()


def leadership(context: Context) -> dict[str, object]:
    """Return every partition with its state, replicas, leader, epoch and ISR."""
    return {
        f"{name}-{number}": (
            partition.state.word,
            partition.replicas,
            (value.leader, value.leader_epoch, value.isr) if (value := partition.zk_state) else None,
        )
        for name, topic in context.topics
        for number, partition in topic.partitions.items()
    }


def fresh(cluster: KafkaCluster) -> dict[str, object]:
    config = ZooKeeperConfig(zookeeper=cluster.zookeeper.connect_string)
    return leadership(
        steps(
            new_context("c", chunk_count=8), read_once(config, threading.Event(), lambda *_: None).records("c")
        ).context
    )


def derived(watching: Watching) -> tuple[Context, tuple[Row, ...]]:
    outcome = steps(new_context("c", chunk_count=8), watching.records())
    return outcome.context, outcome.effects


def assert_true_to(cluster: KafkaCluster, watching: Watching, client: KazooClient) -> tuple[Row, ...]:
    """Check that records, metadata, transitions and alerts are complete, without additions or repetitions."""
    eventually(lambda: newest_gauges(derived(watching)[1]).pending_writes == 0)
    watching.settled()
    records = watching.records()
    assert replayed_tree(records) == server_tree(client)
    assert [record.seq for record in records] == list(range(records[0].seq, records[0].seq + len(records)))
    assert watching.count(RecordKind.SESSION) == 1
    context, rows = derived(watching)
    assert leadership(context) == fresh(cluster)
    finals = [(row.effect, row.seq) for row in rows if isinstance(row, Transition) and row.status is Status.FINAL]
    assert len(finals) == len(set(finals))
    gauges = newest_gauges(rows)
    assert gauges.pending_writes == gauges.topics_to_delete == gauges.offline_partitions == gauges.refused == 0
    assert gauges.writes.get("unexplained", 0) == 0
    assert gauges.divergences.keys() <= {"missed_changes"}, "values that were replaced before they were read"
    return rows


def newest_gauges(rows: tuple[Row, ...]) -> GaugesRow:
    return [row for row in rows if isinstance(row, GaugesRow)][-1]


def opened(rows: tuple[Row, ...]) -> set[str]:
    return {row.alert for row in rows if isinstance(row, AlertRow) and row.state == "open"}


@pytest.mark.nightly
def test_topics_created_and_deleted_by_the_hundred_leave_nothing(
    cluster: KafkaCluster, watching: Watching, kazoo: KazooClient
) -> None:
    before = leadership(derived(watching)[0])
    chance = random.Random(_SEED)
    with closing(KafkaAdminClient(bootstrap_servers=cluster.bootstrap_servers)) as admin:
        names = [f"topic-{number}" for number in range(_TOPICS)]
        for begin in range(0, _TOPICS, _AT_ONCE):
            block = names[begin : begin + _AT_ONCE]
            assignments = [{0: chance.sample(_BROKERS, 2)} for _ in block]
            admin.create_topics([NewTopic(n, replica_assignments=a) for n, a in zip(block, assignments, strict=True)])
            if begin:
                admin.delete_topics(names[begin - _AT_ONCE : begin])
        admin.delete_topics(names[-_AT_ONCE:])
    topics = "/brokers/topics"
    eventually(lambda: set(kazoo.get_children(topics)) <= {"__consumer_offsets"})
    rows = assert_true_to(cluster, watching, kazoo)
    assert leadership(derived(watching)[0]) == before
    created = {row.topic for row in rows if isinstance(row, Transition) and row.to_state == "OnlinePartition"}
    assert created >= set(names)
    assert opened(rows) == set()


def is_asked(admin: KafkaAdminClient, topic: NewTopic) -> bool:
    """Return whether a broker took the request. The client gives up while it finds no controller."""
    try:
        admin.create_topics([topic])
    except (RuntimeError, NotControllerError):
        return False
    except TopicAlreadyExistsError:  # by an attempt whose answer was lost
        pass
    return True


def controller(client: KazooClient) -> int:
    return int(client.get("/controller_epoch")[0]) if client.exists("/controller") else -1


def test_ten_failovers_in_a_row_are_followed(cluster: KafkaCluster, watching: Watching, kazoo: KazooClient) -> None:
    chance = random.Random(_SEED)
    first = controller(kazoo)
    with closing(KafkaAdminClient(bootstrap_servers=cluster.bootstrap_servers)) as admin:
        for failover in range(1, _FAILOVERS + 1):
            new = NewTopic(f"before-{failover}", replica_assignments={0: chance.sample(_BROKERS, 2)})
            eventually(lambda: is_asked(admin, new))  # noqa: B023
            time.sleep(chance.uniform(0, 0.3))  # some come in the middle of the creation
            kazoo.delete("/controller")
            eventually(lambda: controller(kazoo) == first + failover)  # noqa: B023
    rows = assert_true_to(cluster, watching, kazoo)
    gauges = newest_gauges(rows)
    assert gauges.controller_epoch == first + _FAILOVERS
    assert opened(rows) == {"ControllerFlapping", "ControllerMoved"}
