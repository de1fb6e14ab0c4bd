"""Subject of a timeline: topics, partitions and brokers, or the controller, within a window."""

from __future__ import annotations

import msgspec

from controller.contract.alert_row import AlertRow, Severity
from controller.contract.effect_rows import Transition
from controller.contract.ids import BrokerId, PartitionId, TopicPartition, Zxid
from controller.contract.metadata_rows import BrokerRow, ControllerRow, MigrationRow, PartitionRow
from controller.contract.row import Row
from questions.picture import CONTROLLER_GROUP

_HEARTBEAT_MS = 1_000


class HistorySpan(msgspec.Struct, frozen=True):
    """Part of a history, both ends included. An end is a zxid or a time in milliseconds since 1970."""

    since_zxid: Zxid | None = None
    since_ms: int | None = None
    until_zxid: Zxid | None = None
    until_ms: int | None = None

    def has(self, zxid: Zxid, time_ms: int) -> bool:
        """Return whether an event at this time, between these zxids, is in the window."""
        begun = zxid >= (self.since_zxid or zxid) and time_ms >= (self.since_ms or time_ms)
        ended = (self.until_zxid is not None and zxid > self.until_zxid) or (
            self.until_ms is not None and time_ms > self.until_ms
        )
        return begun and not ended


class Selection(msgspec.Struct, frozen=True, kw_only=True):
    """Subjects of a timeline. Without names, these are all subjects."""

    topics: frozenset[str] = frozenset()
    partitions: frozenset[TopicPartition] = frozenset()
    brokers: frozenset[BrokerId] = frozenset()
    controller: bool = False

    @property
    def is_all(self) -> bool:
        """Return whether no subject is named."""
        return not (self.topics or self.partitions or self.brokers or self.controller)

    @property
    def words(self) -> str:
        """Return the names."""
        topics = [f"topic {name}" for name in sorted(self.topics)]
        partitions = [str(tp) for tp in sorted(self.partitions)]
        brokers = [f"broker {number}" for number in sorted(self.brokers)]
        return ", ".join([*topics, *partitions, *brokers, *(["the controller"] if self.controller else [])])

    def is_about(self, row: Row, before: PartitionRow | None) -> bool:
        """Return whether the row is about one of the subjects. `before` is its partition's previous row."""
        if self.is_all:
            return True
        if isinstance(row, (ControllerRow, MigrationRow)):
            return self.controller
        if isinstance(row, BrokerRow):
            return row.broker in self.brokers
        if isinstance(row, AlertRow):
            return self._is_alert_about(row)
        if isinstance(row, PartitionRow):
            return self.names(row.topic, row.partition) or self._changes_replicas(row, before)
        return isinstance(row, Transition) and self._is_transition_about(row, before)

    def shows(self, row: PartitionRow) -> bool:
        """Return whether to draw the partition, because it or a broker that hosts it is named."""
        narrows = self.topics or self.partitions or self.brokers
        return not narrows or self.names(row.topic, row.partition) or not self.brokers.isdisjoint(row.replicas)

    def names(self, topic: str, partition: PartitionId) -> bool:
        """Return whether the partition or its topic is named."""
        return topic in self.topics or TopicPartition(topic, partition) in self.partitions

    def _is_transition_about(self, row: Transition, before: PartitionRow | None) -> bool:
        if row.subject == "controller":
            return self.controller or row.broker in self.brokers
        if row.subject == "broker":
            return row.broker in self.brokers
        if row.topic is None or row.partition is None:
            return row.topic in self.topics
        led = {row.leader, None if before is None else before.leader}
        return self.names(row.topic, row.partition) or not self.brokers.isdisjoint(led)

    def _changes_replicas(self, row: PartitionRow, before: PartitionRow | None) -> bool:
        """Return whether a selected broker leads the partition, or is in sync or assigned in only one of both rows."""
        was = row if before is None else before
        changed = set(row.isr) ^ set(() if before is None else was.isr) | set(row.replicas) ^ set(was.replicas)
        return row.leader in self.brokers or not self.brokers.isdisjoint(changed)

    def _is_alert_about(self, row: AlertRow) -> bool:
        partitions = {str(tp) for tp in self.partitions}
        topics = {row.topic, *(example.rpartition("-")[0] for example in row.examples)}
        return (
            (self.controller and row.group == CONTROLLER_GROUP)
            or not self.brokers.isdisjoint((*row.brokers, row.broker))
            or not partitions.isdisjoint((*row.examples, f"{row.topic}-{row.partition}"))
            or not self.topics.isdisjoint(topics)
        )


class TimelineRows:
    """Choice of the rows that timelines use, which are transitions, metadata and alerts.

    Transitions of replicas are the most frequent rows, so only the first of each event is taken, because only its cause
    is shown. While KRaft leads, each heartbeat has a row of the migration, but only a phase's first row counts.
    """

    def __init__(self) -> None:
        self._event = ("", "")

    def __call__(self, row: Row) -> bool:
        """Return whether timelines use the row."""
        if isinstance(row, MigrationRow):
            return row.time_ms - row.since_ms < _HEARTBEAT_MS
        if isinstance(row, Transition):
            before, self._event = self._event, (row.effect.rpartition("-")[0], row.cause)
            return row.subject != "replica" or before != self._event
        if isinstance(row, AlertRow):
            return row.severity is not Severity.INFO
        return isinstance(row, (PartitionRow, BrokerRow, ControllerRow))
