"""Memory of every cluster that the outputs have, with the newest row of each subject and the rows that it replaced."""

from __future__ import annotations

import dataclasses
import threading
from bisect import bisect_right
from collections import defaultdict, deque
from collections.abc import Collection, Mapping, Sequence
from itertools import islice
from typing import Final, NamedTuple

import msgspec

from controller.contract.alert_row import AlertRow
from controller.contract.effect_rows import Transition
from controller.contract.ids import BrokerId, PartitionId
from controller.contract.job_row import ClusterProgress, JobRow
from controller.contract.metadata_rows import BrokerRow, PartitionRow
from controller.contract.row import Row
from controller.rules.topic_ranks import TopicRanks
from controller.view.types import Context
from questions.cluster_rows import ClusterRows, ClusterSnapshot
from questions.past import PAST_ROWS, Past, Replacement
from wording.sentences import joined

_CHANGES: Final = (PartitionRow.output, AlertRow.output, Transition.output)


class Kept(NamedTuple):
    """First and last moment at which a cluster is known."""

    since_ms: int
    newest_ms: int

    def nearest(self, at_ms: int) -> int:
        """Return the moment, or the nearest that is kept."""
        return min(max(at_ms, self.since_ms), self.newest_ms)


class Memory:
    """The newest row of each subject of every cluster, and transitions. Any thread may apply a row or ask.

    The rows come from the outputs of one job or of several, the `sources`. `alert_news` is set for each row of an
    alert. One thread may wait for it and clear it.
    """

    def __init__(self, past_rows: int = PAST_ROWS, sources: Sequence[str] = ("",)) -> None:
        self.alert_news = threading.Event()
        self.sources = tuple(sources)
        self._lock = threading.Lock()
        # Look up with `get`, because an index creates the cluster.
        self._clusters: dict[str, defaultdict[str, ClusterRows]] = {
            source: defaultdict(lambda: ClusterRows(Past(past_rows))) for source in sources
        }
        self._transitions: dict[str, defaultdict[str, deque[Transition]]] = {
            source: defaultdict(lambda: deque(maxlen=past_rows)) for source in sources
        }
        self._jobs: dict[str, JobRow] = {}
        self._whole: tuple[tuple[object, ...], Context] | None = None

    def apply(self, row: Row | JobRow, source: str = "") -> bool:
        """Apply a row of this source. Return False if a newer one of its subject is known."""
        with self._lock:
            if isinstance(row, JobRow):
                # A cluster without a record in the batch keeps its older progress.
                known = self._jobs[source].clusters if source in self._jobs else {}
                self._note_job(source, row, {**known, **row.clusters})
                return True
            if isinstance(row, Transition):  # it shows nothing of the present, so it creates no cluster
                self._transitions[source][row.cluster].append(row)
                return False
            is_news = self._clusters[source][row.cluster].apply(row)
        if isinstance(row, AlertRow):
            self.alert_news.set()
        return is_news

    def add_cluster(self, cluster: str, source: str = "") -> None:
        """Add a cluster, even one without rows."""
        with self._lock:
            _ = self._clusters[source][cluster]  # creates the rows

    def note_answering(self, cluster: str, broker: BrokerId) -> None:
        """Note that the port of a broker that left still answers, so that it must be restarted."""
        with self._lock:
            known = self._rows_of(cluster)
            if known is not None:
                known.answering |= {broker}
                known.changes[BrokerRow.output] += 1
        self.alert_news.set()

    def forget(self, output: str, cluster: str | None = None, *, source: str = "", for_good: bool = False) -> None:
        """Drop the rows of an output that starts over, for one cluster or all, `for_good` if an operator forgot it."""
        with self._lock:
            clusters, job = self._clusters[source], self._jobs.get(source)
            if output == Transition.output:
                self._transitions[source].clear()
            elif cluster is not None:
                clusters[cluster].forget(output, for_good=for_good)
                if job is not None:
                    self._note_job(source, job, job.clusters)
            else:
                for known in clusters.values():
                    known.forget(output, for_good=known.forgotten)
                if output == JobRow.output:
                    self._jobs.pop(source, None)

    def _note_job(self, source: str, row: JobRow, progress: Mapping[str, ClusterProgress]) -> None:
        gone = {name for name, known in self._clusters[source].items() if known.is_gone}
        of_clusters = {name: each for name, each in progress.items() if name not in gone}
        self._jobs[source] = msgspec.structs.replace(row, clusters=of_clusters)

    def lacks_rows_before(self, output: str, source: str = "") -> None:
        """Note that rows of this output are missing, because they were replaced or lost."""
        with self._lock:
            for known in self._clusters[source].values():
                known.past.begin_now(output)

    def clusters(self) -> tuple[ClusterSnapshot, ...]:
        """Return all clusters as they are now, in the order of their names, without topics."""
        with self._lock:
            found = [self._snapshot(name) for name in self._names()]
            return tuple(each for each in found if each is not None)

    def cluster(
        self, name: str, at_ms: int | None = None, topics: Collection[str] | None = ()
    ) -> ClusterSnapshot | None:
        """Return the cluster now or at a kept moment, if it exists, with the named topics, or all for None."""
        with self._lock:
            return self._snapshot(name, at_ms, topics)

    def _snapshot(
        self, name: str, at_ms: int | None = None, topics: Collection[str] | None = ()
    ) -> ClusterSnapshot | None:
        source, known = self._holder(name)
        if known is None or known.is_gone:
            return None
        found = known.snapshot(name, self._clock_behind_ms(source, name), at_ms, topics)
        shared = self._shared(name)
        return dataclasses.replace(found, shared=shared) if shared else found

    def whole(self, found: ClusterSnapshot, ranks: TopicRanks, at_ms: int | None = None) -> Context:
        """Return a cluster that was read with every partition. One thread may ask, because the last answer is kept."""
        assert found.gauges is not None, "a cluster that was read"
        version = self.version(found.cluster, PartitionRow.output)
        asked = (found.cluster, at_ms, version, found.gauges.status, found.gauges.ensemble)
        if self._whole is None or self._whole[0] != asked:
            self._whole = None  # never two at once, because 200,000 partitions take some hundred MB
            everything = self.cluster(found.cluster, at_ms, None) or found
            self._whole = asked, everything.picture(ranks=ranks).context
        return self._whole[1]

    def kept(self, cluster: str) -> Kept | None:
        """Return the span in which the cluster's whole state is known, if any."""
        with self._lock:
            known = self._rows_of(cluster)
            gauges = None if known is None or known.is_gone else known.gauges()
            since_ms = None if known is None else known.past.since_ms
        return None if gauges is None or since_ms is None else Kept(since_ms, max(gauges.time_ms, since_ms))

    def changes(self, cluster: str, begin_ms: int, end_ms: int, outputs: Collection[str] = _CHANGES) -> list[Row]:
        """Return the kept changes and transitions of this time, with the rows that the changes replaced."""
        with self._lock:
            known = self._rows_of(cluster)
            changes = [] if known is None else known.past.between(begin_ms, end_ms, outputs)
            if Transition.output in outputs:
                for by_cluster in self._transitions.values():
                    kept = by_cluster.get(cluster, ())
                    changes += [row for row in kept if begin_ms <= row.time_ms <= end_ms]
            return changes

    def replaced_between(self, cluster: str, begin_ms: int, end_ms: int) -> list[Replacement]:
        """Return the kept changes of metadata and of the gauges in this time, without those of the first read."""
        with self._lock:
            known = self._rows_of(cluster)
            since_ms = None if known is None else known.past.since_ms
            if known is None or since_ms is None:
                return []
            return known.past.replaced_between(max(begin_ms, since_ms + 1), end_ms)

    def newest_events(self, cluster: str) -> list[Replacement]:
        """Return the newest changes of brokers, the controller and alerts, the oldest first."""
        with self._lock:
            known = self._rows_of(cluster)
            return [] if known is None else list(known.past.notable)

    def version(self, cluster: str | None, *outputs: str) -> int:
        """Return how often these outputs changed, for one cluster or all. The number only grows."""
        # No lock, because event streams ask on the event loop, which must not wait for a computing thread.
        clusters: list[ClusterRows | None] = []
        for by_name in self._clusters.values():
            clusters += list(by_name.values()) if cluster is None else [by_name.get(cluster)]
        return sum(known.changes[output] for known in clusters if known is not None for output in outputs)

    def partitions(self, cluster: str) -> dict[tuple[str, PartitionId], PartitionRow]:
        """Return every partition of the cluster as it is now, by topic and number."""
        with self._lock:
            known = self._rows_of(cluster)
            by_topic = {} if known is None else known.partitions.by_topic
            return {(topic, number): row for topic, rows in by_topic.items() for number, row in rows.items()}

    def partitions_of(self, cluster: str, topic: str) -> dict[PartitionId, PartitionRow]:
        """Return the topic's partitions as they are now, in their order. An unknown topic has no partitions."""
        with self._lock:
            known = self._rows_of(cluster)
            return {} if known is None else dict(sorted(known.partitions.by_topic.get(topic, {}).items()))

    def topic_names(self, cluster: str, contains: str, after: str, most: int) -> list[str]:
        """Return the first names, in their order, that contain the text in any case and come after `after`."""
        with self._lock:
            known = self._rows_of(cluster)
            names = [] if known is None else known.partitions.names()
        begin, wanted = bisect_right(names, after) if after else 0, contains.lower()
        found = (name for name in islice(names, begin, None) if wanted in name.lower())
        return list(islice(found, most))

    def jobs(self) -> Mapping[str, JobRow]:
        """Return the newest row of each job that has one, by its source."""
        with self._lock:
            return dict(self._jobs)

    def job_of(self, cluster: str) -> JobRow | None:
        """Return the newest row of the cluster's job, if there is one."""
        with self._lock:
            return self._jobs.get(self._holder(cluster)[0])

    def knows(self, cluster: str) -> bool:
        """Return whether the cluster exists."""
        with self._lock:
            return self._exists(cluster)

    def names(self) -> list[str]:
        """Return the names of all clusters, in their order."""
        with self._lock:
            return [name for name in self._names() if self._exists(name)]

    def named_twice(self) -> str | None:
        """Return a sentence about the first cluster that several sources have, if there is one."""
        with self._lock:
            return next(filter(None, map(self._shared, self._names())), None)

    def clock_behind_ms(self, cluster: str) -> int:
        """Return the lag of the forwarder's clock behind the job's, or 0 if they agree or it is unknown."""
        with self._lock:
            return self._clock_behind_ms(self._holder(cluster)[0], cluster)

    def endings_of_forgotten(self) -> Mapping[str, Mapping[str, AlertRow]]:
        """Return the alerts, by cluster and id, that ended because their cluster was forgotten."""
        with self._lock:
            every = {name: self._rows_of(name) for name in self._names()}
            return {name: dict(known.resolved) for name, known in every.items() if known is not None and known.is_gone}

    def _shared(self, name: str) -> str:
        """Return a sentence if several sources have the cluster, whose rows would otherwise be those of one of them."""
        holders = {source: by_name.get(name) for source, by_name in self._clusters.items()}
        held = [source for source, known in holders.items() if known is not None and not known.is_gone]
        if len(held) < 2:
            return ""
        return f"cluster {name} is in the outputs {joined(held)}. Forget it where no watcher forwards it any more"

    def _names(self) -> list[str]:
        return sorted(set().union(*self._clusters.values()))

    def _holder(self, cluster: str) -> tuple[str, ClusterRows | None]:
        """Return the source that has the cluster, with its rows. A source that has forgotten the cluster comes last."""
        found: tuple[str, ClusterRows | None] = "", None
        for source, by_name in self._clusters.items():
            known = by_name.get(cluster)
            if known is not None and (found[1] is None or found[1].is_gone):
                found = source, known
        return found

    def _exists(self, cluster: str) -> bool:
        known = self._rows_of(cluster)
        return known is not None and not known.is_gone

    def _rows_of(self, cluster: str) -> ClusterRows | None:
        return self._holder(cluster)[1]

    def _clock_behind_ms(self, source: str, cluster: str) -> int:
        job = self._jobs.get(source)
        progress = None if job is None else job.clusters.get(cluster)
        return 0 if progress is None else progress.clock_behind_ms
