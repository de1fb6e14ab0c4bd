"""Records that the source lost. The job marks the cluster unknown, asks for a complete read, and goes on with it."""

from __future__ import annotations

import json
import re
import shutil

import pytest
from kafka import KafkaConsumer, KafkaProducer, TopicPartition
from kafka.admin import NewTopic
from pyspark.sql import SparkSession

from controller.contract.effect_rows import RefusedRow
from controller.contract.gauges_row import GaugesRow
from controller.contract.outputs import decode_row
from streaming.errors import StreamError
from tests.clients import kafka_admin
from tests.streaming.cluster_records import ClusterLife, Streams, life_of
from tests.streaming.job_in_a_thread import running
from tests.waiting import eventually
from transport.address import KafkaAddress
from transport.journal import JournalWriter
from transport.journal_reading import end_offset
from transport.topics import complete_read_requested_ns, request_topic


def gauges(streams: Streams) -> list[GaugesRow]:
    rows = [decode_row(line) for line in streams.read_all()["gauges"]]
    return [row for row in rows if isinstance(row, GaugesRow)]


def new_life() -> ClusterLife:
    """Return the forwarder's answer to the request, a new generation with a changed cluster."""
    return life_of("east", topics=3, losses=1).in_generation(2)


def the_end_is_known(streams: Streams, life: ClusterLife) -> bool:
    newest = gauges(streams)[-1]
    last = life.records[-1]
    return newest.ready and (newest.generation, newest.seq) == (last.generation, last.seq)


def test_a_journal_that_dropped_what_was_not_read(spark: SparkSession, streams: Streams, work_off) -> None:
    life, later = life_of("east", topics=20), new_life()
    streams.append(life.lines[:10])
    work_off(streams.config())
    with JournalWriter(streams.input, segment_bytes=1000, retain_bytes=3000) as writer:
        for line in life.lines[10:]:
            writer.append([line])
    assert complete_read_requested_ns(streams.input) == 0
    with running(spark, streams.config()):
        eventually(lambda: complete_read_requested_ns(streams.input) > 0)
        eventually(lambda: bool(gauges(streams)))
        assert not gauges(streams)[-1].ready
        assert gauges(streams)[-1].divergences["records_missing"] == 1
        streams.append(later.lines)
        eventually(lambda: the_end_is_known(streams, later))
    expected = {line for line in later.rows()["metadata"] if b'"topic"' in line}
    assert expected <= set(streams.read_all()["metadata"])


def test_a_journal_with_a_hole(spark: SparkSession, streams: Streams, work_off) -> None:
    life, later = life_of("east", topics=20), new_life()
    streams.append(life.lines[:10])
    work_off(streams.config())
    hole_begins = end_offset(streams.input)
    streams.append(life.lines[10:])
    (segment,) = streams.input.glob("*.log")
    with segment.open("r+b") as file:
        file.seek(hole_begins)
        file.write(bytes(5000))
    with running(spark, streams.config()):
        eventually(lambda: complete_read_requested_ns(streams.input) > 0)
        eventually(lambda: bool(gauges(streams)))
        assert not gauges(streams)[-1].ready
        streams.append(later.lines)
        eventually(lambda: the_end_is_known(streams, later))
    (refused,) = [decode_row(line) for line in streams.read_all()["refused"]]
    assert isinstance(refused, RefusedRow)
    assert refused.data is not None
    assert re.fullmatch(rf"{segment}: \d+ bytes from offset {hole_begins} to \d+ are damaged or missing", refused.data)


def test_what_an_older_kontrast_wrote_is_read_and_gone_on_with(streams: Streams, work_off) -> None:
    life = life_of("east", topics=4)
    streams.input.mkdir()
    old = b"\n".join((*life.lines[:30], b""))
    (streams.input / f"{0:020}.log").write_bytes(old)
    (streams.input / "journal.json").write_text(json.dumps({"format": 1, "batches": False}))
    work_off(streams.config())
    streams.append(life.lines[30:])
    work_off(streams.config())
    assert streams.read_all() == life.rows()


def test_a_journal_that_another_replaced(streams: Streams, work_off) -> None:
    life = life_of("east", topics=4)
    streams.append(life.lines[:20])
    work_off(streams.config())
    shutil.rmtree(streams.input)
    streams.append(life.lines)  # longer, so that it contains the old offset
    with pytest.raises(StreamError, match="It was replaced or lost its tail.*--rebuild"):
        work_off(streams.config())
    work_off(streams.config(), rebuild=True)
    assert gauges(streams)[-1].ready


def test_a_stream_whose_beginning_is_gone_when_the_job_first_starts(spark: SparkSession, streams: Streams) -> None:
    later = new_life()
    streams.append([line for line in life_of("east").lines if b'"kind":"heartbeat"' in line])
    with running(spark, streams.config()):
        eventually(lambda: complete_read_requested_ns(streams.input) > 0)
        streams.append(later.lines)
        eventually(lambda: the_end_is_known(streams, later))


def send(server: str, topic: str, lines: list[bytes]) -> None:
    producer = KafkaProducer(bootstrap_servers=server, acks="all")
    for line in lines:
        producer.send(topic, key=b"east", value=line)
    producer.close()


def test_a_kafka_topic_that_dropped_what_was_not_read(
    spark: SparkSession, streams: Streams, work_off, shared_broker: str, own_name: str
) -> None:
    source = KafkaAddress(shared_broker, own_name)
    life, later = life_of("east", topics=4), new_life()
    with kafka_admin(shared_broker) as admin:
        admin.create_topics([NewTopic(topic, num_partitions=1) for topic in (own_name, request_topic(source))])
        send(shared_broker, own_name, life.lines[:10])
        work_off(streams.config(source=source))
        send(shared_broker, own_name, life.lines[10:])
        admin.delete_records({TopicPartition(own_name, 0): 15})
    wanted = TopicPartition(request_topic(source), 0)
    consumer = KafkaConsumer(bootstrap_servers=shared_broker)
    with running(spark, streams.config(source=source)):
        eventually(lambda: consumer.end_offsets([wanted])[wanted] > 0)
        assert not gauges(streams)[-1].ready
        send(shared_broker, own_name, later.lines)
        eventually(lambda: the_end_is_known(streams, later))
    consumer.close()
