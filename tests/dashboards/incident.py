"""Samples of recorded incidents, as a Prometheus would scrape them from Kontrast and the brokers.

Each cluster is one recording, and all are moved to the same time. ZooKeeper's log goes through the real core, its rows
through the exporter's real memory and collectors. A recording has no forwarder and no streaming job, so their own
figures are set here to round numbers.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
from prometheus_client.core import Metric as Family
from prometheus_client.registry import Collector

from controller.contract.gauges_row import GaugesRow
from controller.contract.ids import UNKNOWN_ZXID
from controller.contract.job_row import ClusterProgress, JobRow, ProcessUse
from controller.contract.records import Record, RecordKind
from controller.contract.row import Row
from dashboards.alerting.config import AlertmanagerConfig
from dashboards.alerting.registry import AlertRegistry, of_outputs
from dashboards.exporter.collector import MemoryCollector
from dashboards.exporter.scrape import DetailLimits
from dashboards.exporter.watch_page import ForwardingCollector
from outputs.reading import ReadingCounts
from questions.memory import Memory
from tests.conformance.recording import replay, unpack
from tests.rows import NEVER_STALE_MS
from transport.forwarding import Forwarding, ReadReason

SCRAPE_SECONDS = 2
RATE_INTERVAL = f"{4 * SCRAPE_SECONDS}s"  # Grafana's own value, four scrapes
BEGIN = 1795252145  # in seconds since 1970
END = BEGIN + 200


class Shown(NamedTuple):
    """A recording, and whether its brokers' JMX gauges are scraped."""

    recording: str
    jmx_is_scraped: bool


CLUSTERS = {
    "east": Shown("dev39", jmx_is_scraped=True),  # the everyday scenario
    "south": Shown("fuzz39a", jmx_is_scraped=True),  # /controller names a broker that never took over, for 4 s
    "west": Shown("fuzz20a", jmx_is_scraped=False),  # a controller that writes on after its term
}

PAGE_URL = "https://kontrast:9642"
LIMITS = DetailLimits(partitions=10, brokers=100, alerts=100)

# Values without a recording.
END_TO_END_LAG_SECONDS = 0.2
JOB_LAG_MS = 150
PROCESSES = {
    role: ProcessUse(processes=count, open_files=files, open_files_limit=limit, threads=threads, resident_bytes=memory)
    for role, count, files, limit, threads, memory in (
        ("driver", 1, 40, 1_024, 12, 180_000_000),
        ("java", 1, 355, 20_000, 90, 800_000_000),
        ("worker", 9, 30, 1_024, 14, 700_000_000),
    )
}
PHASE_MS = {"addBatch": 90, "latestOffset": 5}  # of each batch, one a second
LAST_BATCH_AGE_SECONDS = 0.3
MISHAP = BEGIN + 100  # the watchers' sessions are lost, and rows are missed or spoilt


@dataclass(slots=True)
class _Cluster:
    """One recording on its way into the exporter."""

    name: str
    records: Sequence[Record]
    rows: Sequence[Row]
    jmx: Sequence[dict[str, Any]]
    shift_ms: int
    forwarding: Forwarding
    records_done: int = 0
    rows_done: int = 0

    def forward_until(self, now_ms: int) -> None:
        """Let the forwarder's figures grow to this time."""
        forwarding = self.forwarding
        while self.records_done < len(self.records):
            record = self.records[self.records_done]
            if record.observed_ms + self.shift_ms > now_ms:
                break
            self.records_done += 1
            forwarding.records += 1
            if record.kind is RecordKind.HEARTBEAT:
                forwarding.heartbeat_ms = record.observed_ms + self.shift_ms

    def lose_session(self) -> None:
        """Count as a forwarder does after the loss of its session and a complete read."""
        self.forwarding.complete_reads[ReadReason.LOST] += 1
        self.forwarding.differences += 3
        self.forwarding.events_dropped += 40
        self.forwarding.forbidden_znodes = 2

    def rows_until(self, now_ms: int) -> Iterator[Row]:
        """Yield the rows since the last call."""
        while self.rows_done < len(self.rows) and self.rows[self.rows_done].time_ms <= now_ms:
            yield self.rows[self.rows_done]
            self.rows_done += 1


def cluster_of(name: str, directory: Path) -> _Cluster:
    """Return the recorded cluster at the incidents' time. Unpack its recording into `directory`."""
    shown = CLUSTERS[name]
    recording = unpack(shown.recording, directory)
    records = _heard_by_a_forwarder(recording.records())
    shift_ms = BEGIN * 1000 - records[0].observed_ms
    rows = [_moved(row, name, shift_ms) for row in replay(records, recording.profile()).rows]
    forwarding = Forwarding(name, leads=True, generation=1, is_connected=True, watch_mode="persistent")
    forwarding.complete_reads[ReadReason.START] = 1
    jmx = recording.jmx() if shown.jmx_is_scraped else []
    return _Cluster(name, records, rows, jmx, shift_ms, forwarding)


def _heard_by_a_forwarder(records: Iterable[Record]) -> list[Record]:
    """Drop the records of failed writes, which only the log shows."""
    heard = [record for record in records if not (record.kind is RecordKind.HEARTBEAT and record.author)]
    return [msgspec.structs.replace(record, seq=seq) for seq, record in enumerate(heard)]


def _moved(row: Row, cluster: str, shift_ms: int) -> Row:
    times = {"time_ms": row.time_ms + shift_ms}
    for name in ("since_ms", "problem_since_ms"):
        before = getattr(row, name, None)
        if before:  # 0 means that /controller never existed
            times[name] = before + shift_ms
    row = msgspec.structs.replace(row, cluster=cluster, **times)
    if not isinstance(row, GaugesRow):
        return row
    return msgspec.structs.replace(row, session="connected", watch_mode="persistent")


SERVE_PAGE = 'job="kontrast",instance="kontrast:9642"'
WATCH_PAGE = 'job="kontrast-watch",instance="kontrast:9643"'


class _Pipeline:
    """The exporter and the watcher at each moment."""

    def __init__(self, clusters: Sequence[_Cluster]) -> None:
        self._clusters = clusters
        self._memory, self._reading = Memory(), ReadingCounts()
        self._registry = AlertRegistry(AlertmanagerConfig())
        sources = (self._memory, self._reading, LIMITS, NEVER_STALE_MS, self._registry.active)
        self._serve = MemoryCollector(*sources, page_url=PAGE_URL)
        self._watch = ForwardingCollector([cluster.forwarding for cluster in clusters])

    def scrape(self, now: int) -> Iterator[str]:
        if now == MISHAP:
            self._reading.gap("metadata")  # a gap of compacted rows
            for cluster in self._clusters:
                self._reading.begins("metadata", cluster.name)
            self._reading.bad_row("alerts")
        for cluster in self._clusters:
            if now == MISHAP:
                cluster.lose_session()
            cluster.forward_until(now * 1000)
            for row in cluster.rows_until(now * 1000):
                self._take(cluster.name, row)
        self._memory.apply(self._job(now))
        self._reading.source_is(up=True)
        self._reading.caught_up()
        active = (of_outputs(snapshot, certain=snapshot.ready) for snapshot in self._memory.clusters())
        self._registry.update(active, now * 1000, now * 1000)
        for page, collector in {SERVE_PAGE: self._serve, WATCH_PAGE: self._watch}.items():
            yield from _lines(collector, page, now)

    def _take(self, cluster: str, row: Row) -> None:
        if row.output not in ("metadata", "alerts", "gauges"):
            return
        self._reading.row(cluster, row.output)
        if self._memory.apply(row):
            self._reading.lag(cluster, END_TO_END_LAG_SECONDS, zxid=UNKNOWN_ZXID, at_seconds=0.0)

    def _job(self, now: int) -> JobRow:
        batches = now - BEGIN + 1
        progress = ClusterProgress(records=1, observed_ms=now * 1000, lag_ms=JOB_LAG_MS)
        return JobRow(
            time_ms=int((now - LAST_BATCH_AGE_SECONDS) * 1000),
            began_ms=(BEGIN - 60) * 1000,
            batch=batches,
            batches=batches,
            records=0,
            refused=0,
            rows=0,
            phase_ms=PHASE_MS,
            total_phase_ms={phase: spent * batches for phase, spent in PHASE_MS.items()},
            state_bytes=0,
            state_values=0,
            state_commit_ms=0,
            clusters={cluster.name: progress for cluster in self._clusters},
            processes=PROCESSES,
        )


def _lines(collector: Collector, target: str, now: int) -> Iterator[str]:
    families: Iterable[Family] = collector.collect()
    for family in families:
        for sample in family.samples:
            labels = "".join(f',{name}="{value}"' for name, value in sample.labels.items())
            yield f"{sample.name}{{{target}{labels}}} {sample.value} {now}"


def _jmx_lines(cluster: _Cluster, now: int) -> Iterator[str]:
    """Yield the newest sample of each broker that answered since the last scrape."""
    latest = now - cluster.shift_ms / 1000
    newest = {sample["b"]: sample for sample in cluster.jmx if latest - SCRAPE_SECONDS < sample["t"] <= latest}
    for broker, sample in newest.items():
        target = f'{{job="kafka",instance="broker-{broker}:7071",kafka_cluster="{cluster.name}"}}'
        for gauge, value in sample.get("m", {}).items():
            bean = "kafka_server_replicamanager_" if gauge.startswith("rm_") else "kafka_controller_kafkacontroller_"
            yield f"{bean}{gauge.removeprefix('rm_')}{target} {value} {now}"


def incident_lines(directory: Path) -> Iterator[str]:
    """Yield the samples of all incidents as OpenMetrics lines. Unpack recordings into `directory`."""
    clusters = [cluster_of(name, directory) for name in CLUSTERS]
    pipeline = _Pipeline(clusters)
    for now in range(BEGIN, END + 1, SCRAPE_SECONDS):
        yield from pipeline.scrape(now)
        for cluster in clusters:
            yield from _jmx_lines(cluster, now)
