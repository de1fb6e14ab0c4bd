"""Samples of recorded incidents, as a Prometheus would scrape them from Kontrast and the brokers.

Each cluster is one recording, and all are moved to the same time. ZooKeeper's log goes through the real core, its rows
through the exporter's real memory and collectors. A recording has no forwarder and no streaming job, so their own
figures are set here to round numbers.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple, cast

import msgspec
from prometheus_client.core import Metric as Family
from prometheus_client.registry import Collector

from controller.contract.forwarder_status import LargeZnode
from controller.contract.gauges_row import GaugesRow, Maintenance
from controller.contract.ids import UNKNOWN_ZXID, BrokerId
from controller.contract.job_row import ClusterProgress, JobRow, ProcessUse
from controller.contract.records import Record, RecordKind
from controller.contract.row import Row
from dashboards.alerting.active_alerts import of_outputs
from dashboards.alerting.config import AlertmanagerConfig
from dashboards.alerting.registry import AlertRegistry
from dashboards.exporter.collector import MemoryCollector
from dashboards.exporter.scrape import DetailLimits
from dashboards.exporter.watch_page import ForwardingCollector
from dashboards.probe.metrics import quorum_collector
from dashboards.probe.prober import Prober
from dashboards.probe.quorum import QuorumSeen
from dashboards.serving.live_memory import LiveMemory
from dashboards.serving.metrics import ProcessCollector
from migration.comparison.view import CopiedSubject
from migration.nodes.nodes import Quorum
from outputs.reading import ReadingCounts
from questions.memory import Memory
from tests.conformance.recording import replay, unpack
from tests.controller.ensembles import ensemble
from tests.rows import NEVER_STALE_MS
from transport.forwarding import Forwarding, ReadReason

SCRAPE_SECONDS = 2
RATE_INTERVAL = f"{4 * SCRAPE_SECONDS}s"  # Grafana's own value, four scrapes
BEGIN = 1795252145  # in seconds since 1970
END = BEGIN + 200


class Shown(NamedTuple):
    """A recording, whether its brokers' JMX gauges are scraped, and how much of its beginning is before BEGIN."""

    recording: str
    jmx_is_scraped: bool
    skipped_seconds: int = 0


CLUSTERS = {
    "east": Shown("dev39", jmx_is_scraped=True),  # the everyday scenario
    "south": Shown("fuzz39a", jmx_is_scraped=True),  # /controller names a broker that never took over, for 4 s
    "west": Shown("fuzz20a", jmx_is_scraped=False),  # a controller that writes on after its term
    # A migration from the dual write on. The second leader comes at 70 s, the dual write is broken from 85 to 152 s,
    # and brokers restart in KRaft mode from 178 s on.
    "north": Shown("migration39", jmx_is_scraped=False, skipped_seconds=230),
    # The way back, at 74 s. The controller elects no leaders until /controller_epoch is raised at 110 s.
    "back": Shown("migration39", jmx_is_scraped=False, skipped_seconds=500),
}

PAGE_URL = "https://kontrast:9642"
LIMITS = DetailLimits(partitions=10, brokers=100, alerts=100)

# Values without a recording. Maintenance is announced from MISHAP on.
END_TO_END_LAG_SECONDS = 0.2
WATCH_LAG_SECONDS = 0.02
BUDGET_WAIT_SHARE = 0.01
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
MISHAP = BEGIN + 100  # the watchers' sessions are lost, two lines of the stream are spoilt, rows are missed
RECORDS_OF_THE_QUORUM_A_SECOND = 2
DIFFERS_AFTER_RECORDS = 20
MAINTENANCE = {"east": (Maintenance((BrokerId(2),), (BEGIN + 3600) * 1000), Maintenance((), (BEGIN + 7200) * 1000))}
STATE_BYTES, STATE_VALUES, STATE_COMMIT_MS = 2_000_000, 130, 9
LIVE_MEMORY = LiveMemory(small_objects=500_000, heap_bytes=20_000_000)


@dataclass(slots=True)
class _Cluster:
    """One recording on its way into the exporter."""

    name: str
    records: Sequence[Record]
    rows: Sequence[Row]
    jmx: Sequence[dict[str, Any]]
    shift_ms: int
    forwarding: Forwarding
    paths: set[str] = field(default_factory=set)
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
            elif record.kind in (RecordKind.NODE, RecordKind.CREATED, RecordKind.DELETED):
                self._event(record)

    def _event(self, record: Record) -> None:
        forwarding = self.forwarding
        forwarding.events += 1
        forwarding.windows += 1
        forwarding.lag = forwarding.lag.observe(WATCH_LAG_SECONDS)
        if record.kind is RecordKind.DELETED:
            self.paths.discard(record.path)
        else:
            self.paths.add(record.path)
            forwarding.znodes_read += 1
            forwarding.bytes_read += len(record.data or "")
        forwarding.znodes = len(self.paths)

    def lose_session(self) -> None:
        """Count as a forwarder does after the loss of its session and a complete read."""
        self.forwarding.complete_reads[ReadReason.LOST] += 1
        self.forwarding.differences += 3
        self.forwarding.events_dropped += 40
        self.forwarding.jitter_wait_seconds += 0.4
        self.forwarding.forbidden_znodes = 2

    def rows_until(self, now_ms: int) -> Iterator[Row]:
        """Yield the rows since the last call."""
        while self.rows_done < len(self.rows) and self.rows[self.rows_done].time_ms <= now_ms:
            yield self.rows[self.rows_done]
            self.rows_done += 1


def _cluster(name: str, directory: Path) -> _Cluster:
    shown = CLUSTERS[name]
    recording = unpack(shown.recording, directory)
    records = _heard_by_a_forwarder(recording.records())
    shift_ms = (BEGIN - shown.skipped_seconds) * 1000 - records[0].observed_ms
    rows = [_moved(row, name, shift_ms) for row in replay(records, recording.profile()).rows]
    forwarding = Forwarding(
        name, leads=True, generation=1, is_connected=True, watch_mode="persistent", jitter_wait_seconds=0.5
    )
    forwarding.complete_reads[ReadReason.START] = 1
    jmx = recording.jmx() if shown.jmx_is_scraped else []
    return _Cluster(name, records, rows, jmx, shift_ms, forwarding)


def _heard_by_a_forwarder(records: Iterable[Record]) -> list[Record]:
    """Drop the records of failed writes, which only the log shows."""
    heard = [record for record in records if not (record.kind is RecordKind.HEARTBEAT and record.author)]
    return [msgspec.structs.replace(record, seq=seq) for seq, record in enumerate(heard)]


def _moved(row: Row, cluster: str, shift_ms: int) -> Row:
    times = {"time_ms": row.time_ms + shift_ms}
    for name in ("since_ms", "problem_since_ms", "pulse_ms"):
        before = getattr(row, name, None)
        if before:  # 0 means that /controller never existed
            times[name] = before + shift_ms
    row = msgspec.structs.replace(row, cluster=cluster, **times)
    if not isinstance(row, GaugesRow):
        return row
    windows = MAINTENANCE.get(cluster, ()) if row.time_ms >= MISHAP * 1000 else ()
    asked = ensemble(
        (1, {"outstanding": 3}),
        (2, {"refused": ("mntr",)}),
        asked_ms=row.time_ms,
        large_znodes=(LargeZnode("/brokers/topics", 70_000),),
    )
    return msgspec.structs.replace(
        row, session="connected", watch_mode="persistent", maintenance=windows, ensemble=asked
    )


SERVE_PAGE = 'job="kontrast",instance="kontrast:9642"'
WATCH_PAGE = 'job="kontrast-watch",instance="kontrast:9643"'


class _Quorum:
    """The migration's quorum as `kontrast serve` would see it, with a log that grows by two records a second."""

    def __init__(self, cluster: str, memory: Memory) -> None:
        self.cluster = cluster
        self.now_ms = 0
        self._memory = memory

    @property
    def seen(self) -> QuorumSeen | None:
        row = next((each.migration for each in self._memory.clusters() if each.cluster == self.cluster), None)
        if row is None or row.pulse_ms is None:
            return None
        behind = (self.now_ms - row.pulse_ms) * RECORDS_OF_THE_QUORUM_A_SECOND // 1000
        modes = {
            "zookeeper-migrating": len(row.zookeeper_brokers),
            "kraft": len(row.kraft_brokers),
            "controller-migrating": 3,
        }
        quorum = Quorum(
            row.leader, row.kraft_epoch, row.offset + 1 + behind, voters=tuple(map(BrokerId, (3001, 3002, 3003)))
        )
        differing = {CopiedSubject.REPLICAS: 0, CopiedSubject.PARTITIONS: 1 if behind > DIFFERS_AFTER_RECORDS else 0}
        return QuorumSeen(modes, quorum, differing, row.offset)


class _Quorums:
    """The quorums that are asked."""

    def __init__(self, *quorums: _Quorum) -> None:
        self._quorums = quorums

    def quorums(self) -> tuple[_Quorum, ...]:
        return self._quorums


class _Pipeline:
    """The exporter and the watcher at each moment."""

    def __init__(self, clusters: Sequence[_Cluster]) -> None:
        self._clusters = clusters
        self._memory, self._reading = Memory(), ReadingCounts()
        self._rows = 0
        self._registry = AlertRegistry(AlertmanagerConfig())
        sources = (self._memory, self._reading, LIMITS, NEVER_STALE_MS, self._registry.active)
        self._serve = MemoryCollector(*sources, page_url=PAGE_URL)
        self._quorum = _Quorum("north", self._memory)  # in `back` the controllers are being stopped
        self._asked = quorum_collector(cast(Prober, _Quorums(self._quorum)))
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
            cluster.forwarding.budget_wait_seconds += BUDGET_WAIT_SHARE * SCRAPE_SECONDS
            cluster.forward_until(now * 1000)
            for row in cluster.rows_until(now * 1000):
                self._take(cluster.name, row)
        self._memory.apply(self._job(now))
        self._reading.source_is(up=True)
        self._reading.caught_up()
        active = (of_outputs(snapshot, certain=snapshot.ready) for snapshot in self._memory.clusters())
        self._registry.update(active, now * 1000, now * 1000)
        self._quorum.now_ms = now * 1000
        pages = {SERVE_PAGE: (self._serve, self._asked), WATCH_PAGE: (self._watch,)}
        for page, collectors in pages.items():
            for collector in (ProcessCollector(lambda: LIVE_MEMORY), *collectors):
                yield from _lines(collector, page, now)

    def _take(self, cluster: str, row: Row) -> None:
        self._rows += 1
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
            records=sum(cluster.records_done for cluster in self._clusters),
            refused=2 if now >= MISHAP else 0,
            rows=self._rows,
            phase_ms=PHASE_MS,
            total_phase_ms={phase: spent * batches for phase, spent in PHASE_MS.items()},
            state_bytes=STATE_BYTES,
            state_values=STATE_VALUES,
            state_commit_ms=STATE_COMMIT_MS,
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
    clusters = [_cluster(name, directory) for name in CLUSTERS]
    pipeline = _Pipeline(clusters)
    for now in range(BEGIN, END + 1, SCRAPE_SECONDS):
        yield from pipeline.scrape(now)
        for cluster in clusters:
            yield from _jmx_lines(cluster, now)
