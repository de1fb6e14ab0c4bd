"""What the outputs say now: the newest row of each subject, by cluster.

Here belongs the memory that the exporter answers from. Not here: reading the outputs (`follower`), metric names.
"""

from __future__ import annotations

import threading
from collections.abc import Hashable
from dataclasses import dataclass, field
from typing import Generic, TypeVar

import msgspec

from controller.health import UNUSABLE
from controller.outputs import AlertRow, BrokerRow, ControllerRow, GaugesRow, JobRow, PartitionRow, Row

_REMEMBERED_REMOVALS = 100_000  # of one kind in one cluster; guards against rows that are delivered again

_Key = TypeVar("_Key", bound=Hashable)
_Row = TypeVar("_Row", bound=Row)
_Place = tuple[int, int, int]


def _place(row: Row) -> _Place:
    return (row.generation, row.seq, row.ordinal)


class _Newest(Generic[_Key, _Row]):
    """The newest row of each subject of one kind; rows may come twice and late."""

    def __init__(self) -> None:
        self.rows: dict[_Key, _Row] = {}
        self._removed: dict[_Key, _Place] = {}

    def apply(self, key: _Key, row: _Row, *, removes: bool = False) -> bool:
        known = self.rows.get(key)
        newest = self._removed.get(key) if known is None else _place(known)
        if newest is not None and _place(row) <= newest:
            return False
        self._removed.pop(key, None)
        if removes:
            self.rows.pop(key, None)
            self._removed[key] = _place(row)
            if len(self._removed) > _REMEMBERED_REMOVALS:
                del self._removed[next(iter(self._removed))]
        else:
            self.rows[key] = row
        return True


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusterSnapshot:
    """One cluster at one moment."""

    cluster: str
    gauges: GaugesRow | None
    controller: ControllerRow | None
    brokers: tuple[BrokerRow, ...]  # every known one, registered or not
    unusable: tuple[PartitionRow, ...]  # the longest unusable first
    open_alerts: tuple[AlertRow, ...]

    @property
    def ready(self) -> bool:
        """Whether a complete snapshot of the cluster stands behind what is said here."""
        return self.gauges is not None and self.gauges.ready


def unusable_since_ms(row: PartitionRow) -> int:
    """Since when the partition has its problem, in milliseconds since 1970."""
    return row.time_ms if row.problem_since_ms is None else row.problem_since_ms


@dataclass(slots=True)
class _Cluster:
    partitions: _Newest[tuple[str, int], PartitionRow] = field(default_factory=_Newest)
    brokers: _Newest[int, BrokerRow] = field(default_factory=_Newest)
    controller: _Newest[str, ControllerRow] = field(default_factory=_Newest)
    alerts: _Newest[str, AlertRow] = field(default_factory=_Newest)
    gauges: _Newest[str, GaugesRow] = field(default_factory=_Newest)
    unusable: dict[tuple[str, int], PartitionRow] = field(default_factory=dict)  # a part of `partitions`

    def apply(self, row: Row) -> bool:
        match row:
            case PartitionRow():
                return self._apply_partition(row)
            case BrokerRow():
                return self.brokers.apply(row.broker, row)
            case ControllerRow():
                return self.controller.apply(row.cluster, row)
            case AlertRow():
                return self.alerts.apply(row.id, row, removes=row.state == "resolved")
            case GaugesRow():
                return self.gauges.apply(row.cluster, row)
        return False

    def _apply_partition(self, row: PartitionRow) -> bool:
        key = (row.topic, row.partition)
        removes = row.state == "NonExistentPartition"
        if not self.partitions.apply(key, row, removes=removes):
            return False
        if row.problem in UNUSABLE and not removes:
            self.unusable[key] = row
        else:
            self.unusable.pop(key, None)
        return True

    def forget(self, output: str) -> None:
        if output == GaugesRow.output:
            self.gauges = _Newest()
        elif output == AlertRow.output:
            self.alerts = _Newest()
        elif output == PartitionRow.output:
            self.partitions, self.brokers, self.controller = _Newest(), _Newest(), _Newest()
            self.unusable = {}

    def snapshot(self, cluster: str) -> ClusterSnapshot:
        rows = self.unusable.values()
        return ClusterSnapshot(
            cluster=cluster,
            gauges=self.gauges.rows.get(cluster),
            controller=self.controller.rows.get(cluster),
            brokers=tuple(self.brokers.rows[broker] for broker in sorted(self.brokers.rows)),
            unusable=tuple(sorted(rows, key=lambda row: (unusable_since_ms(row), row.topic, row.partition))),
            open_alerts=tuple(self.alerts.rows.values()),
        )


class View:
    """The newest row of each subject of every cluster; one thread applies rows, any thread takes snapshots."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._clusters: dict[str, _Cluster] = {}
        self._job: JobRow | None = None

    def apply(self, row: Row | JobRow) -> bool:
        """Take a row in; False if it says nothing new."""
        with self._lock:
            if isinstance(row, JobRow):
                # Of a cluster that the batch had no record of, the older progress stays.
                known = {} if self._job is None else self._job.clusters
                self._job = msgspec.structs.replace(row, clusters={**known, **row.clusters})
                return True
            return self._clusters.setdefault(row.cluster, _Cluster()).apply(row)

    def forget(self, output: str, cluster: str | None = None) -> None:
        """Drop what came from this output, which begins anew: all of it, or what it said of one cluster."""
        with self._lock:
            if cluster is not None:
                self._clusters.setdefault(cluster, _Cluster()).forget(output)
                return
            for known in self._clusters.values():
                known.forget(output)
            if output == JobRow.output:
                self._job = None

    def job(self) -> JobRow | None:
        """How the job does, None where nobody has said."""
        with self._lock:
            return self._job

    def snapshot(self) -> tuple[ClusterSnapshot, ...]:
        """All clusters as they are now, in the order of their names."""
        with self._lock:
            return tuple(self._clusters[name].snapshot(name) for name in sorted(self._clusters))
