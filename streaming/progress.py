"""The row of the output `job`, from the reports of Spark and the replica on each batch.

The next batch writes a batch's row, or the newest row again if Spark has not reported yet. A job without a record to
read writes its row each ten seconds, so that readers can distinguish a silent `kontrast watch` from a dead job.

The job compares the forwarders' clocks with its own, so that a wrong or stepped clock does not look like a late job. A
batch that took all records ends with a fresh record, so its time allows a comparison. A backlog, or the last records
of a forwarder that ended, do not allow one.
"""

from __future__ import annotations

import logging
import threading
import time
import uuid
from collections import Counter
from collections.abc import Mapping
from datetime import datetime
from typing import Any, NamedTuple

import msgspec
from pyspark.sql import DataFrame, functions as sql
from pyspark.sql.streaming.listener import (
    JStreamingQueryListener,
    QueryIdleEvent,
    QueryProgressEvent,
    QueryStartedEvent,
    QueryTerminatedEvent,
    StreamingQueryListener,
)

from controller.contract.decoding import JsonDecoder
from controller.contract.job_row import CLOCKS_AGREE_WITHIN_MS, ClusterProgress, JobRow, ProcessUse
from streaming.checkpoint.files import numbered
from streaming.checkpoint.place import Place
from streaming.config import StreamConfig
from streaming.processes import uses_of
from streaming.published import APPLIED, Applied, Observed
from transport.address import JournalAddress
from wording.sentences import own_version


class ClockReading(NamedTuple):
    """Both clocks of the job at one moment."""

    wall_ms: int
    steady_ms: int

    @classmethod
    def now(cls) -> ClockReading:
        """Read both clocks."""
        return cls(time.time_ns() // 1_000_000, time.monotonic_ns() // 1_000_000)


class _Comparison(NamedTuple):
    generation: int
    behind_ms: int  # the forwarder's wall clock
    steady_apart_ms: int  # the job's steady clock minus the forwarder's. A step of a wall clock does not change it

    def agrees(self, other: _Comparison | None) -> bool:
        return (
            other is not None
            and self.generation == other.generation
            and abs(self.behind_ms - other.behind_ms) <= CLOCKS_AGREE_WITHIN_MS
            and abs(self.steady_apart_ms - other.steady_apart_ms) <= CLOCKS_AGREE_WITHIN_MS
        )


class ForwarderClocks:
    """The forwarders' clocks as far as they are known, by cluster."""

    def __init__(self) -> None:
        self._seen: dict[str, _Comparison] = {}
        self._agreed: dict[str, _Comparison] = {}

    def compare(self, cluster: str, planned_ms: int, last: Observed, now: ClockReading) -> None:
        """Compare the clocks by a batch that was planned at this wall time, and took all records up to the last.

        Two consecutive batches must agree, because one may contain the last records of an ended forwarder, or see a
        clock step.
        """
        behind_ms = planned_ms - last.wall_ms
        ahead_ms, forwarder_ahead_ms = now.wall_ms - now.steady_ms, last.wall_ms - last.steady_ms
        apart_ms = forwarder_ahead_ms + _if_wrong(behind_ms) - ahead_ms if last.steady_ms >= 0 else 0
        comparison = _Comparison(last.generation, behind_ms, apart_ms)
        if comparison.agrees(self._seen.get(cluster)):
            self._agreed[cluster] = comparison
        self._seen[cluster] = comparison

    def behind_ms(self, cluster: str) -> int:
        """Return how many ms the forwarder's wall clock is behind the job's, 0 if they agree or were not compared."""
        agreed = self._agreed.get(cluster)
        return _if_wrong(agreed.behind_ms) if agreed else 0

    def lag_ms(self, cluster: str, first: Observed, written: ClockReading) -> int:
        """Return the time from a record's observation until its rows were written.

        The steady clocks give this time once they were compared. Until then the wall clocks do.
        """
        agreed = self._agreed.get(cluster)
        if agreed and agreed.generation == first.generation and first.steady_ms >= 0:
            return max(0, written.steady_ms - first.steady_ms - agreed.steady_apart_ms)
        return max(0, written.wall_ms - first.wall_ms - self.behind_ms(cluster))


def _if_wrong(behind_ms: int) -> int:
    return behind_ms if abs(behind_ms) > CLOCKS_AGREE_WITHIN_MS else 0


_APPLIED = JsonDecoder(Applied)
_OFFSET = JsonDecoder(dict[str, int | str])
_NO_OFFSET = "null"  # of the first batch of a checkpoint
_PROGRESS = JsonDecoder(dict[str, Any])
_LOG = logging.getLogger("kontrast.streaming")

_OBSERVED = "kontrast"
_VERSION = own_version("")
_REMEMBERED_BATCHES = 16
# Prometheus looks each 15 s. One reading took 4.7 ms of a processor (Java with 266 threads, a load of 20): 0.05 % of a
# core. The cost grows with threads and workers, not with clusters or partitions.
_READ_USES_EVERY_SECONDS = 10.0


def observed(rows: DataFrame) -> DataFrame:
    """Return the rows of the outputs. The replica's reports go to the progress of the batch."""
    applied = sql.when(sql.col("output") == APPLIED, sql.col("values").cast("string"))
    watched = rows.observe(_OBSERVED, sql.sum("count").alias("rows"), sql.collect_list(applied).alias("applied"))
    return watched.where(sql.col("output") != APPLIED)


class JobProgress(StreamingQueryListener):
    """Listener to one query that keeps its newest row. `java` is Spark's process."""

    def __init__(self, query_name: str, config: StreamConfig, spark_directory: Place, java: int) -> None:
        self._query_name = query_name
        self._java = java
        self._uses: dict[str, ProcessUse] = {}
        self._uses_read_at = float("-inf")
        self._config = config
        self._spark_directory = spark_directory
        self._clocks = ForwarderClocks()
        self._lock = threading.Lock()
        self._began_ms = ClockReading.now().wall_ms
        self._written: dict[int, ClockReading] = {}
        self._batches = self._records = self._refused = self._rows = 0
        self._total_phase_ms: Counter[str] = Counter()
        self._row: JobRow | None = None  # the newest row, if it is not taken yet
        self._newest: JobRow | None = None
        self._query: uuid.UUID | None = None
        self._is_idle = False
        self._pictured: set[str] = set()
        self.lacking: Mapping[str, int] = {}  # clusters of which records are missing, and their failures in a row

    def written(self, batch: int) -> None:
        """Note that the rows of a batch are written."""
        with self._lock:
            self._written[batch] = ClockReading.now()
            while len(self._written) > _REMEMBERED_BATCHES:
                del self._written[min(self._written)]

    def take_row(self) -> JobRow:
        """Return the newest row. If it was taken before, it has the present time and no clusters."""
        with self._lock:
            row, self._row, self._is_idle = self._row, None, False
            return row or self._known_again()

    def take_idle_row(self) -> JobRow | None:
        """Return the newest row if no batch is there to write it."""
        return self.take_row() if self._is_idle else None

    def onQueryStarted(self, event: QueryStartedEvent) -> None:  # noqa: N802 (Spark's name)
        """Note the query's id, by which idle events name it."""
        if event.name == self._query_name:
            self._query = event.id

    def onQueryProgress(self, event: QueryProgressEvent) -> None:  # noqa: N802 (Spark's name)
        """Note a finished batch."""
        progress = event.progress
        if progress.name == self._query_name and progress.stateOperators:
            with self._lock:
                self._row = self._newest = self._row_of(progress)
                self._is_idle = False

    def onQueryIdle(self, event: QueryIdleEvent) -> None:  # noqa: N802 (Spark's name)
        """Note that the job waits for records. Spark sends this event each ten seconds."""
        if event.id == self._query:
            with self._lock:
                known = self._row or self._known_again()
                self._row = msgspec.structs.replace(
                    known, time_ms=ClockReading.now().wall_ms, processes=self._newest_uses()
                )
                self._is_idle = True

    def onQueryTerminated(self, event: QueryTerminatedEvent) -> None:  # noqa: N802 (Spark's name)
        """Ignore the end, because the job itself knows the reason."""

    @property
    def _jlistener(self) -> Any:  # noqa: ANN401 (an object of Java's)
        # pyspark asks Java for each field, some 70 calls per batch.
        from pyspark import SparkContext

        if not hasattr(self, "_jlistenerobj"):
            assert SparkContext._jvm is not None, "a listener without a session"
            self._jlistenerobj = SparkContext._jvm.PythonStreamingQueryListenerWrapper(_InOneCall(self))
        return self._jlistenerobj

    def _row_of(self, progress: Any) -> JobRow:  # noqa: ANN401 (pyspark's dictionary)
        seen = progress.observedMetrics.get(_OBSERVED)
        applied = [_APPLIED.decode(line) for line in (seen["applied"] if seen else ())]
        reported = [of_cluster for of_cluster in applied if of_cluster.records]
        reported_names = {of_cluster.cluster for of_cluster in reported}
        self.lacking = {
            **{cluster: failures for cluster, failures in self.lacking.items() if cluster not in reported_names},
            **{of_cluster.cluster: of_cluster.failures for of_cluster in reported if of_cluster.lacks_records},
        }
        self._log_first_pictures(applied)
        now = ClockReading.now()
        written = self._written.get(progress.batchId, now)
        if _took_all(progress, sum(of_cluster.records + of_cluster.refused for of_cluster in applied), self._config):
            planned_ms = round(datetime.fromisoformat(progress.timestamp.replace("Z", "+00:00")).timestamp() * 1000)
            for of_cluster in reported:
                self._clocks.compare(of_cluster.cluster, planned_ms, of_cluster.last, now)
        self._batches += 1
        self._records += sum(of_cluster.records for of_cluster in applied)
        self._refused += sum(of_cluster.refused for of_cluster in applied)
        self._rows += int(seen["rows"] or 0) if seen else 0
        self._total_phase_ms.update(progress.durationMs)
        states = progress.stateOperators
        return JobRow(
            time_ms=now.wall_ms,
            version=_VERSION,
            began_ms=self._began_ms,
            batch=progress.batchId,
            batches=self._batches,
            records=self._records,
            refused=self._refused,
            rows=self._rows,
            phase_ms=dict(progress.durationMs),
            total_phase_ms=dict(self._total_phase_ms),
            state_bytes=sum(state.memoryUsedBytes for state in states),
            state_values=sum(state.numRowsTotal for state in states),
            state_commit_ms=sum(state.commitTimeMs for state in states),
            clusters={each.cluster: self._progress_of(each, written) for each in reported if not each.forgotten},
            processes=self._newest_uses(),
        )

    def _known_again(self) -> JobRow:
        known = self._newest or self._row_before_batches()
        return msgspec.structs.replace(known, time_ms=ClockReading.now().wall_ms, clusters={})

    def _row_before_batches(self) -> JobRow:
        committed = max(numbered(self._spark_directory / "commits"), default=0)
        return JobRow(
            time_ms=self._began_ms,
            version=_VERSION,
            began_ms=self._began_ms,
            batch=committed,
            batches=0,
            records=0,
            refused=0,
            rows=0,
            phase_ms={},
            total_phase_ms={},
            state_bytes=0,
            state_values=0,
            state_commit_ms=0,
        )

    def _newest_uses(self) -> dict[str, ProcessUse]:
        now = time.monotonic()
        if now - self._uses_read_at >= _READ_USES_EVERY_SECONDS:
            self._uses, self._uses_read_at = uses_of(self._java), now
        return self._uses

    def _progress_of(self, applied: Applied, written: ClockReading) -> ClusterProgress:
        return ClusterProgress(
            records=applied.records,
            observed_ms=applied.first.wall_ms,
            lag_ms=self._clocks.lag_ms(applied.cluster, applied.first, written),
            clock_behind_ms=self._clocks.behind_ms(applied.cluster),
        )

    def _log_first_pictures(self, applied: list[Applied]) -> None:
        self._pictured.difference_update(of_cluster.cluster for of_cluster in applied if of_cluster.forgotten)
        for of_cluster in applied:
            if of_cluster.picture and of_cluster.cluster not in self._pictured:
                self._pictured.add(of_cluster.cluster)
                _LOG.info("%s: %s", of_cluster.cluster, of_cluster.picture)


def _took_all(progress: Any, records: int, config: StreamConfig) -> bool:  # noqa: ANN401 (pyspark's dictionary)
    """Return whether the batch was surely below its largest size, and so left no record behind when it was planned."""
    if not isinstance(config.source, JournalAddress):
        return 2 * records < config.max_batch_records
    (source,) = progress.sources
    if source.startOffset == _NO_OFFSET:
        return False
    begin, end = (int(_OFFSET.decode(offset)["offset"]) for offset in (source.startOffset, source.endOffset))
    return 2 * (end - begin) < config.max_batch_bytes


class _InOneCall(JStreamingQueryListener):
    def onQueryProgress(self, jevent: Any) -> None:  # noqa: ANN401, N802 (an object of Java's, Spark's name)
        progress = _PROGRESS.decode(jevent.progress().json())
        self.pylistener.onQueryProgress(QueryProgressEvent.fromJson({"progress": progress}))
