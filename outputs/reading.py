"""What followers have read of the outputs: rows, bad rows, gaps and lag, and whether everything has been read."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from controller.contract.ids import Zxid
from transport.forwarding import Lag

LAG_BUCKETS_SECONDS = (0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 300.0, float("inf"))

# The outputs that the exporter needs. Alerts precede the thousands of metadata rows of a broker's loss. Gauges come
# last, so that a heartbeat never overtakes its rows.
FOLLOWED_OUTPUTS = ("job", "alerts", "metadata", "gauges")

ALERTING_OUTPUTS = ("job", "alerts", "gauges")
"""The outputs that the delivery of alerts needs, which have few rows."""

# In these outputs all rows together make the state. In the other outputs the newest row is complete.
_PICTURES = ("metadata", "alerts")


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadingSnapshot:
    """The counts at one moment."""

    source_up: bool
    missing: tuple[str, ...]  # outputs that do not exist
    cut: tuple[str, ...]  # outputs that lack rows that the job has written
    caught_up: bool  # every row from before the exporter's start has been read
    alerts_known: bool  # this is so for the rows that alerts need
    newer: frozenset[str]  # clusters with rows that only a newer Kontrast can read
    rows: Mapping[tuple[str, str], int]  # by cluster and output
    bad_rows: Mapping[str, int]  # by output
    gaps: Mapping[str, int]  # by output
    lag: Mapping[str, Lag]  # by cluster
    begun_since_gap: Mapping[str, frozenset[str]]  # clusters written again since, by output with a gap

    def by_source(self) -> Mapping[str, ReadingSnapshot]:
        """Return the counts of each source by its address, which is empty for a single source."""
        return {"": self}

    def of(self, cluster: str) -> ReadingSnapshot:  # noqa: ARG002 (there is one source)
        """Return the counts of the source that has the cluster."""
        return self

    def knows(self, cluster: str) -> bool:
        """Return whether the source has rows of the cluster."""
        return cluster in self.newer or any((cluster, output) in self.rows for output in FOLLOWED_OUTPUTS)

    def outputs_lacking_rows_of(self, cluster: str) -> tuple[str, ...]:
        """Return the outputs that lost rows of this cluster, which the job has not written again."""
        gaps = (output for output, begun in self.begun_since_gap.items() if cluster not in begun)
        return tuple(sorted({*gaps, *self.cut}))

    @property
    def is_empty(self) -> bool:
        """Return whether no output exists, because none was written yet or the address is wrong."""
        return len(self.missing) == len(FOLLOWED_OUTPUTS)

    def vouches_for(self, cluster: str) -> bool:
        """Return whether all of the cluster's rows in the outputs have been read."""
        return self.of(cluster).caught_up and self.vouches_for_alerts(cluster)

    def vouches_for_alerts(self, cluster: str) -> bool:
        """Return whether the cluster's rows that alerts need have been read, and no output is known to lack rows."""
        return self.alerts_known and cluster not in self.newer and not self.outputs_lacking_rows_of(cluster)


class ReadingCounts:
    """Growing counts. One thread counts, and any thread takes snapshots."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._source_up = False
        self._missing: tuple[str, ...] = ()
        self._cut: tuple[str, ...] = ()
        self._caught_up = False
        self._alerts_known = False
        self._rows: Counter[tuple[str, str]] = Counter()
        self._bad_rows: Counter[str] = Counter(dict.fromkeys(FOLLOWED_OUTPUTS, 0))
        self._gaps: Counter[str] = Counter(dict.fromkeys(FOLLOWED_OUTPUTS, 0))
        self._lag: dict[str, Lag] = {}
        self._newer: set[tuple[str, str]] = set()
        self._begun_since_gap: dict[str, set[str]] = {}

    def source_is(self, *, up: bool) -> None:
        """Note whether the outputs can be read."""
        with self._lock:
            self._source_up = up

    def lacks(self, missing: tuple[str, ...], cut: tuple[str, ...] = ()) -> None:
        """Note which outputs do not exist, and which lack rows that the job has written."""
        with self._lock:
            self._missing, self._cut = missing, cut

    def caught_up(self) -> None:
        """Note that every row from before the exporter's start has been read."""
        with self._lock:
            self._caught_up = self._alerts_known = True

    def knows_alerts(self) -> None:
        """Note that every row from before the exporter's start that alerts need has been read."""
        with self._lock:
            self._alerts_known = True

    def row(self, cluster: str, output: str) -> None:
        """Count a row."""
        with self._lock:
            self._rows[cluster, output] += 1

    def bad_row(self, output: str) -> None:
        """Count a line that is no row."""
        with self._lock:
            self._bad_rows[output] += 1

    def newer_row(self, cluster: str, output: str) -> bool:
        """Note a row that needs a newer Kontrast. Return True for the first one of this cluster and output."""
        with self._lock:
            known = (cluster, output) in self._newer
            self._newer.add((cluster, output))
            return not known

    def nothing_newer(self, output: str, cluster: str | None = None) -> None:
        """Forget that rows needed a newer Kontrast, because they are void or replaced, for one cluster or all."""
        with self._lock:
            self._newer = {
                (of, by) for of, by in self._newer if by != output or (cluster is not None and of != cluster)
            }

    def gap(self, output: str) -> None:
        """Count rows that were dropped or damaged before they were read."""
        with self._lock:
            self._gaps[output] += 1
            if output in _PICTURES:
                self._begun_since_gap[output] = set()

    def begins(self, output: str, cluster: str) -> None:
        """Note that the output's rows of this cluster follow from the beginning."""
        with self._lock:
            if output in self._begun_since_gap:
                self._begun_since_gap[output].add(cluster)

    def forget(self, cluster: str) -> None:
        """Drop the counts of a cluster that was forgotten."""
        with self._lock:
            for counted in [key for key in self._rows if key[0] == cluster]:
                del self._rows[counted]
            self._lag.pop(cluster, None)
            self._newer = {(of, by) for of, by in self._newer if of != cluster}

    def starts_over(self, output: str) -> None:
        """Note that the output's rows follow from the beginning, so an earlier gap does not matter."""
        with self._lock:
            self._begun_since_gap.pop(output, None)

    def lag(self, cluster: str, lag_seconds: float, *, zxid: Zxid, at_seconds: float) -> None:
        """Observe how long after its cause a new row arrived. The cause is the change with this zxid."""
        with self._lock:
            lag = self._lag.get(cluster, Lag.none_yet(LAG_BUCKETS_SECONDS))
            self._lag[cluster] = lag.observe(lag_seconds, zxid=zxid, at_seconds=at_seconds)

    def why_unread(self, cluster: str) -> str | None:
        """Return why rows of the cluster may be missing, or None if all were read."""
        state = self.snapshot().of(cluster)
        if not state.source_up:
            return "Kontrast cannot read its outputs (see the log of kontrast serve)"
        if not state.caught_up:
            return "Kontrast is still reading its outputs"
        if not state.vouches_for(cluster):
            return "rows are missing or of a newer Kontrast (see /readyz and `kontrast status`)"
        return None

    def snapshot(self) -> ReadingSnapshot:
        """Return the present counts."""
        with self._lock:
            return ReadingSnapshot(
                source_up=self._source_up,
                missing=self._missing,
                cut=self._cut,
                caught_up=self._caught_up,
                alerts_known=self._alerts_known,
                newer=frozenset(cluster for cluster, _ in self._newer),
                rows=dict(self._rows),
                bad_rows=dict(self._bad_rows),
                gaps=dict(self._gaps),
                lag=dict(self._lag),
                begun_since_gap={output: frozenset(begun) for output, begun in self._begun_since_gap.items()},
            )


@dataclass(frozen=True, slots=True, kw_only=True)
class JoinedSnapshot(ReadingSnapshot):
    """The counts of several jobs' outputs at one moment. `parts` has the counts of each job by address."""

    parts: Mapping[str, ReadingSnapshot]

    def by_source(self) -> Mapping[str, ReadingSnapshot]:
        """Return the counts of each job's outputs by address."""
        return self.parts

    def of(self, cluster: str) -> ReadingSnapshot:
        """Return the counts of the outputs that have the cluster, or all if none has it."""
        return next((part for part in self.parts.values() if part.knows(cluster)), self)

    def outputs_lacking_rows_of(self, cluster: str) -> tuple[str, ...]:
        """Return the outputs that lost rows of this cluster, which the job has not written again."""
        part = self.of(cluster)
        return () if part is self else part.outputs_lacking_rows_of(cluster)

    def vouches_for_alerts(self, cluster: str) -> bool:
        """Return whether one job has the cluster, and its rows there that alerts need have been read."""
        part = self.of(cluster)
        return part is not self and part.vouches_for_alerts(cluster)


class JoinedCounts(ReadingCounts):
    """The counts of several jobs' outputs. Count in its `parts`, which are by address."""

    def __init__(self, addresses: Sequence[str]) -> None:
        super().__init__()
        self.parts = {address: ReadingCounts() for address in addresses}

    def snapshot(self) -> JoinedSnapshot:
        """Return the present counts. Unreadable lines and gaps of an output are summed over the jobs."""
        parts = {address: part.snapshot() for address, part in self.parts.items()}
        each = parts.values()
        outputs = dict.fromkeys(output for part in each for output in part.bad_rows)
        return JoinedSnapshot(
            parts=parts,
            source_up=all(part.source_up for part in each),
            missing=tuple(output for output in outputs if all(output in part.missing for part in each)),
            cut=(),
            caught_up=all(part.caught_up for part in each),
            alerts_known=all(part.alerts_known for part in each),
            newer=frozenset().union(*(part.newer for part in each)),
            rows={key: count for part in each for key, count in part.rows.items()},
            bad_rows={output: sum(part.bad_rows[output] for part in each) for output in outputs},
            gaps={output: sum(part.gaps[output] for part in each) for output in outputs},
            lag={cluster: lag for part in each for cluster, lag in part.lag.items()},
            begun_since_gap={},
        )
