"""The job behind a slow or half-open link to its Kafka. Late rows arrive, and no row is lost."""

from __future__ import annotations

import os
import random
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from kafka import KafkaConsumer, KafkaProducer, TopicPartition
from kafka.admin import NewTopic
from pyspark.sql import SparkSession

from cli.embedded.kafka import KafkaCluster
from cli.embedded.process import free_port
from controller.contract.outputs import OUTPUTS
from streaming.sources import records
from tests.clients import kafka_admin
from tests.relay import Relay
from tests.streaming.checkpoints import newest_rows
from tests.streaming.cluster_records import Streams, life_of
from tests.streaming.job_in_a_thread import running
from tests.waiting import eventually
from transport.address import KafkaAddress

pytestmark = pytest.mark.nightly

_SEED = int(os.environ.get("KONTRAST_FAULTS_SEED", "20261124"))
_SILENT_SECONDS = float(os.environ.get("KONTRAST_FAULTS_SILENT_SECONDS", "2"))
_WARNED_WITHIN_SECONDS = 15  # 8 s, and the scheduling of a busy machine
_RECORDS = "records"


class Kafka:
    """A broker with one address for the test and one, behind the relay, for the job."""

    def __init__(self, cluster: KafkaCluster, relay: Relay) -> None:
        self._direct = cluster.bootstrap_servers[0]
        self.relay = relay
        self.behind_relay = f"127.0.0.1:{relay.port}"

    def send(self, lines: list[bytes]) -> None:
        with kafka_admin(self._direct) as admin:
            admin.create_topics([NewTopic(_RECORDS, 1, 1)])
        producer = KafkaProducer(bootstrap_servers=self._direct, acks="all")
        for line in lines:
            producer.send(_RECORDS, key=b"east", value=line)
        producer.flush()
        producer.close()

    def read(self, topic: str) -> list[bytes]:
        consumer = KafkaConsumer(
            bootstrap_servers=self._direct, auto_offset_reset="earliest", isolation_level="read_committed"
        )
        try:
            if not consumer.partitions_for_topic(topic):
                return []
            partition = TopicPartition(topic, 0)
            consumer.assign([partition])
            end = consumer.end_offsets([partition])[partition]
            lines: list[bytes] = []
            while consumer.position(partition) < end:
                for messages in consumer.poll(1000).values():
                    lines += [message.value for message in messages]
            return lines
        finally:
            consumer.close()


@pytest.fixture
def kafka(java: Path, tmp_path: Path) -> Iterator[Kafka]:
    port = free_port()
    cluster = KafkaCluster(tmp_path / "kafka")
    broker = cluster.brokers[1]
    with Relay(port) as relay:
        broker.settings |= {
            "listeners": f"PLAINTEXT://{broker.bootstrap_server},BEHIND://127.0.0.1:{port}",
            "advertised.listeners": f"PLAINTEXT://{broker.bootstrap_server},BEHIND://127.0.0.1:{relay.port}",
            "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,BEHIND:PLAINTEXT",
        }
        with cluster:
            yield Kafka(cluster, relay)


def test_a_slow_link_that_falls_silent_and_breaks_loses_no_row(
    kafka: Kafka,
    streams: Streams,
    spark: SparkSession,
    caplog: pytest.LogCaptureFixture,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(records, "_LOG_AGAIN_SECONDS", 3.0)

    def warned(words: str) -> list[float]:
        """Return the times of the log's lines on the Kafka behind the relay."""
        return [each.created for each in caplog.records if each.getMessage().startswith(f"Kafka at {server} {words}")]

    life = life_of("east", topics=10, losses=10)
    kafka.send(life.lines)
    server = kafka.behind_relay
    config = streams.config(
        source=KafkaAddress(server, _RECORDS), sink=KafkaAddress(server, "out"), max_batch_records=10
    )
    expected = life.rows()
    chance = random.Random(_SEED)
    with running(spark, config):
        eventually(lambda: kafka.read("out.gauges"))
        kafka.relay.delay_seconds = 0.02
        for warnings in (2, 0):
            written = len(kafka.read("out.metadata"))
            eventually(lambda: len(kafka.read("out.metadata")) > written)  # noqa: B023
            time.sleep(chance.uniform(0, 0.3))
            kafka.relay.go_silent()
            silent_at = time.time()
            eventually(lambda: len(warned("does not answer")) >= warnings)  # noqa: B023
            assert all(at - silent_at < _WARNED_WITHIN_SECONDS for at in warned("does not answer")[:1])
            time.sleep(_SILENT_SECONDS)
            kafka.relay.close_door()  # as when the peer answers again, without its former connections
            kafka.relay.speak()
            kafka.relay.open_door()
        assert len(kafka.read("out.metadata")) < len(expected["metadata"]), "all of it was in the middle"
        eventually(lambda: warned("is reached again"))
        kafka.relay.delay_seconds = 0.0
        eventually(lambda: newest_rows(kafka.read("out.gauges")) == newest_rows(expected["gauges"]))
        eventually(lambda: newest_rows(kafka.read("out.alerts")) == newest_rows(expected["alerts"]))
    for output in OUTPUTS:
        rows = kafka.read(f"out.{output}")
        assert list(dict.fromkeys(rows)) == expected[output], output
