"""The job with a real broker at both ends."""

from __future__ import annotations

import json
import threading
import time
from contextlib import closing

import pytest
from kafka import KafkaConsumer, KafkaProducer, TopicPartition
from kafka.admin import ConfigResource, ConfigResourceType, NewTopic

from controller.contract.outputs import OUTPUTS, STANDING_OUTPUTS, decode_row
from controller.contract.records import RecordKind
from streaming.errors import StreamError
from tests.clients import kafka_admin
from tests.streaming.checkpoints import drop_newest, forget_state, newest_rows
from tests.streaming.cluster_records import life_of
from tests.streaming.job_in_a_thread import running
from tests.waiting import eventually
from transport.address import KafkaAddress


def _create_topics(server, *topics, partitions=1, **settings):
    with kafka_admin(server) as admin:
        admin.create_topics([NewTopic(topic, partitions, 1, topic_configs=settings) for topic in topics])


def _send(server, topic, lines):
    producer = KafkaProducer(bootstrap_servers=server, acks="all")
    for line in lines:
        producer.send(topic, key=b"east", value=line)
    producer.flush()
    producer.close()


def _read(server, topic):
    consumer = KafkaConsumer(bootstrap_servers=server, auto_offset_reset="earliest", enable_auto_commit=False)
    partition = TopicPartition(topic, 0)
    consumer.assign([partition])
    end = consumer.end_offsets([partition])[partition]
    rows = []
    while consumer.position(partition) < end:
        for messages in consumer.poll(1000).values():
            rows += [(message.key.decode(), message.value) for message in messages]
    consumer.close()
    return rows


def _cleanup_policies(server, topics):
    with kafka_admin(server) as admin:
        described = admin.describe_configs([ConfigResource(ConfigResourceType.TOPIC, topic) for topic in topics])
    return {topic: settings.get("cleanup.policy", {}).get("value") for topic, settings in described["topic"].items()}


def test_records_from_kafka_become_rows_in_kafka_across_a_restart(shared_broker, own_name, streams, work_off):
    """The source does not exist at first. The job makes its outputs, because brokers would give them other settings."""
    life = life_of("east", topics=5)
    sink = KafkaAddress(shared_broker, f"{own_name}-out")  # a name that contains the source's name, but another topic
    config = streams.config(source=KafkaAddress(shared_broker, own_name), sink=sink)
    work_off(config)
    _create_topics(shared_broker, own_name)
    half = len(life.lines) // 2
    _send(shared_broker, own_name, [None, b"garbage", *life.lines[:half]])
    work_off(config)
    _send(shared_broker, own_name, life.lines[half:])
    work_off(config)
    expected = life.rows()
    for output in OUTPUTS:
        rows = _read(shared_broker, f"{own_name}-out.{output}")
        if output == "refused":
            places = [(json.loads(row)["path"], json.loads(row)["data"]) for _, row in rows]
            source = f"kafka://{shared_broker}/{own_name}"
            assert sorted(places) == [(f"{source}@0:0", ""), (f"{source}@0:1", "garbage")]
        else:
            assert [value for _, value in rows] == expected[output]
            assert [key for key, _ in rows] == [decode_row(value).subject_key() for _, value in rows]
    policies = _cleanup_policies(shared_broker, [f"{sink.topic}.{output}" for output in (*OUTPUTS, "job")])
    compacted = {topic.rpartition(".")[2] for topic, policy in policies.items() if policy == "compact"}
    assert compacted == {*STANDING_OUTPUTS, "job"}
    with closing(KafkaConsumer(bootstrap_servers=shared_broker)) as consumer:
        assert {len(consumer.partitions_for_topic(topic)) for topic in policies} == {1}


@pytest.mark.nightly
@pytest.mark.parametrize("newest", [1, 2, None])
def test_a_checkpoint_behind_the_topics_leaves_readers_with_the_newest_rows(
    shared_broker, own_name, streams, spark, work_off, newest
):
    life = life_of("east", topics=8)
    config = streams.config(sink=KafkaAddress(shared_broker, own_name), max_batch_bytes=5000)
    streams.append(life.lines[:-20])
    work_off(config)
    forget_state(spark)
    drop_newest(streams, newest)
    streams.append(life.lines[-20:])
    work_off(config)
    expected = life.rows()
    for output in OUTPUTS:
        rows = [value for _, value in _read(shared_broker, f"{own_name}.{output}")]
        assert newest_rows(rows) == newest_rows(expected[output])
        assert list(dict.fromkeys(rows)) == list(dict.fromkeys(expected[output]))
    assert len(_read(shared_broker, f"{own_name}.gauges")) > len(expected["gauges"]), "nothing was written again"


def _delete_topic(server, topic):
    with kafka_admin(server) as admin:
        admin.delete_topics([topic])


def test_a_source_that_is_deleted_under_the_job_is_named_until_it_is_back(
    shared_broker, own_name, streams, spark, caplog
):
    _create_topics(shared_broker, own_name)
    source = KafkaAddress(shared_broker, own_name)
    _send(shared_broker, own_name, life_of("east", topics=1).lines)

    def lines():
        return [record.getMessage() for record in caplog.records if f"the topic of {source} " in record.getMessage()]

    with running(spark, streams.config(source=source)):
        eventually(lambda: streams.read("gauges"))
        assert lines() == []
        _delete_topic(shared_broker, own_name)
        deleted_at = time.time()
        (gone,) = eventually(lines)
        assert gone.startswith(f"the topic of {source} does not exist, and no record arrives until")
        seconds = [record.created for record in caplog.records if record.getMessage() == gone][0] - deleted_at
        print(f"named {seconds:.1f} s after the deletion")
        _create_topics(shared_broker, own_name)
        assert eventually(lines, lambda found: len(found) == 2)[1].startswith(
            f"the topic of {source} exists again, after "
        )


def test_stopping_does_not_wait_for_kafka_that_is_away(streams):
    from streaming.sources.records import wait_for_kafka

    stop = threading.Event()
    stop.set()
    wait_for_kafka(KafkaAddress("127.0.0.1:1", "records"), 60, stop)


def test_a_rebuild_begins_at_the_newest_complete_snapshot_that_kafka_holds(shared_broker, own_name, streams, work_off):
    _create_topics(shared_broker, own_name)
    life, again = life_of("east", topics=3), life_of("east", topics=2, losses=1).in_generation(2)
    unended = life_of("east", topics=2).in_generation(3).lines[:5]
    config = streams.config(source=KafkaAddress(shared_broker, own_name))
    _send(shared_broker, own_name, [b"garbage", *life.lines, *again.lines])
    work_off(config)
    before = streams.read_all()
    work_off(config, rebuild=True)
    expected = again.rows()
    after = streams.read_all()
    assert {output: rows[len(before[output]) :] for output, rows in after.items()} == expected
    _send(shared_broker, own_name, unended)
    work_off(config)
    assert streams.read_all()["metadata"] == after["metadata"]


@pytest.mark.nightly
def test_topics_that_may_not_be_made_are_named_all_at_once_with_the_command(start_kafka_cluster, streams, work_off):
    # With more replicas than brokers, the brokers refuse every topic.
    (server,) = start_kafka_cluster(properties={"default.replication.factor": "3"}).bootstrap_servers
    _create_topics(server, "out.gauges", **{"cleanup.policy": "compact"})
    with pytest.raises(StreamError) as refused:
        work_off(streams.config(sink=KafkaAddress(server, "out")))
    said = str(refused.value)
    assert f"Kafka at {server} lacks the topics out.transitions, out.requests, out.metadata, out.alerts, " in said
    assert "InvalidReplicationFactorException" in said
    assert (
        f"for topic in out.metadata out.alerts out.job; do kafka-topics.sh --bootstrap-server {server} --create "
        "--topic $topic --partitions 1 --config cleanup.policy=compact --config segment.bytes=8388608 "
        "--config min.cleanable.dirty.ratio=0.1; done"
    ) in said
    assert "out.gauges" not in said


def test_topics_that_would_lose_or_misplace_rows_are_refused_with_the_commands(
    shared_broker, own_name, streams, work_off
):
    _create_topics(shared_broker, f"{own_name}.alerts", partitions=3, **{"cleanup.policy": "compact"})
    _create_topics(shared_broker, f"{own_name}.metadata", f"{own_name}.job")  # dropped by age, as brokers make them
    streams.append(life_of("east", topics=1).lines)
    config = streams.config(sink=KafkaAddress(shared_broker, own_name))
    with pytest.raises(StreamError) as refused:
        work_off(config)
    command = f"kafka-configs.sh --bootstrap-server {shared_broker} --alter --entity-type topics --entity-name $topic"
    assert str(refused.value) == (
        f"Kafka at {shared_broker}: topics {own_name}.metadata, {own_name}.job have cleanup.policy=delete, "
        "rows that still hold would be dropped when they are old. "
        f"Run for topic in {own_name}.metadata {own_name}.job; do {command} --add-config "
        "cleanup.policy=compact,segment.bytes=8388608,min.cleanable.dirty.ratio=0.1; done; "
        f"topic {own_name}.alerts has 3 partitions in place of 1, "
        "readers would not get messages in the order in which they were written. "
        f"Run kafka-topics.sh --bootstrap-server {shared_broker} --delete --topic {own_name}.alerts"
    )


def test_a_stream_that_keeps_each_clusters_newest_record_alone_is_refused(shared_broker, own_name, streams, work_off):
    _create_topics(shared_broker, own_name, **{"cleanup.policy": "compact"})
    with pytest.raises(StreamError, match=f"topic {own_name} has cleanup.policy=compact, all messages but the newest"):
        work_off(streams.config(source=KafkaAddress(shared_broker, own_name)))


@pytest.mark.nightly
def test_a_topic_that_grows_without_bound_is_named_and_written(shared_broker, own_name, streams, work_off, caplog):
    caplog.set_level("WARNING")
    settings = {"cleanup.policy": "delete", "retention.ms": "-1", "retention.bytes": "-1"}  # keeps every record
    _create_topics(shared_broker, f"{own_name}.metadata", **settings)
    _create_topics(shared_broker, f"{own_name}.transitions", **{"cleanup.policy": "compact"})
    life = life_of("east", topics=1)
    streams.append(life.lines)
    work_off(streams.config(sink=KafkaAddress(shared_broker, own_name)))
    assert f"topic {own_name}.transitions has cleanup.policy=compact, and grows without bound" in caplog.text
    assert [value for _, value in _read(shared_broker, f"{own_name}.metadata")] == life.rows()["metadata"]


def _register(life, server):
    """Register this server's broker in the watched cluster too."""
    with kafka_admin(server) as admin:
        (broker,) = admin.describe_cluster()["brokers"]
    host, _, port = server.rpartition(":")
    value = {"version": 4, "host": host, "port": int(port), "jmx_port": -1, "endpoints": [f"PLAINTEXT://{server}"]}
    path = f"/brokers/ids/{broker['node_id' if 'node_id' in broker else 'broker_id']}"
    life.send(RecordKind.NODE, path, {**value, "timestamp": "1700000000000"}, ephemeral_owner=99)


def test_outputs_do_not_go_to_the_watched_cluster_nor_at_a_restart(shared_broker, own_name, streams, work_off):
    life = life_of("east", topics=2)
    _register(life, shared_broker)
    config = streams.config(sink=KafkaAddress(shared_broker, own_name))
    streams.append(life.lines)
    for _ in range(2):
        with pytest.raises(StreamError, match=f"{own_name} is in the watched cluster east itself .* {shared_broker}"):
            work_off(config)
    for output in OUTPUTS:
        assert not _read(shared_broker, f"{own_name}.{output}")


def _cluster_id(server):
    with kafka_admin(server) as admin:
        return admin.describe_cluster()["cluster_id"]


@pytest.mark.nightly
def test_clusters_with_the_same_brokers_are_distinguished_by_their_ids(shared_broker, own_name, streams, work_off):
    life = life_of("east", topics=2)
    life.send(RecordKind.NODE, "/cluster/id", {"version": "1", "id": "another-cluster"})
    _register(life, shared_broker)
    streams.append(life.lines)
    config = streams.config(sink=KafkaAddress(shared_broker, own_name))
    work_off(config)
    assert _read(shared_broker, f"{own_name}.metadata")
    other = life_of("west", topics=2)
    other.send(RecordKind.NODE, "/cluster/id", {"version": "1", "id": _cluster_id(shared_broker)})
    streams.append(other.lines)
    with pytest.raises(StreamError, match=f"{own_name} is in the watched cluster west itself .cluster id "):
        work_off(config)


def test_records_in_the_watched_cluster_end_the_job_that_knows_it_already(shared_broker, own_name, streams, work_off):
    _create_topics(shared_broker, own_name)
    life = life_of("east", topics=2)
    config = streams.config(source=KafkaAddress(shared_broker, own_name))
    _send(shared_broker, own_name, life.lines)
    work_off(config)
    before, applied = streams.read_all(), len(life.lines)
    _register(life, shared_broker)
    _send(shared_broker, own_name, life.lines[applied:])
    with pytest.raises(StreamError, match=f"{own_name} is in the watched cluster east itself"):
        work_off(config)
    assert streams.read_all() == before
