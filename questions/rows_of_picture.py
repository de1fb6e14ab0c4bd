"""Rows of a picture, as the job publishes them, for questions that read rows."""

from __future__ import annotations

from collections.abc import Iterator

import msgspec

from controller.contract.ids import TopicPartition
from controller.contract.metadata_rows import PartitionRow
from controller.contract.row import Row, Stamp
from controller.view.gauges import gauges_row
from controller.view.rows import broker_row, controller_row, partition_row, topic_row
from questions.memory import Memory
from questions.picture import Picture


def memory_of(picture: Picture) -> Memory:
    """Return a memory of this moment, which has no earlier rows."""
    memory = Memory()
    for row in (*_rows_of_cluster(picture), *_rows_of_partitions(picture), *picture.alerts):
        memory.apply(row)
    return memory


def _rows_of_partitions(picture: Picture) -> Iterator[PartitionRow]:
    header, stamp = picture.header, _stamp(picture)
    for name, topic in picture.context.topics:
        for number, partition in topic.partitions.items() if topic.exists else ():
            tp = TopicPartition(name, number)
            due = partition.value(header.controller_epoch) if partition.write_due else None
            reason = picture.reason(tp) if partition.problem else None
            yield partition_row(tp, partition, topic, due, reason, stamp)


def _rows_of_cluster(picture: Picture) -> Iterator[Row]:
    header, stamp = picture.header, _stamp(picture)
    yield gauges_row(header, stamp)
    yield controller_row(header, stamp)
    for broker in sorted({*header.brokers, *header.departures.last}):
        yield broker_row(broker, header, stamp)
    for name, topic in picture.context.topics:
        if topic.exists:
            yield topic_row(name, topic, stamp)


def _stamp(picture: Picture) -> Stamp:
    header = picture.header
    return (header.cluster, *msgspec.structs.astuple(header.position), 0, header.zxid, picture.as_of_ms)
