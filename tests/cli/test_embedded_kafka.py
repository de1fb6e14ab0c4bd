from __future__ import annotations

import pytest

from cli.embedded.kafka import KafkaBroker
from cli.embedded.process import EmbeddedError


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
