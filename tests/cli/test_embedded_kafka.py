from __future__ import annotations

import pytest
from kafka.admin import KafkaAdminClient, NewTopic
from kazoo.client import KazooClient

from cli.embedded.kafka import KafkaBroker
from cli.embedded.process import EmbeddedError
from tests.waiting import eventually

SHORT_SESSION = {"zookeeper.session.timeout.ms": "2000"}


@pytest.mark.nightly
def test_a_killed_broker_comes_back_with_its_topics_once_its_old_session_has_ended(start_kafka_cluster):
    cluster = start_kafka_cluster(properties=SHORT_SESSION)
    broker = cluster.brokers[1]
    create_topic(broker, "kept")
    first_registration = registration_of(cluster)
    broker.kill()
    assert not broker.running
    broker.start()
    assert registration_of(cluster) > first_registration
    eventually(lambda: "kept" in topics_of(broker))  # once the new controller has sent it


@pytest.mark.nightly
def test_a_stopped_broker_takes_its_registration_with_it(start_kafka_cluster):
    cluster = start_kafka_cluster(properties=SHORT_SESSION)
    cluster.brokers[1].stop()
    assert registration_of(cluster) is None


@pytest.mark.nightly
def test_a_paused_broker_loses_its_session_and_registers_again_when_resumed(start_kafka_cluster):
    cluster = start_kafka_cluster(properties=SHORT_SESSION)
    first_registration = registration_of(cluster)
    cluster.brokers[1].pause()
    eventually(lambda: registration_of(cluster) is None)
    cluster.brokers[1].resume()
    eventually(lambda: (registration_of(cluster) or 0) > first_registration)


def test_no_process_of_a_cluster_remains(start_kafka_cluster):
    cluster = start_kafka_cluster()
    cluster.kill()
    assert not cluster.zookeeper.running
    assert not cluster.brokers[1].running


def test_a_broker_without_zookeeper_is_refused_by_address(java, tmp_path, monkeypatch):
    monkeypatch.setattr("cli.embedded.kafka._ZOOKEEPER_SECONDS", 1)
    broker = KafkaBroker(1, "127.0.0.1:1", tmp_path)
    with pytest.raises(EmbeddedError, match="ZooKeeper at 127.0.0.1:1 does not answer"):
        broker.start()


def registration_of(cluster):
    client = KazooClient(hosts=cluster.zookeeper.connect_string)
    client.start(timeout=30)
    try:
        znode = client.exists("/brokers/ids/1")
        return znode.czxid if znode else None
    finally:
        client.stop()
        client.close()


def create_topic(broker, name):
    with_admin(broker, lambda admin: admin.create_topics([NewTopic(name, num_partitions=1, replication_factor=1)]))


def topics_of(broker):
    return with_admin(broker, lambda admin: admin.list_topics())


def with_admin(broker, do):
    admin = KafkaAdminClient(bootstrap_servers=broker.bootstrap_server)
    try:
        return do(admin)
    finally:
        admin.close()
