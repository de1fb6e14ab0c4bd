"""Memory of every cluster that an output has, with the newest row of each subject and those that they replaced."""

from __future__ import annotations

import threading
from bisect import bisect_right
from collections import defaultdict, deque
from collections.abc import Collection, Iterable, Mapping, MutableMapping
from itertools import islice
from typing import NamedTuple, TypeVar

import msgspec

from controller.contract.alert_row import AlertRow
from controller.contract.effect_rows import Transition
from controller.contract.ids import PartitionId
from controller.contract.job_row import JobRow
from controller.contract.metadata_rows import PartitionRow
from controller.contract.row import Row
from questions.cluster_rows import ClusterRows, ClusterSnapshot, segment_of
from questions.past import PAST_ROWS, Change, Past

_Value = TypeVar("_Value")


class Kept(NamedTuple):
    """From which moment to which one a cluster is known."""

    since_ms: int
    newest_ms: int

    def nearest(self, at_ms: int) -> int:
        """Return the moment, or the nearest that is kept."""
        return min(max(at_ms, self.since_ms), self.newest_ms)


class Memory:
    """The newest row of each subject of every cluster, and transitions. Any thread may apply a row or ask.

    `alert_news` is set for each row of an alert. One thread may wait for it and clear it.
    """

    def __init__(self, past_rows: int = PAST_ROWS) -> None:
        self.alert_news = threading.Event()
        self._lock = threading.Lock()
        # A lookup by `get` makes no cluster.
        self._clusters: MutableMapping[str, ClusterRows] = defaultdict(lambda: ClusterRows(Past(past_rows)))
        self._transitions: defaultdict[str, deque[Transition]] = defaultdict(lambda: deque(maxlen=past_rows))
        self._job: JobRow | None = None

    def apply(self, row: Row | JobRow) -> bool:
        """Apply a row. Return False if a newer one of its subject is known."""
        with self._lock:
            if isinstance(row, JobRow):
                # Of a cluster that the batch had no record of, the older progress stays.
                known = {} if self._job is None else self._job.clusters
                self._job = msgspec.structs.replace(row, clusters=self._without_gone({**known, **row.clusters}))
                return True
            if isinstance(row, Transition):  # which says nothing of the present, so it makes no cluster
                self._transitions[row.cluster].append(row)
                return False
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
            if output == Transition.output:
                self._transitions.clear()
            elif cluster is not None:
                self._clusters[cluster].forget(output, for_good=for_good)
                if self._job is not None:
                    self._job = msgspec.structs.replace(self._job, clusters=self._without_gone(self._job.clusters))
            else:
                for known in self._clusters.values():
                    known.forget(output, for_good=known.forgotten)
                if output == JobRow.output:
                    self._job = None

    def lacks_rows_before(self, output: str) -> None:
        """Note that rows of this output are missing, because they were replaced or lost."""
        with self._lock:
            for known in self._clusters.values():
                known.past.begin_now(output)

    def clusters(self) -> tuple[ClusterSnapshot, ...]:
        """Return all clusters as they are now, in the order of their names, without topics."""
        with self._lock:
            return tuple(
                known.snapshot(name, self._clock_behind_ms(name))
                for name, known in sorted(self._without_gone(self._clusters).items())
            )

    def cluster(
        self, name: str, at_ms: int | None = None, topics: Collection[str] | None = ()
    ) -> ClusterSnapshot | None:
        """Return the existing cluster at a kept moment, by default now, with some topics, None for all."""
        with self._lock:
            known = self._clusters.get(name)
            if known is None or known.is_gone:
                return None
            return known.snapshot(name, self._clock_behind_ms(name), at_ms, topics)

    def kept(self, cluster: str) -> Kept | None:
        """Return the time of which the cluster's whole state is known, if any."""
        with self._lock:
            known = self._clusters.get(cluster)
            gauges = None if known is None or known.is_gone else known.gauges()
            since_ms = None if known is None else known.past.since_ms
        return None if gauges is None or since_ms is None else Kept(since_ms, max(gauges.time_ms, since_ms))

    def changes(self, cluster: str, begin_ms: int, end_ms: int) -> list[Row]:
        """Return the kept changes and transitions of this time, with the rows that the changes replaced."""
        with self._lock:
            known = self._clusters.get(cluster)
            changes = [] if known is None else known.past.between(begin_ms, end_ms)
            transitions = self._transitions_of(cluster)
            return [*changes, *(row for row in transitions if begin_ms <= row.time_ms <= end_ms)]

    def alert_changes(self, cluster: str, begin_ms: int, end_ms: int) -> list[Row]:
        """Return the kept changes of alerts of this time, with the rows that they replaced."""
        with self._lock:
            known = self._clusters.get(cluster)
            return [] if known is None else known.past.between(begin_ms, end_ms, (AlertRow.output,))

    def newest_events(self, cluster: str) -> list[Change]:
        """Return the newest changes of brokers, the controller and alerts, the oldest first."""
        with self._lock:
            known = self._clusters.get(cluster)
            return [] if known is None else list(known.past.notable)

    def version(self, cluster: str | None, *outputs: str) -> int:
        """Return how often these outputs changed, for one cluster or all. The number only grows."""
        # No lock, because event streams ask on the event loop, which must not wait for a computing thread.
        clusters = list(self._clusters.values()) if cluster is None else [self._clusters.get(cluster)]
        return sum(known.changes[output] for known in clusters if known is not None for output in outputs)

    def partitions(self, cluster: str) -> dict[tuple[str, PartitionId], PartitionRow]:
        """Return every partition of the cluster as it is now, by topic and number."""
        with self._lock:
            known = self._clusters.get(cluster)
            by_topic = {} if known is None else known.partitions.by_topic
            return {(topic, number): row for topic, rows in by_topic.items() for number, row in rows.items()}

    def partitions_of(self, cluster: str, topic: str) -> dict[PartitionId, PartitionRow]:
        """Return the topic's partitions as they are now, in their order. An unknown topic has no partitions."""
        with self._lock:
            known = self._clusters.get(cluster)
            return {} if known is None else dict(sorted(known.partitions.by_topic.get(topic, {}).items()))

    def topic_names(self, cluster: str, contains: str, after: str, most: int) -> list[str]:
        """Return the first names, in their order, that contain the text in any case and come after `after`."""
        with self._lock:
            known = self._clusters.get(cluster)
            names = [] if known is None else known.partitions.names()
        begin, wanted = bisect_right(names, after) if after else 0, contains.lower()
        found = (name for name in islice(names, begin, None) if wanted in name.lower())
        return list(islice(found, most))

    def take_changed_partitions(self, cluster: str) -> dict[int, list[PartitionRow]]:
        """Return the partitions of the segments that changed since the last call."""
        with self._lock:
            known = self._clusters[cluster]
            changed: dict[int, list[PartitionRow]] = {segment: [] for segment in known.changed_segments}
            known.changed_segments.clear()
            for topic, rows in known.partitions.by_topic.items() if changed else ():
                if (segment := segment_of(topic)) in changed:
                    changed[segment] += rows.values()
            return changed

    def jobs(self) -> Mapping[str, JobRow]:
        """Return the newest row of each job by the address of its outputs, which is empty for the only one."""
        with self._lock:
            return {} if self._job is None else {"": self._job}

    def job_of(self, cluster: str) -> JobRow | None:
        """Return the newest row of the cluster's job, if there is one."""
        with self._lock:
            return self._job_of(cluster)

    def knows(self, cluster: str) -> bool:
        """Return whether the cluster exists."""
        with self._lock:
            return cluster in self._clusters and not self._clusters[cluster].is_gone

    def is_live(self, cluster: str) -> bool:
        """Return whether heartbeats of the present cluster arrive."""
        with self._lock:
            known = self._clusters.get(cluster)
            gauges = None if known is None else known.gauges()
            return gauges is not None and not gauges.is_replayed

    def clock_behind_ms(self, cluster: str) -> int:
        """Return the lag of the forwarder's clock behind the job's, or 0 if they agree or it is unknown."""
        with self._lock:
            return self._clock_behind_ms(cluster)

    def endings_of_forgotten(self) -> Mapping[str, Mapping[str, AlertRow]]:
        """Return the alerts, by cluster and id, that ended because their cluster was forgotten."""
        with self._lock:
            return {name: dict(known.resolved) for name, known in self._clusters.items() if known.is_gone}

    def _without_gone(self, by_cluster: Mapping[str, _Value]) -> dict[str, _Value]:
        gone = {name for name, known in self._clusters.items() if known.is_gone}
        return {name: value for name, value in by_cluster.items() if name not in gone}

    def _transitions_of(self, cluster: str) -> Iterable[Transition]:
        """Return the kept transitions, which a memory of several outputs has in its parts."""
        return self._transitions.get(cluster, ())

    def _job_of(self, cluster: str) -> JobRow | None:  # noqa: ARG002 (this memory has one job)
        return self._job

    def _clock_behind_ms(self, cluster: str) -> int:
        job = self._job_of(cluster)
        progress = None if job is None else job.clusters.get(cluster)
        return 0 if progress is None else progress.clock_behind_ms
