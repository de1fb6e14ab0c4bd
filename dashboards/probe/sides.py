"""ZooKeeper and one broker's answer as two sides of a comparison, by the probe's rule. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from controller.contract.metadata_rows import PartitionRow
from controller.view.types import Header
from dashboards.probe.broker import BrokerAnswer, Leader
from dashboards.probe.comparison import DifferenceKind, PartitionDifference, PartitionName, differences
from questions.diff.side import CONTROLLER, Fields, Kind, Side, Subject

ZOOKEEPER = "ZooKeeper"

_Both = tuple[Subject, Fields | None, Fields | None]


def sides(
    header: Header, rows: Mapping[PartitionName, PartitionRow], answer: BrokerAnswer, name: str
) -> tuple[Side, Side]:
    """Return both sides. If the broker knows a newer leader epoch, compare only the replicas."""
    both = [*_cluster(header, answer), *_partitions(header, rows, answer)]
    return (
        Side(ZOOKEEPER, {subject: expected for subject, expected, _ in both if expected is not None}),
        Side(name, {subject: seen for subject, _, seen in both if seen is not None}),
    )


def _cluster(header: Header, answer: BrokerAnswer) -> Iterator[_Both]:
    if not header.led_by_kraft:  # while KRaft leads, brokers name themselves or a random broker
        yield CONTROLLER, {"broker": header.controller}, {"broker": answer.controller}
    for broker in sorted(header.brokers.keys() | answer.brokers):
        yield (
            Subject(Kind.BROKER, number=broker),
            {"registered": broker in header.brokers},
            {"registered": broker in answer.brokers},
        )


def _partitions(header: Header, rows: Mapping[PartitionName, PartitionRow], answer: BrokerAnswer) -> Iterator[_Both]:
    found = differences(rows, answer.leaders, header.brokers)
    for (topic, number), one in found.items():
        if one.difference is DifferenceKind.UNEXPECTED:
            yield Subject(Kind.PARTITION, topic, number), None, _led(one.seen)
    for (topic, number), row in rows.items():
        one_found = found.get((topic, number))
        yield Subject(Kind.PARTITION, topic, number), *_of_partition(row, one_found, answer, (topic, number))


def _of_partition(
    row: PartitionRow, found: PartitionDifference | None, answer: BrokerAnswer, name: PartitionName
) -> tuple[Fields, Fields | None]:
    seen = answer.leaders.get(name)
    if found is not None:
        return _led(found.expected), None if found.seen is None else _led(found.seen)
    if seen is None:
        return {}, {}  # no broker has to know the partition yet
    expected, said = {"replicas": row.replicas}, {"replicas": answer.replicas[name]}
    if seen.epoch in (row.leader_epoch, -1):  # in another epoch the ISR may differ
        return {**expected, "isr": row.isr}, {**said, "isr": answer.isrs[name]}
    return expected, said


def _led(leader: Leader | None) -> Fields:
    return {} if leader is None else {"leader": leader.broker, "leader_epoch": leader.epoch}
