"""The Kafka sink against a real broker, with its order, one partition, patience, and sentences."""

from __future__ import annotations

import random
import socket
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import msgspec
import pytest
from kafka import KafkaConsumer, KafkaProducer, TopicPartition
from kafka.admin import NewTopic
from kafka.errors import KafkaConnectionError

from cli.embedded.kafka import KafkaCluster
from controller.contract.records import Record, RecordKind, decode_record
from ingest.config import IngestConfig
from ingest.errors import IngestError
from ingest.forwarder import Forwarder
from ingest.sinks import kafka_sink
from ingest.sinks.kafka_sink import KafkaSink
from ingest.sinks.sink import SinkUnavailableError
from tests.clients import kafka_admin
from tests.waiting import eventually
from transport.address import KafkaAddress
from transport.topics import request_topic


def create(topic: KafkaAddress, partitions: int, **configs: str) -> None:
    with kafka_admin(topic.bootstrap_servers) as admin:
        admin.create_topics([NewTopic(topic.topic, partitions, 1, topic_configs=configs)])


def record(seq: int, data: str = "x" * 500) -> Record:
    return Record(cluster="blue", generation=1, seq=seq, kind=RecordKind.NODE, observed_ms=1, path="/p", data=data)


def is_delivered(sink: KafkaSink, record: Record) -> bool:
    try:
        sink.append([record])
    except SinkUnavailableError:
        return False
    return True


def consume(topic: KafkaAddress) -> dict[int, list[tuple[bytes, Record]]]:
    """Return keys and records by partition, up to the topic's end."""
    consumer = KafkaConsumer(bootstrap_servers=topic.bootstrap_servers, auto_offset_reset="earliest")
    partitions = [TopicPartition(topic.topic, number) for number in consumer.partitions_for_topic(topic.topic)]
    consumer.assign(partitions)
    ends = consumer.end_offsets(partitions)
    found: dict[int, list[tuple[bytes, Record]]] = {partition.partition: [] for partition in partitions}
    while any(consumer.position(partition) < end for partition, end in ends.items()):
        for messages in consumer.poll(timeout_ms=500).values():
            for message in messages:
                found[message.partition].append((message.key, decode_record(message.value)))
    consumer.close()
    return found


def test_the_topic_is_made_with_one_partition_and_keeps_the_order(changes: KafkaAddress, sink: KafkaSink) -> None:
    sink.append([record(seq) for seq in range(5000)])
    sink.append([record(5000)])
    found = consume(changes)
    assert list(found) == [0]
    assert [read.seq for _, read in found[0]] == list(range(5001))
    assert {key for key, _ in found[0]} == {b"blue"}


def test_a_topic_of_many_partitions_keeps_a_cluster_in_one_of_them(changes: KafkaAddress) -> None:
    create(changes, partitions=6)
    sink = KafkaSink(changes, "blue", threading.Event(), lambda _: None)
    sink.append([record(seq) for seq in range(100)])
    sink.close()
    sizes = sorted(len(records) for records in consume(changes).values())
    assert sizes == [0, 0, 0, 0, 0, 100]


def test_a_record_that_the_topic_does_not_take_is_a_sentence(changes: KafkaAddress) -> None:
    create(changes, partitions=1, **{"max.message.bytes": "200"})
    sink = KafkaSink(changes, "blue", threading.Event(), lambda _: None)
    with pytest.raises(IngestError, match=rf"kafka://.*/{changes.topic} refuses records"):
        sink.append([record(0), record(1, data=random.Random(1).randbytes(2000).hex())])


@pytest.mark.nightly
def test_a_sink_whose_broker_was_away_works_again(start_kafka_cluster: Callable[..., KafkaCluster]) -> None:
    cluster = start_kafka_cluster()
    changes = KafkaAddress(",".join(cluster.bootstrap_servers), "changes")
    stop = threading.Event()
    sink = KafkaSink(changes, "blue", stop, lambda _: None)
    sink.append([record(0)])
    broker = cluster.brokers[1]
    broker.kill()
    stop.set()  # a stopping forwarder gives up soon instead of waiting for the delivery timeout
    with pytest.raises(SinkUnavailableError, match="changes"):
        sink.append([record(1)])
    stop.clear()
    broker.start()
    eventually(lambda: is_delivered(sink, record(2)))
    sink.close()
    sequence = [read.seq for _, read in consume(changes)[0]]
    assert sequence[0] == 0
    assert sequence[-1] == 2


def test_topics_that_may_not_be_made_are_named_all_at_once_with_the_command(
    start_kafka_cluster: Callable[..., KafkaCluster],
) -> None:
    # With more replicas than brokers, the brokers refuse every topic.
    (server,) = start_kafka_cluster(properties={"default.replication.factor": "3"}).bootstrap_servers
    with pytest.raises(IngestError) as refused:
        KafkaSink(KafkaAddress(server, "changes"), "blue", threading.Event(), lambda _: None)
    said = str(refused.value)
    assert f"Kafka at {server} lacks the topics changes, changes.snapshot-wanted and refuses to create them" in said
    assert "InvalidReplicationFactorError" in said
    assert f"for topic in changes changes.snapshot-wanted; do kafka-topics.sh --bootstrap-server {server}" in said


def test_topics_that_would_lose_or_misplace_messages_are_refused_with_the_commands(changes: KafkaAddress) -> None:
    server, beside = changes.bootstrap_servers, KafkaAddress(changes.bootstrap_servers, request_topic(changes))
    create(changes, 1, **{"cleanup.policy": "compact,delete"})
    create(beside, 2)
    with pytest.raises(IngestError) as refused:
        KafkaSink(changes, "blue", threading.Event(), lambda _: None)
    said = str(refused.value)
    assert f"topic {changes.topic} has cleanup.policy=compact,delete, all messages but the newest of each key" in said
    assert f"--entity-name {changes.topic} --add-config cleanup.policy=delete" in said
    assert f"topic {beside.topic} has 2 partitions in place of 1" in said
    assert f"Run kafka-topics.sh --bootstrap-server {server} --delete --topic {beside.topic}" in said


def test_an_unreachable_kafka_is_named_in_time() -> None:
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        there = KafkaAddress(f"127.0.0.1:{unused.getsockname()[1]}", "changes")
        config = IngestConfig(cluster="c", zookeeper="127.0.0.1:1", to=there, connect_timeout_seconds=1)
        with pytest.raises(IngestError, match=rf"kafka://{there.bootstrap_servers}/changes could not be reached"):
            Forwarder(config).run(threading.Event())


def test_a_message_in_the_topic_beside_it_asks_for_a_complete_read_once(changes: KafkaAddress, sink: KafkaSink) -> None:
    assert not sink.complete_read_requested()
    producer = KafkaProducer(bootstrap_servers=changes.bootstrap_servers)
    producer.send(request_topic(changes), b"please").get(60)
    producer.close()
    eventually(sink.complete_read_requested)
    assert not sink.complete_read_requested()


def test_a_topic_knows_each_clusters_newest_generation(sink: KafkaSink, changes: KafkaAddress) -> None:
    assert sink.newest_generation() == -1
    sink.append([msgspec.structs.replace(record(0), generation=10**15), *map(record, range(1_500))])
    assert sink.newest_generation() == 1
    sink.append([msgspec.structs.replace(record(0), generation=10**15)])
    other = KafkaSink(changes, "green", threading.Event(), lambda _: None)
    assert (sink.newest_generation(), other.newest_generation()) == (10**15, -1)
    other.close()


def test_clusters_that_wait_for_one_connection_share_its_failure(monkeypatch: pytest.MonkeyPatch) -> None:
    clusters, attempts = 5, []
    all_wait = threading.Barrier(clusters)

    def refuse(**_options: object) -> None:
        attempts.append(1)
        raise KafkaConnectionError("no broker")

    def open_one() -> None:
        all_wait.wait()
        with pytest.raises(SinkUnavailableError, match="no connection is accepted"):
            KafkaSink(address, "blue", threading.Event(), lambda _identity: None)

    monkeypatch.setattr(kafka_sink, "KafkaAdminClient", refuse)
    monkeypatch.setattr(kafka_sink, "_CONNECT_AGAIN_SECONDS", 3600.0)
    address = KafkaAddress("127.0.0.1:1", "changes")
    clients = kafka_sink._open_clients[address] = kafka_sink._Clients(address)
    clients.users = 1  # another cluster keeps the clients open
    with ThreadPoolExecutor(clusters) as threads:
        for opening in [threads.submit(open_one) for _ in range(clusters)]:
            opening.result()
    del kafka_sink._open_clients[address]
    assert len(attempts) == 1
