"""Holds the newest row of each subject of every cluster: the memory that the exporter answers from."""

from __future__ import annotations

import threading
from bisect import bisect_left, bisect_right
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TypeVar

import msgspec

from controller.contract.alert_row import AlertRow
from controller.contract.gauges_row import GaugesRow
from controller.contract.job_row import JobRow
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
from dashboards.following.alerts import Alerts
from dashboards.following.newest import PARTITION_SEGMENTS, Newest, OldestFirst, segment_of
from dashboards.following.past import PAST_ROWS, Past

_Value = TypeVar("_Value")


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusterSnapshot:
    """One cluster at one moment."""

    cluster: str
    gauges: GaugesRow | None
    controller: ControllerRow | None
    migration: MigrationRow | None  # None where none was ever seen
    brokers: tuple[BrokerRow, ...]  # every known one, registered or not
    unusable: tuple[PartitionRow, ...]  # the longest unusable first
    under_min_isr: tuple[PartitionRow, ...]  # led, but refusing acks=all: the longest refusing first
    open_alerts: tuple[AlertRow, ...]  # not resolved, the oldest first
    alert_counts: Mapping[tuple[str, str, str], int]  # of the same, by alert, severity and state
    resolved_alerts: tuple[AlertRow, ...]  # the newest only
    clock_behind_ms: int = 0  # how far the forwarder's clock is behind the job's, 0 if they agree

    @property
    def is_replayed(self) -> bool:
        """Whether it is the past of a cluster, published by `kontrast replay`."""
        return self.gauges is not None and self.gauges.is_replayed

    @property
    def standing(self) -> tuple[MetadataRow, ...]:
        """Rows of metadata but for topics and partitions."""
        return (*self.brokers, *(row for row in (self.controller, self.migration) if row is not None))

    @property
    def heartbeat_ms(self) -> int | None:
        """When the newest heartbeat was, by the job's clock if the forwarder's is wrong; None without one."""
        return None if self.gauges is None else self.gauges.time_ms + self.clock_behind_ms

    @property
    def ready(self) -> bool:
        """Whether the rows follow from a complete read of the cluster."""
        return self.gauges is not None and self.gauges.ready


@dataclass(frozen=True, slots=True, kw_only=True)
class AsOf:
    """One cluster now, and what has changed since a moment: the rows of then by their keys, None for what was not."""

    now: ClusterSnapshot
    metadata: Mapping[str, Row | None]
    alerts: Mapping[str, Row | None]
    gauges: GaugesRow | None  # None: none is kept of that moment


def problem_since_ms(row: PartitionRow) -> int:
    """Since when the partition has its issue, in milliseconds since 1970."""
    return row.time_ms if row.problem_since_ms is None else row.problem_since_ms


def _by_age_of_problem(row: PartitionRow) -> tuple[object, ...]:
    return (problem_since_ms(row), row.topic, row.partition)


def _no_partitions() -> OldestFirst[tuple[str, int], PartitionRow]:
    return OldestFirst(_by_age_of_problem)


@dataclass(slots=True)
class _Cluster:
    partitions: Newest[tuple[str, int], PartitionRow] = field(default_factory=Newest)
    topic_rows: Newest[str, TopicRow] = field(default_factory=Newest)
    brokers: Newest[int, BrokerRow] = field(default_factory=Newest)
    controller: Newest[str, ControllerRow] = field(default_factory=Newest)
    migration: Newest[str, MigrationRow] = field(default_factory=Newest)
    alerts: Alerts = field(default_factory=Alerts)
    gauges: Newest[str, GaugesRow] = field(default_factory=Newest)
    unusable: OldestFirst[tuple[str, int], PartitionRow] = field(default_factory=_no_partitions)
    under_min_isr: OldestFirst[tuple[str, int], PartitionRow] = field(default_factory=_no_partitions)
    changed_segments: set[int] = field(default_factory=set)
    topics: dict[str, dict[int, PartitionRow]] = field(default_factory=dict)
    topic_names: list[str] | None = None  # in their order; None until it is asked for
    changes: Counter[str] = field(default_factory=Counter)  # by output
    past: Past = field(default_factory=Past)
    forgotten: bool = False  # by an operator: without any row it is none of the clusters

    @property
    def is_gone(self) -> bool:
        """Whether it was forgotten, and no row has come since but alerts' endings."""
        held = (self.partitions, self.topic_rows, self.brokers, self.controller, self.migration, self.gauges)
        return self.forgotten and not (any(newest.rows for newest in held) or self.alerts.oldest_first())

    def apply(self, row: Row) -> bool:
        before, changed = self._before(row), self._apply(row)
        self.changes[row.output] += changed
        if changed:
            self.past.note(before, row)
        return changed

    def _before(self, row: Row) -> Row | None:
        match row:
            case PartitionRow():
                return self.partitions.rows.get((row.topic, row.partition))
            case TopicRow():
                return self.topic_rows.rows.get(row.topic)
            case BrokerRow():
                return self.brokers.rows.get(row.broker)
            case ControllerRow():
                return self.controller.rows.get(row.cluster)
            case MigrationRow():
                return self.migration.rows.get(row.cluster)
            case AlertRow():
                return self.alerts.open(row.id)
        return None

    def _apply(self, row: Row) -> bool:
        match row:
            case PartitionRow():
                return self._apply_partition(row)
            case TopicRow():
                return self.topic_rows.apply(row.topic, row, removes=row.ends_subject)
            case BrokerRow():
                return self.brokers.apply(row.broker, row, removes=row.ends_subject)
            case ControllerRow():
                return self.controller.apply(row.cluster, row)
            case MigrationRow():
                return self.migration.apply(row.cluster, row)
            case AlertRow():
                return self.alerts.apply(row)
            case GaugesRow():
                return self.gauges.apply(row.cluster, row)
        return False

    def _apply_partition(self, row: PartitionRow) -> bool:
        key = (row.topic, row.partition)
        removes = row.ends_subject
        if not self.partitions.apply(key, row, removes=removes):
            return False
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
        return True

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
        if self.topic_names is None:
            self.topic_names = sorted(self.topics)
        return self.topic_names

    def forget(self, output: str, *, for_good: bool) -> None:
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


class View:
    """The newest row of each subject of every cluster; one thread applies rows, any thread takes snapshots."""

    def __init__(self, past_rows: int = PAST_ROWS) -> None:
        self._lock = threading.Lock()
        # A lookup by `get` makes no cluster.
        self._clusters: defaultdict[str, _Cluster] = defaultdict(lambda: _Cluster(past=Past(past_rows)))
        self._job: JobRow | None = None

    def apply(self, row: Row | JobRow) -> bool:
        """Apply a row; False if a newer one of its subject is known."""
        with self._lock:
            if isinstance(row, JobRow):
                # Of a cluster that the batch had no record of, the older progress stays.
                known = {} if self._job is None else self._job.clusters
                self._job = msgspec.structs.replace(row, clusters=self._without_gone({**known, **row.clusters}))
                return True
            return self._clusters[row.cluster].apply(row)

    def know(self, cluster: str) -> None:
        """Add a cluster of which nothing may be known yet."""
        with self._lock:
            _ = self._clusters[cluster]  # makes it

    def forget(self, output: str, cluster: str | None = None, *, for_good: bool = False) -> None:
        """Drop the rows of this output, which starts over: all of them, or one cluster's, which may end for good."""
        with self._lock:
            if cluster is not None:
                self._clusters[cluster].forget(output, for_good=for_good)
                if self._job is not None:
                    self._job = msgspec.structs.replace(self._job, clusters=self._without_gone(self._job.clusters))
                return
            for known in self._clusters.values():
                known.forget(output, for_good=known.forgotten)
            if output == JobRow.output:
                self._job = None

    def lacks_rows_before(self, output: str) -> None:
        """Note that of this output not all rows came that were written: some were replaced, or are lost."""
        with self._lock:
            for known in self._clusters.values():
                known.past.begin_now(output)

    def as_of(self, cluster: str, at_ms: int) -> AsOf | None:
        """The cluster as it is, with what was otherwise at the moment; None where there is none of this name."""
        with self._lock:
            known = self._clusters.get(cluster)
            if known is None:
                return None
            past = known.past
            return AsOf(
                now=known.snapshot(cluster, 0),
                metadata=past.metadata.replaced_after(at_ms),
                alerts=past.alerts.replaced_after(at_ms),
                gauges=past.gauges_at(at_ms),
            )

    def kept_since_ms(self, cluster: str) -> int | None:
        """The moment since which everything of the cluster is known; None where there is none."""
        with self._lock:
            known = self._clusters.get(cluster)
            return None if known is None else known.past.since_ms

    def was_ready(self, cluster: str, at_ms: int) -> bool:
        """Whether the rows that are kept of the moment follow from a complete read of the cluster."""
        with self._lock:
            known = self._clusters.get(cluster)
            gauges = None if known is None else known.past.gauges_at(at_ms)
            return gauges is not None and gauges.ready

    def changed(self, cluster: str, begin_ms: int, end_ms: int, most: int) -> list[Row]:
        """The newest rows of metadata and alerts of this time, as many of each, and those that they replaced first."""
        with self._lock:
            known = self._clusters.get(cluster)
            if known is None:
                return []
            return [
                row for each in (known.past.metadata, known.past.alerts) for row in each.between(begin_ms, end_ms, most)
            ]

    def _without_gone(self, by_cluster: Mapping[str, _Value]) -> dict[str, _Value]:
        gone = {name for name, known in self._clusters.items() if known.is_gone}
        return {name: value for name, value in by_cluster.items() if name not in gone}

    def endings_of_forgotten(self) -> Mapping[str, Mapping[str, AlertRow]]:
        """The alerts, by id, that ended when their cluster was forgotten; of each cluster that was."""
        with self._lock:
            return {name: dict(known.alerts.resolved) for name, known in self._clusters.items() if known.is_gone}

    def knows(self, cluster: str) -> bool:
        """Whether there is a cluster of this name."""
        with self._lock:
            return cluster in self._clusters and not self._clusters[cluster].is_gone

    def partitions(self, cluster: str) -> dict[tuple[str, int], PartitionRow]:
        """Every partition of the cluster as it is now, by topic and number."""
        with self._lock:
            known = self._clusters.get(cluster)
            return {} if known is None else dict(known.partitions.rows)

    def partitions_of(self, cluster: str, topic: str) -> dict[int, PartitionRow]:
        """The partitions of one topic as they are now, in their order; none of a topic that there is not."""
        with self._lock:
            known = self._clusters.get(cluster)
            return {} if known is None else dict(sorted(known.topics.get(topic, {}).items()))

    def topics(self, cluster: str, name: str | None = None) -> list[TopicRow]:
        """Return the cluster's topics as they are now, or the one of this name."""
        with self._lock:
            known = self._clusters.get(cluster)
            rows = {} if known is None else known.topic_rows.rows
            return list(rows.values()) if name is None else [rows[name]] if name in rows else []

    def topic_names(self, cluster: str, prefix: str, after: str, most: int) -> list[str]:
        """The first names, in their order, that begin with `prefix` and come after `after`."""
        with self._lock:
            known = self._clusters.get(cluster)
            names = [] if known is None else known.names()
            begin = max(bisect_left(names, prefix), bisect_right(names, after) if after else 0)
            return [name for name in names[begin : begin + most] if name.startswith(prefix)]

    def changes(self, cluster: str | None, *outputs: str) -> int:
        """How often these outputs of the cluster changed, None: of all clusters; only grows."""
        # Without the lock: streams of events ask on the event loop, which must not wait for a thread that computes.
        clusters = list(self._clusters.values()) if cluster is None else [self._clusters.get(cluster)]
        return sum(known.changes[output] for known in clusters if known is not None for output in outputs)

    def cluster(self, name: str) -> ClusterSnapshot | None:
        """One cluster as it is now; None where there is none of this name."""
        with self._lock:
            known = self._clusters.get(name)
            return None if known is None or known.is_gone else known.snapshot(name, self._clock_behind_ms(name))

    def is_live(self, cluster: str) -> bool:
        """Whether heartbeats of the cluster come, and not of its past."""
        with self._lock:
            known = self._clusters.get(cluster)
            gauges = None if known is None else known.gauges.rows.get(cluster)
            return gauges is not None and not gauges.is_replayed

    def job(self) -> JobRow | None:
        """The newest row of the job; None before the first."""
        with self._lock:
            return self._job

    def snapshot(self) -> tuple[ClusterSnapshot, ...]:
        """All clusters as they are now, in the order of their names."""
        with self._lock:
            return tuple(
                known.snapshot(name, self._clock_behind_ms(name))
                for name, known in sorted(self._without_gone(self._clusters).items())
            )

    def clock_behind_ms(self, cluster: str) -> int:
        """How far the clock of the cluster's forwarder is behind the job's; 0 if they agree or it is unknown."""
        with self._lock:
            return self._clock_behind_ms(cluster)

    def _clock_behind_ms(self, cluster: str) -> int:
        progress = None if self._job is None else self._job.clusters.get(cluster)
        return 0 if progress is None else progress.clock_behind_ms

    def readiness(self) -> Mapping[str, bool]:
        """Whether the rows of each cluster follow from a complete read of it."""
        with self._lock:
            gauges = {name: of.gauges.rows.get(name) for name, of in self._without_gone(self._clusters).items()}
        return {name: row is not None and row.ready for name, row in sorted(gauges.items())}

    def take_changed_partitions(self, cluster: str) -> tuple[frozenset[int], Sequence[PartitionRow]]:
        """The segments of a known cluster that changed since they were last taken, and all partitions if any did."""
        with self._lock:
            known = self._clusters[cluster]
            changed, known.changed_segments = frozenset(known.changed_segments), set()
            return changed, list(known.partitions.rows.values()) if changed else ()
