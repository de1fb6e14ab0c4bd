"""Newest rows of one cluster, and the rows that they replaced."""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Mapping
from dataclasses import dataclass, field
from typing import Any

from controller.contract.alert_row import AlertRow
from controller.contract.gauges_row import GaugesRow
from controller.contract.ids import BrokerId, PartitionId
from controller.contract.metadata_rows import (
    BrokerRow,
    ControllerRow,
    MetadataRow,
    MigrationRow,
    PartitionRow,
    TopicRow,
)
from controller.contract.problem import UNUSABLE_WORDS, Problem
from controller.contract.row import Row
from dashboards.kept_rows.alerts import Alerts
from dashboards.kept_rows.newest import PARTITION_SEGMENTS, Newest, OldestFirst, segment_of
from dashboards.kept_rows.replaced import Past
from questions.doubts import hidden_by, silence
from questions.picture import Present


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusterSnapshot:
    """One cluster at one moment."""

    cluster: str
    gauges: GaugesRow | None
    controller: ControllerRow | None
    migration: MigrationRow | None  # unset until the first one
    brokers: tuple[BrokerRow, ...]  # every known one, registered or not
    unusable: tuple[PartitionRow, ...]  # the longest unusable first
    under_min_isr: tuple[PartitionRow, ...]  # partitions with a leader that reject acks=all, the longest refusing first
    open_alerts: tuple[AlertRow, ...]  # not resolved, the oldest first
    alert_counts: Mapping[tuple[str, str, str], int]  # of the same, by alert, severity and state
    resolved_alerts: tuple[AlertRow, ...]  # the newest only
    clock_behind_ms: int = 0  # how far the forwarder's clock is behind the job's, 0 if they agree

    @property
    def is_replayed(self) -> bool:
        """Return whether it is the past of a cluster, published by `kontrast replay`."""
        return self.gauges is not None and self.gauges.is_replayed

    @property
    def cluster_rows(self) -> tuple[MetadataRow, ...]:
        """Return rows of metadata but for topics and partitions."""
        return (*self.brokers, *(row for row in (self.controller, self.migration) if row is not None))

    @property
    def heartbeat_ms(self) -> int | None:
        """Return the time of the newest heartbeat, by the job's clock if the forwarder's is wrong."""
        return None if self.gauges is None else self.gauges.time_ms + self.clock_behind_ms

    @property
    def ready(self) -> bool:
        """Return whether the rows follow from a complete read of the cluster."""
        return self.gauges is not None and self.gauges.ready

    def is_seen(self, present: Present) -> bool:
        """Return whether Kontrast sees the cluster now. A replayed past is complete, and never ends."""
        return self.ready and not self.is_silent(present) and hidden_by(self.open_alerts) is None

    def is_silent(self, present: Present) -> bool:
        """Return whether no heartbeat arrives any more."""
        heard_ms = self.heartbeat_ms
        return heard_ms is not None and silence(heard_ms, present, is_replayed=self.is_replayed) is not None


@dataclass(frozen=True, slots=True, kw_only=True)
class AsOf:
    """One cluster now, with the rows at a moment of all subjects that have changed since, by key."""

    now: ClusterSnapshot
    metadata: Mapping[str, Row | None]
    alerts: Mapping[str, Row | None]
    gauges: GaugesRow | None  # unset if no gauges of that moment are kept


def problem_since_ms(row: PartitionRow) -> int:
    """Return the start of the partition's issue, in milliseconds since 1970."""
    return row.time_ms if row.problem_since_ms is None else row.problem_since_ms


def _by_age_of_problem(row: PartitionRow) -> tuple[object, ...]:
    return (problem_since_ms(row), row.topic, row.partition)


def _no_partitions() -> OldestFirst[tuple[str, PartitionId], PartitionRow]:
    return OldestFirst(_by_age_of_problem)


@dataclass(slots=True)
class Cluster:
    """Rows of one cluster."""

    partitions: Newest[tuple[str, PartitionId], PartitionRow] = field(default_factory=Newest)
    topic_rows: Newest[str, TopicRow] = field(default_factory=Newest)
    brokers: Newest[BrokerId, BrokerRow] = field(default_factory=Newest)
    controller: Newest[str, ControllerRow] = field(default_factory=Newest)
    migration: Newest[str, MigrationRow] = field(default_factory=Newest)
    alerts: Alerts = field(default_factory=Alerts)
    gauges: Newest[str, GaugesRow] = field(default_factory=Newest)
    unusable: OldestFirst[tuple[str, PartitionId], PartitionRow] = field(default_factory=_no_partitions)
    under_min_isr: OldestFirst[tuple[str, PartitionId], PartitionRow] = field(default_factory=_no_partitions)
    changed_segments: set[int] = field(default_factory=set)
    topics: dict[str, dict[PartitionId, PartitionRow]] = field(default_factory=dict)
    topic_names: list[str] | None = None  # in their order, made on the first request
    changes: Counter[str] = field(default_factory=Counter)  # by output
    past: Past = field(default_factory=Past)
    forgotten: bool = False  # by an operator, so it is no cluster until a row arrives

    @property
    def is_gone(self) -> bool:
        """Return whether the cluster was forgotten, with only alerts' endings since."""
        held = (self.partitions, self.topic_rows, self.brokers, self.controller, self.migration, self.gauges)
        return self.forgotten and not (any(newest.rows for newest in held) or self.alerts.oldest_first())

    def apply(self, row: Row) -> bool:
        """Apply a row. Return False if a newer one of its subject is known."""
        rows, key = self._rows_like(row)
        if rows is None:
            return False
        before = rows.rows.get(key)
        if not rows.apply(key, row, removes=row.ends_subject):
            return False
        if isinstance(row, PartitionRow):
            self._file_partition(row)
        elif isinstance(row, AlertRow):
            self.alerts.file(before, row)
        self.changes[row.output] += 1
        self.past.note(before, row)
        return True

    def _rows_like(self, row: Row) -> tuple[Newest[Any, Any] | None, Hashable]:
        """Return the newest rows of this row's kind, and its key among them."""
        match row:
            case PartitionRow():
                return self.partitions, (row.topic, row.partition)
            case TopicRow():
                return self.topic_rows, row.topic
            case BrokerRow():
                return self.brokers, row.broker
            case ControllerRow():
                return self.controller, row.cluster
            case MigrationRow():
                return self.migration, row.cluster
            case AlertRow():
                return self.alerts.newest, row.id
            case GaugesRow():
                return self.gauges, row.cluster
        return None, None

    def _file_partition(self, row: PartitionRow) -> None:
        key, removes = (row.topic, row.partition), row.ends_subject
        self.changed_segments.add(segment_of(row.topic))
        self._file_by_topic(row, removes=removes)
        problem = None if removes else row.problem
        for named, has_it in (
            (self.unusable, problem in UNUSABLE_WORDS),
            (self.under_min_isr, problem == Problem.UNDER_MIN_ISR.value),
        ):
            if has_it:
                named.put(key, row)
            else:
                named.drop(key)

    def _file_by_topic(self, row: PartitionRow, *, removes: bool) -> None:
        if not removes:
            if row.topic not in self.topics:
                self.topics[row.topic], self.topic_names = {}, None
            self.topics[row.topic][row.partition] = row
        elif row.topic in self.topics:
            self.topics[row.topic].pop(row.partition, None)
            if not self.topics[row.topic]:
                del self.topics[row.topic]
                self.topic_names = None

    def names(self) -> list[str]:
        """Return names of topics, in order."""
        if self.topic_names is None:
            self.topic_names = sorted(self.topics)
        return self.topic_names

    def forget(self, output: str, *, for_good: bool) -> None:
        """Drop the rows of this output."""
        self.changes[output] += 1
        self.past.forget(output)
        self.forgotten = for_good
        if output == GaugesRow.output:
            self.gauges = Newest()
        elif output == AlertRow.output:
            self.alerts = Alerts(self.alerts.resolved) if for_good else Alerts()
        elif output == PartitionRow.output:
            self.partitions, self.brokers, self.controller = Newest(), Newest(), Newest()
            self.migration, self.topic_rows = Newest(), Newest()
            self.unusable, self.under_min_isr = _no_partitions(), _no_partitions()
            self.topics, self.topic_names = {}, None
            self.changed_segments = set(range(PARTITION_SEGMENTS))

    def snapshot(self, cluster: str, clock_behind_ms: int) -> ClusterSnapshot:
        """Return the cluster as it is now."""
        return ClusterSnapshot(
            cluster=cluster,
            gauges=self.gauges.rows.get(cluster),
            controller=self.controller.rows.get(cluster),
            migration=self.migration.rows.get(cluster),
            brokers=tuple(self.brokers.rows[broker] for broker in sorted(self.brokers.rows)),
            unusable=self.unusable.in_order(),
            under_min_isr=self.under_min_isr.in_order(),
            open_alerts=self.alerts.oldest_first(),
            alert_counts=self.alerts.counts(),
            resolved_alerts=tuple(self.alerts.resolved.values()),
            clock_behind_ms=clock_behind_ms,
        )
