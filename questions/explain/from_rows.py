"""Explanations from a cluster's rows. Each takes only the part of the cluster that its subject needs."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from functools import partial
from typing import Final

import msgspec

from controller.contract.alert_row import AlertRow
from controller.contract.ids import BrokerId, PartitionId, TopicPartition
from controller.contract.metadata_rows import PartitionRow
from controller.rules.topic_ranks import TopicRanks
from questions.clients.groups import NO_CLIENTS, Clients
from questions.cluster_rows import ClusterSnapshot, TopicRows
from questions.doubts import BLINDING
from questions.explain.broker import explain_broker
from questions.explain.controller import explain_controller
from questions.explain.explanation import Explanation
from questions.explain.partition import explain_partition
from questions.explain.topic import explain_topic
from questions.overview.impact_map import ImpactMap, hosted_map
from questions.overview.partition_groups import PartitionLine, partition_line, place_of
from questions.picture import CONTROLLER_GROUP, Present, oldest

PARTITIONS_OF_A_PAGE: Final = 100


class TopicAnswer(msgspec.Struct, frozen=True):
    """A topic explained, with some of its partitions; `next` is the number to go on with, None at the end."""

    explanation: Explanation
    partitions: tuple[PartitionLine, ...]
    next: int | None


class BrokerAnswer(msgspec.Struct, frozen=True):
    """A broker explained, with a map of the partitions that it hosts."""

    explanation: Explanation
    map: ImpactMap


def partition_answer(found: ClusterSnapshot, tp: TopicPartition, present: Present | None) -> Explanation | None:
    """Return the explanation of the partition, if it exists. The snapshot has its topic."""
    topic = found.topics.get(tp.topic)
    row = None if topic is None else topic.partitions.get(tp.partition)
    if topic is None or row is None:
        return None
    # A broker without a row is known only by its replicas, so the picture needs its other replicas, too.
    strangers = set(row.replicas).difference([broker.broker for broker in found.brokers])
    needed = {tp.partition: row} if not strangers else _hosted(topic.partitions, strangers)
    name = str(tp)
    about = [alert for alert in found.open_alerts if name in alert.examples]
    part = replace(found, topics={tp.topic: TopicRows(topic.row, needed)})
    return explain_partition(part.picture(_shown(found, about), present, counted=bool(strangers)), tp)


def topic_answer(
    found: ClusterSnapshot, name: str, first: int, present: Present | None, clients: Clients = NO_CLIENTS
) -> TopicAnswer | None:
    """Return the topic, if it exists, with its partitions from `first` on. The snapshot has the topic."""
    topic, begins = found.topics.get(name), f"{name}-"
    if topic is None or not topic.partitions:
        return None

    about = [
        alert
        for alert in found.open_alerts
        if name in (alert.topic, *alert.examples) or any(example.startswith(begins) for example in alert.examples)
    ]
    picture = replace(found, topics={name: topic}).picture(_shown(found, about), present)
    if picture.topic(name) is None:
        return None
    rows = [row for number, row in sorted(topic.partitions.items()) if number >= first]
    more = rows[PARTITIONS_OF_A_PAGE].partition if len(rows) > PARTITIONS_OF_A_PAGE else None
    lines = tuple(map(partition_line, rows[:PARTITIONS_OF_A_PAGE]))
    return TopicAnswer(explain_topic(msgspec.structs.replace(picture, clients=clients), name), lines, more)


def broker_answer(
    found: ClusterSnapshot, broker: BrokerId, ranks: TopicRanks, present: Present | None
) -> BrokerAnswer | None:
    """Return the explanation of the broker, if the cluster mentions it. The snapshot has all topics."""
    assert found.gauges is not None, "a cluster that was not read"
    if broker not in found.gauges.replicas_by_broker and all(row.broker != broker for row in found.brokers):
        return None
    # Of 200,000 partitions, a broker hosts some thousands.
    hosted = {name: _hosted(topic.partitions, {broker}) for name, topic in found.topics.items()}
    topics = {name: TopicRows(None, rows) for name, rows in hosted.items() if rows}
    about = [alert for alert in found.open_alerts if broker in (alert.broker, *alert.brokers)]
    picture = replace(found, topics=topics).picture(_shown(found, about), present)
    return BrokerAnswer(explain_broker(picture, broker), hosted_map(found, partial(place_of, ranks=ranks), broker))


def controller_answer(found: ClusterSnapshot, present: Present | None) -> Explanation:
    """Return the explanation of the controller. The snapshot has all topics, but only topics in deletion matter."""
    rows = {name: topic.row for name, topic in found.topics.items()}
    deleting = {name: TopicRows(row, {}) for name, row in rows.items() if row and row.deletion is not None}
    about = [alert for alert in found.open_alerts if alert.group == CONTROLLER_GROUP]
    return explain_controller(replace(found, topics=deleting).picture(_shown(found, about), present))


def _hosted(rows: Mapping[PartitionId, PartitionRow], brokers: set[BrokerId]) -> dict[PartitionId, PartitionRow]:
    return {number: row for number, row in rows.items() if not brokers.isdisjoint(row.replicas)}


def _shown(found: ClusterSnapshot, about: Iterable[AlertRow]) -> list[AlertRow]:
    """Return the alerts about a subject that a page has room for, and those that hide the cluster."""
    return [*[row for row in found.open_alerts if row.alert in BLINDING], *oldest(about)]
