"""Memory of the exporter, with the newest row of each subject of every cluster."""

from __future__ import annotations

import threading
from bisect import bisect_right
from collections import defaultdict
from collections.abc import Collection, Mapping, MutableMapping, Sequence
from itertools import islice
from typing import NamedTuple, TypeVar

import msgspec

from controller.contract.alert_row import AlertRow
from controller.contract.ids import PartitionId
from controller.contract.job_row import JobRow
from controller.contract.metadata_rows import PartitionRow, TopicRow
from controller.contract.row import Row
from dashboards.kept_rows.cluster import (
    AsOf as AsOf,
    Cluster,
    ClusterSnapshot as ClusterSnapshot,
    problem_since_ms as problem_since_ms,
)
from dashboards.kept_rows.replaced import PAST_ROWS, Past, Replacement

_Value = TypeVar("_Value")


class TopicSize(NamedTuple):
    """A topic's settings, if they are known, and its number of partitions."""

    row: TopicRow | None
    partitions: int


class View:
    """The newest row of each subject of every cluster. One thread applies rows, and any thread takes snapshots.

    `alert_news` is set for each row of an alert. One thread may wait for it and clear it.
    """

    def __init__(self, past_rows: int = PAST_ROWS) -> None:
        self.alert_news = threading.Event()
        self._lock = threading.Lock()
        # A lookup by `get` makes no cluster.
        self._clusters: MutableMapping[str, Cluster] = defaultdict(lambda: Cluster(past=Past(past_rows)))
        self._job: JobRow | None = None

    def apply(self, row: Row | JobRow) -> bool:
        """Apply a row. Return False if a newer one of its subject is known."""
        with self._lock:
            if isinstance(row, JobRow):
                # Of a cluster that the batch had no record of, the older progress stays.
                known = {} if self._job is None else self._job.clusters
                self._job = msgspec.structs.replace(row, clusters=self._without_gone({**known, **row.clusters}))
                return True
            is_news = self._clusters[row.cluster].apply(row)
        if isinstance(row, AlertRow):
            self.alert_news.set()
        return is_news

    def know(self, cluster: str) -> None:
        """Add a cluster, even one without rows."""
        with self._lock:
            _ = self._clusters[cluster]  # makes it

    def forget(self, output: str, cluster: str | None = None, *, for_good: bool = False) -> None:
        """Drop the rows of this output, which starts over, for all clusters or one. One may end for good."""
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
        """Note that rows of this output are missing, because they were replaced or lost."""
        with self._lock:
            for known in self._clusters.values():
                known.past.begin_now(output)

    def as_of(self, cluster: str, at_ms: int) -> AsOf | None:
        """Return the cluster now, if it exists, with the differing rows of the moment."""
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
        """Return the start of the time of which the cluster's whole state is known, if any."""
        with self._lock:
            known = self._clusters.get(cluster)
            return None if known is None else known.past.since_ms

    def was_ready(self, cluster: str, at_ms: int) -> bool:
        """Return whether the rows that are kept of the moment follow from a complete read of the cluster."""
        with self._lock:
            known = self._clusters.get(cluster)
            gauges = None if known is None else known.past.gauges_at(at_ms)
            return gauges is not None and gauges.ready

    def changed(self, cluster: str, begin_ms: int, end_ms: int) -> list[Row]:
        """Return the kept rows of metadata and alerts of this time, with the rows that they replaced first."""
        with self._lock:
            known = self._clusters.get(cluster)
            if known is None:
                return []
            return [row for each in (known.past.metadata, known.past.alerts) for row in each.between(begin_ms, end_ms)]

    def _without_gone(self, by_cluster: Mapping[str, _Value]) -> dict[str, _Value]:
        gone = {name for name, known in self._clusters.items() if known.is_gone}
        return {name: value for name, value in by_cluster.items() if name not in gone}

    def endings_of_forgotten(self) -> Mapping[str, Mapping[str, AlertRow]]:
        """Return the alerts, by cluster and id, that ended because their cluster was forgotten."""
        with self._lock:
            return {name: dict(known.alerts.resolved) for name, known in self._clusters.items() if known.is_gone}

    def knows(self, cluster: str) -> bool:
        """Return whether the cluster exists."""
        with self._lock:
            return cluster in self._clusters and not self._clusters[cluster].is_gone

    def partitions(self, cluster: str) -> dict[tuple[str, PartitionId], PartitionRow]:
        """Return every partition of the cluster as it is now, by topic and number."""
        with self._lock:
            known = self._clusters.get(cluster)
            return {} if known is None else dict(known.partitions.rows)

    def partitions_of(self, cluster: str, topic: str) -> dict[PartitionId, PartitionRow]:
        """Return the topic's partitions as they are now, in their order. An unknown topic has no partitions."""
        with self._lock:
            known = self._clusters.get(cluster)
            return {} if known is None else dict(sorted(known.topics.get(topic, {}).items()))

    def topics(self, cluster: str, name: str | None = None) -> list[TopicRow]:
        """Return the cluster's topics as they are now, or the one of this name."""
        with self._lock:
            known = self._clusters.get(cluster)
            rows = {} if known is None else known.topic_rows.rows
            return list(rows.values()) if name is None else [rows[name]] if name in rows else []

    def topic_names(self, cluster: str, contains: str, after: str, most: int) -> list[str]:
        """Return the first names, in their order, that contain the text in any case and come after `after`."""
        with self._lock:
            known = self._clusters.get(cluster)
            names = [] if known is None else known.names()
        begin, wanted = bisect_right(names, after) if after else 0, contains.lower()
        found = (name for name in islice(names, begin, None) if wanted in name.lower())
        return list(islice(found, most))

    def topic_sizes(self, cluster: str, names: Collection[str]) -> dict[str, TopicSize]:
        """Return each of these topics that exists, with its settings."""
        with self._lock:
            known = self._clusters.get(cluster)
            if known is None:
                return {}
            return {
                name: TopicSize(known.topic_rows.rows.get(name), len(known.topics[name]))
                for name in names
                if name in known.topics
            }

    def newest_events(self, cluster: str) -> list[Replacement]:
        """Return the newest changes of brokers, the controller and alerts, the oldest first."""
        with self._lock:
            known = self._clusters.get(cluster)
            return [] if known is None else list(known.past.notable)

    def alert_changes(self, cluster: str, begin_ms: int, end_ms: int) -> list[Row]:
        """Return the kept rows of alerts of this time, with the rows that they replaced first."""
        with self._lock:
            known = self._clusters.get(cluster)
            return [] if known is None else known.past.alerts.between(begin_ms, end_ms)

    def changes(self, cluster: str | None, *outputs: str) -> int:
        """Return how often these outputs changed, for one cluster or all. The number only grows."""
        # No lock, because event streams ask on the event loop, which must not wait for a computing thread.
        clusters = list(self._clusters.values()) if cluster is None else [self._clusters.get(cluster)]
        return sum(known.changes[output] for known in clusters if known is not None for output in outputs)

    def cluster(self, name: str) -> ClusterSnapshot | None:
        """Return the cluster as it is now, if it exists."""
        with self._lock:
            known = self._clusters.get(name)
            return None if known is None or known.is_gone else known.snapshot(name, self._clock_behind_ms(name))

    def is_live(self, cluster: str) -> bool:
        """Return whether heartbeats of the present cluster arrive."""
        with self._lock:
            known = self._clusters.get(cluster)
            gauges = None if known is None else known.gauges.rows.get(cluster)
            return gauges is not None and not gauges.is_replayed

    def jobs(self) -> Mapping[str, JobRow]:
        """Return the newest row of each job by the address of its outputs, which is empty for the only one."""
        with self._lock:
            return {} if self._job is None else {"": self._job}

    def job_of(self, cluster: str) -> JobRow | None:
        """Return the newest row of the cluster's job, if there is one."""
        with self._lock:
            return self._job_of(cluster)

    def _job_of(self, cluster: str) -> JobRow | None:  # noqa: ARG002 (this view has one job)
        return self._job

    def snapshot(self) -> tuple[ClusterSnapshot, ...]:
        """Return all clusters as they are now, in the order of their names."""
        with self._lock:
            return tuple(
                known.snapshot(name, self._clock_behind_ms(name))
                for name, known in sorted(self._without_gone(self._clusters).items())
            )

    def clock_behind_ms(self, cluster: str) -> int:
        """Return the lag of the forwarder's clock behind the job's, or 0 if they agree or it is unknown."""
        with self._lock:
            return self._clock_behind_ms(cluster)

    def _clock_behind_ms(self, cluster: str) -> int:
        job = self._job_of(cluster)
        progress = None if job is None else job.clusters.get(cluster)
        return 0 if progress is None else progress.clock_behind_ms

    def take_changed_partitions(self, cluster: str) -> tuple[frozenset[int], Sequence[PartitionRow]]:
        """Return segments of a cluster that changed since the last call. Any change adds all partitions."""
        with self._lock:
            known = self._clusters[cluster]
            changed, known.changed_segments = frozenset(known.changed_segments), set()
            return changed, list(known.partitions.rows.values()) if changed else ()
