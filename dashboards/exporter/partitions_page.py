"""Page `/metrics/partitions` with every partition, rendered when metadata changes and kept compressed.

prometheus-client would take seconds for this many series. This module therefore writes the lines itself, and only for
segments that changed.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass
from types import MappingProxyType

from controller.contract.metadata_rows import PartitionRow
from controller.rules.states import PartitionState
from dashboards.catalogue import partitions_page_metrics
from dashboards.catalogue.metric import PARTITIONS_PAGE, Metric
from dashboards.errors import ServeError
from dashboards.exporter.gzip_pieces import GzipFile, GzipPiece
from outputs.reading import ReadingCounts
from questions.memory import Memory
from questions.picture import Present

# Changes within this time share a rendering. Then the thread rests nine times as long as it worked, so it uses a tenth
# of a core.
_COALESCE_SECONDS = 1.0
_REST_FOR_WORK = 9

_logger = logging.getLogger("kontrast.dashboards")

# PartitionState.state in Kafka.
_STATE_NUMBERS: Mapping[str, int] = MappingProxyType(
    {
        PartitionState.NEW.word: 0,
        PartitionState.ONLINE.word: 1,
        PartitionState.OFFLINE.word: 2,
        PartitionState.NON_EXISTENT.word: 3,
    }
)

_WRITABLE: Mapping[bool | None, str] = MappingProxyType({True: "1", False: "0", None: "NaN"})

# Read as "KEY has this value for a partition".
_VALUES: Mapping[Metric, Callable[[PartitionRow], int | str]] = MappingProxyType(
    {
        partitions_page_metrics.PARTITION_LEADER: lambda row: row.leader,
        partitions_page_metrics.PARTITION_LEADER_EPOCH: lambda row: row.leader_epoch,
        partitions_page_metrics.PARTITION_REPLICAS: lambda row: len(row.replicas),
        partitions_page_metrics.PARTITION_IN_SYNC: lambda row: len(row.isr),
        partitions_page_metrics.PARTITION_STATE: lambda row: _STATE_NUMBERS.get(row.state, -1),
        partitions_page_metrics.PARTITION_WRITABLE_ACKS_ALL: lambda row: _WRITABLE[row.writable_acks_all],
    }
)

_Pieces = Mapping[Metric, GzipPiece]


@dataclass(frozen=True, slots=True, kw_only=True)
class PageFigures:
    """Time and sizes of the newest rendering."""

    render_seconds: float
    plain_bytes: int
    compressed_bytes: int


@dataclass(frozen=True, slots=True)
class Page:
    """The page in Prometheus' text format and in OpenMetrics, which differs only in its end."""

    text: GzipFile
    openmetrics: GzipFile
    figures: PageFigures


class PartitionsPage:
    """Thread that keeps the page up to date. `check` raises ServeError if a defect ended the thread."""

    def __init__(self, memory: Memory, reading: ReadingCounts, stale_after_ms: int) -> None:
        self._memory = memory
        self._reading = reading
        self._stale_after_ms = stale_after_ms
        self._pieces: dict[str, dict[int, _Pieces]] = {}
        self._failure: ServeError | None = None
        self._readiness: Mapping[str, bool] = {}
        self.page = self._page_of({}, time.perf_counter())
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, name="partitions page", daemon=True)

    def __enter__(self) -> PartitionsPage:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        self._thread.join()

    def check(self) -> None:
        """Raise ServeError if the page is no longer rendered."""
        if self._failure is not None:
            raise self._failure

    def figures(self) -> PageFigures:
        """Return time and sizes of the newest rendering."""
        return self.page.figures

    def _run(self) -> None:
        rest_until = 0.0
        try:
            while not self._stop.wait(_COALESCE_SECONDS):
                started = time.perf_counter()
                if self.render(resting=started < rest_until):
                    rest_until = started + (1 + _REST_FOR_WORK) * (time.perf_counter() - started)
        except Exception as error:  # a bug must end the exporter, or the page would show old values as if they were new
            _logger.exception("rendering %s failed", PARTITIONS_PAGE)
            self._failure = ServeError(f"rendering {PARTITIONS_PAGE} failed with {error!r} (details in the log)")

    def render(self, *, resting: bool = False) -> bool:
        """Render the page if its content changed. While resting, only drop clusters that are no longer ready."""
        started = time.perf_counter()
        reading = self._reading.snapshot()
        present = Present(time.time_ns() // 1_000_000, self._stale_after_ms)
        readiness = {
            known.cluster: known.is_seen(present) and reading.vouches_for(known.cluster)
            for known in self._memory.clusters()
        }
        if resting:
            readiness = {cluster: ready and self._readiness.get(cluster, False) for cluster, ready in readiness.items()}
            changed = False
        else:
            # A list, because any() of a generator would stop at the first changed cluster.
            changed = any([self._render_cluster(cluster) for cluster, ready in readiness.items() if ready])
        if changed or readiness != self._readiness:
            self._readiness = readiness
            self._pieces = {cluster: pieces for cluster, pieces in self._pieces.items() if cluster in readiness}
            self.page = self._page_of(readiness, started)
        return changed

    def _render_cluster(self, cluster: str) -> bool:
        changed = self._memory.take_changed_partitions(cluster)
        if changed:
            pieces = {segment: _pieces_of(cluster, rows) for segment, rows in changed.items()}
            self._pieces.setdefault(cluster, {}).update(pieces)
        return bool(changed)

    def _page_of(self, readiness: Mapping[str, bool], started: float) -> Page:
        ready = [cluster for cluster, is_ready in readiness.items() if is_ready]
        pieces = [GzipPiece.of(_readiness_text(readiness))]
        for metric in _VALUES:
            pieces.append(_HEADINGS[metric])
            pieces += [piece[metric] for cluster in ready for piece in self._pieces.get(cluster, {}).values()]
        whole = GzipPiece.joined(pieces)
        text, openmetrics = GzipFile.of(whole), GzipFile.of(whole, _END_OF_OPENMETRICS)
        figures = PageFigures(
            render_seconds=time.perf_counter() - started,
            plain_bytes=text.size,
            compressed_bytes=text.compressed_size,
        )
        return Page(text, openmetrics, figures)


def _heading(metric: Metric) -> str:
    return f"# HELP {metric.name} {metric.help}\n# TYPE {metric.name} {metric.type.value}\n"


_HEADINGS: Mapping[Metric, GzipPiece] = MappingProxyType(
    {metric: GzipPiece.of(_heading(metric).encode()) for metric in _VALUES}
)
_END_OF_OPENMETRICS = GzipPiece.of(b"# EOF\n")


def _escaped(value: str) -> str:
    return value.replace("\\", r"\\").replace('"', r"\"").replace("\n", r"\n")


def _readiness_text(readiness: Mapping[str, bool]) -> bytes:
    lines = [_heading(partitions_page_metrics.PAGE_READY)]
    for cluster, is_ready in readiness.items():
        labels = f'kafka_cluster="{_escaped(cluster)}",page="{PARTITIONS_PAGE}"'
        lines.append(f"{partitions_page_metrics.PAGE_READY.name}{{{labels}}} {int(is_ready)}\n")
    return "".join(lines).encode()


def _pieces_of(cluster: str, rows: Collection[PartitionRow]) -> _Pieces:
    """Return a piece of each family with these partitions."""
    of_cluster = f'{{kafka_cluster="{_escaped(cluster)}",topic="'
    labels = [f'{of_cluster}{_escaped(row.topic)}",partition="{row.partition}"}} ' for row in rows]
    return {metric: GzipPiece.of(_lines(metric.name, labels, map(read, rows))) for metric, read in _VALUES.items()}


def _lines(name: str, labels: Iterable[str], values: Iterable[int | str]) -> bytes:
    lines = [f"{name}{of_partition}{value}\n" for of_partition, value in zip(labels, values, strict=True)]
    return "".join(lines).encode()
