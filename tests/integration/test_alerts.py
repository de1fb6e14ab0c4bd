"""Alerts on a real cluster, with the right cause, within the kind's patience and two seconds."""

from __future__ import annotations

import json

import pytest
from kazoo.client import KazooClient

from cli.embedded.kafka import KafkaCluster
from controller.contract.alert_kinds.kinds import ALERT_KINDS
from controller.contract.alert_row import AlertRow
from controller.contract.metadata_rows import ControllerRow
from tests.integration.conftest import Pipeline, create, told

BROKERS = (1, 2, 3)

pytestmark = pytest.mark.xdist_group("pipelines")
# Kontrast evaluates alerts at each heartbeat, one a second, by the forwarder's time.
NOTICED_MS = 2_000


@pytest.fixture
def cluster(start_kafka_cluster, request):
    return start_kafka_cluster(broker_ids=BROKERS, properties={"zookeeper.session.timeout.ms": request.param})


@pytest.fixture
def zookeeper(cluster):
    client = KazooClient(cluster.zookeeper.connect_string)
    client.start()
    yield client
    client.stop()
    client.close()


def in_time(alert: AlertRow) -> bool:
    """Return whether the alert opened as soon as its kind allows."""
    return alert.time_ms - alert.since_ms <= ALERT_KINDS[alert.alert].patience_ms + NOTICED_MS


def controller_of(pipeline: Pipeline) -> int:
    pipeline.until("there is a controller", lambda: controllers(pipeline)[-1:] not in ([], [-1]))
    return controllers(pipeline)[-1]


def controllers(pipeline: Pipeline) -> list[int]:
    return [row.broker for row in pipeline.rows("metadata") if isinstance(row, ControllerRow)]


@pytest.mark.nightly
@pytest.mark.parametrize("cluster", ["60000"], indirect=True)  # longer than it is paused, however busy the machine is
def test_a_paused_controller_is_overdue_and_an_edited_znode_makes_a_ghost(cluster: KafkaCluster, pipeline, zookeeper):
    create(cluster, t={0: [1, 2], 1: [2, 3], 2: [3, 1]})
    controller = controller_of(pipeline)

    cluster.brokers[controller].pause()
    assignment = {"version": 1, "partitions": {"0": [controller % 3 + 1]}}
    zookeeper.create("/brokers/topics/never", json.dumps(assignment).encode())
    overdue = told(pipeline, "ControllerOverdue")
    cluster.brokers[controller].resume()
    assert in_time(overdue)
    assert overdue.cause.startswith(f"controller {controller} in epoch ")
    assert "is late with 1 write" in overdue.cause
    assert "TopicChange: topic never was created" in overdue.cause
    assert told(pipeline, "ControllerOverdue", "resolved").time_ms > overdue.time_ms

    other = controller % 3 + 1
    value = json.loads(zookeeper.get("/controller")[0])
    zookeeper.set("/controller", json.dumps({**value, "brokerid": other}).encode())
    ghost = told(pipeline, "GhostController")
    assert in_time(ghost)
    assert f"/controller names broker {other} but was edited" in ghost.cause
    zookeeper.delete("/controller")
    assert told(pipeline, "GhostController", "resolved").time_ms > ghost.time_ms
    assert told(pipeline, "ControllerMoved").cause.startswith(f"broker {controller_of(pipeline)} became controller")


@pytest.mark.nightly
@pytest.mark.parametrize("cluster", ["3000"], indirect=True)
def test_a_stuck_deletion_and_an_unclean_election_name_the_brokers(cluster: KafkaCluster, pipeline, zookeeper):
    controller = controller_of(pipeline)
    first, second = (broker for broker in BROKERS if broker != controller)
    create(cluster, gone={0: [controller, first]}, risky={0: [second, first]})
    zookeeper.ensure_path("/config/topics")
    settings = {"version": 1, "config": {"unclean.leader.election.enable": "true"}}
    zookeeper.set("/config/topics/risky", json.dumps(settings).encode())
    change = {"version": 2, "entity_path": "topics/risky"}
    zookeeper.create("/config/changes/config_change_", json.dumps(change).encode(), sequence=True)
    pipeline.until("both topics are published", lambda: {"gone", "risky"} <= topics(pipeline))

    cluster.brokers[first].kill()
    crash = told(pipeline, f"BrokerCrashed/broker {first}")
    assert in_time(crash)
    assert f"broker {first} crashed at zxid 0x" in crash.cause
    zookeeper.create("/admin/delete_topics/gone")
    stuck = told(pipeline, f"DeletionStuck/broker {first}")
    assert in_time(stuck)
    assert f"deletion of gone waits for broker {first}, which is down: 1 partition is not deleted" in stuck.cause
    assert stuck.examples == ("gone-0",)

    cluster.brokers[second].kill()
    told(pipeline, f"PartitionsOffline/broker {second}")
    cluster.brokers[first].start()
    unclean = told(pipeline, "UncleanElection")
    assert in_time(unclean)
    assert f"risky-0 may have lost records that only broker {second} had" in unclean.cause
    assert f"broker {first} became leader without being in sync" in unclean.cause
    told(pipeline, f"DeletionStuck/broker {first}", "resolved")
    told(pipeline, f"PartitionsOffline/broker {second}", "resolved")


def topics(pipeline: Pipeline) -> set[str]:
    return {row.topic for row in pipeline.rows("metadata") if getattr(row, "leader", -1) >= 0}
