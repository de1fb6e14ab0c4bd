"""Collector of `/metrics`, with every family of the catalogue's page from one snapshot.

Metrics of reading, the job, alerts and lags have values whether clusters are ready or not.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from types import MappingProxyType

from prometheus_client.core import Metric as Family
from prometheus_client.registry import Collector

from controller.contract.gauges_row import REACTION_BUCKETS_MS, GaugesRow
from controller.contract.job_row import JobRow, ProcessUse
from dashboards.alerting.message import RANK, Message
from dashboards.catalogue import cluster_metrics, pipeline_metrics
from dashboards.catalogue.families import Sample, family, lag_family, value_of
from dashboards.catalogue.metric import Metric
from dashboards.catalogue.table import CATALOGUE
from dashboards.exporter.cluster_samples import CLUSTER_SAMPLES
from dashboards.exporter.scrape import DetailLimits, ReadyCluster, Scrape, ready_clusters
from outputs.reading import ReadingCounts
from questions.check.state import State, counts_of, state_by
from questions.cluster_rows import ClusterSnapshot
from questions.memory import Memory
from questions.picture import Present
from transport.forwarding import Lag


def _ready(scrape: Scrape) -> Iterator[Sample]:
    for cluster in scrape.clusters:
        yield (cluster.cluster,), scrape.is_ready(cluster)


def _state(scrape: Scrape) -> Iterator[Sample]:
    for cluster in scrape.clusters:
        now = _state_of(scrape, cluster)
        for state in State:
            yield (cluster.cluster, state.value), state is now


def _state_of(scrape: Scrape, cluster: ClusterSnapshot) -> State:
    """Return the state from alerts and counts, because a scrape has no partitions."""
    gauges = cluster.gauges
    if gauges is None or not scrape.is_ready(cluster):
        return State.UNKNOWN
    return state_by(cluster.open_alerts, counts_of(gauges, brokers_away=0))


def _with_gauges(read: Callable[[GaugesRow], Sample]) -> Callable[[Scrape], Iterator[Sample]]:
    def samples(scrape: Scrape) -> Iterator[Sample]:
        for cluster in scrape.clusters:
            if cluster.gauges is not None and not cluster.is_silent(scrape.present):
                labels, value = read(cluster.gauges)
                yield (cluster.cluster, *labels), value

    return samples


def _heartbeats(scrape: Scrape) -> Iterator[Sample]:
    for cluster in scrape.clusters:
        if cluster.heartbeat_ms is not None:
            yield (cluster.cluster,), cluster.heartbeat_ms / 1000


def _alert_since(scrape: Scrape) -> Iterator[Sample]:
    for cluster, alerts in sorted(scrape.alerts.items()):
        series: dict[tuple[str, ...], Message] = {}
        for message in alerts:  # the messages to several teams are one series, because the team is no label here
            labels = (message.label(name) for name in cluster_metrics.ALERT_SINCE.labels[3:-1])
            rank = dict(message.annotations).get(RANK, "")
            series.setdefault((cluster, message.label("alert"), message.severity.value, *labels, rank), message)
        for each, message in islice(series.items(), scrape.limits.alerts):
            yield each, message.since_ms / 1000


def _alerts_dropped(scrape: Scrape) -> Iterator[Sample]:
    for cluster in scrape.clusters:
        messages = scrape.alerts.get(cluster.cluster, ())  # additions belong to an alert that counts already
        alerts = len({message.alert_id for message in messages if not message.is_addition})
        yield (cluster.cluster,), max(0, alerts - scrape.limits.alerts)


def _of_job(read: Callable[[JobRow], Iterable[Sample]]) -> Callable[[Scrape], Iterable[Sample]]:
    return lambda scrape: [
        ((source, *labels), value) for source, job in scrape.jobs.items() for labels, value in read(job)
    ]


def _job_value(read: Callable[[JobRow], float]) -> Callable[[Scrape], Iterable[Sample]]:
    return _of_job(value_of(read))


def _by_role(read: Callable[[ProcessUse], int]) -> Callable[[Scrape], Iterable[Sample]]:
    return _of_job(lambda job: [((role,), read(use)) for role, use in sorted(job.processes.items())])


def _job_lags(scrape: Scrape) -> Iterator[Sample]:
    lags = {cluster: each.lag_ms / 1000 for job in scrape.jobs.values() for cluster, each in job.clusters.items()}
    for cluster, lag_seconds in sorted(lags.items()):
        yield (cluster,), lag_seconds


# Read as "KEY has these samples, whether clusters are ready or not".
SCRAPE_SAMPLES: Mapping[Metric, Callable[[Scrape], Iterable[Sample]]] = MappingProxyType(
    {
        pipeline_metrics.SOURCE_UP: lambda scrape: [
            ((source,), state.source_up) for source, state in scrape.reading.by_source().items()
        ],
        pipeline_metrics.READY: _ready,
        pipeline_metrics.PAGE_INFO: lambda scrape: [((scrape.page_url,), 1)] if scrape.page_url else [],
        pipeline_metrics.CLUSTER_STATE: _state,
        pipeline_metrics.HEARTBEAT: _heartbeats,
        cluster_metrics.ALERT_SINCE: _alert_since,
        cluster_metrics.ALERT_DETAIL_DROPPED: _alerts_dropped,
        pipeline_metrics.SESSION_CONNECTED: _with_gauges(lambda gauges: ((), gauges.session == "connected")),
        pipeline_metrics.WATCH_INFO: _with_gauges(lambda gauges: ((gauges.watch_mode,), 1)),
        pipeline_metrics.ROWS: lambda scrape: scrape.reading.rows.items(),
        pipeline_metrics.BAD_ROWS: lambda scrape: [
            ((output,), count) for output, count in scrape.reading.bad_rows.items()
        ],
        pipeline_metrics.GAPS: lambda scrape: [((output,), count) for output, count in scrape.reading.gaps.items()],
        pipeline_metrics.JOB_STARTED: _job_value(lambda job: job.began_ms / 1000),
        pipeline_metrics.JOB_LAST_BATCH: _job_value(lambda job: job.time_ms / 1000),
        pipeline_metrics.JOB_BATCHES: _job_value(lambda job: job.batches),
        pipeline_metrics.JOB_RECORDS: _job_value(lambda job: job.records),
        pipeline_metrics.JOB_REFUSED: _job_value(lambda job: job.refused),
        pipeline_metrics.JOB_ROWS: _job_value(lambda job: job.rows),
        pipeline_metrics.JOB_PHASES: _of_job(
            lambda job: [((phase,), spent_ms / 1000) for phase, spent_ms in sorted(job.total_phase_ms.items())]
        ),
        pipeline_metrics.JOB_STATE_BYTES: _job_value(lambda job: job.state_bytes),
        pipeline_metrics.JOB_STATE_VALUES: _job_value(lambda job: job.state_values),
        pipeline_metrics.JOB_STATE_COMMIT: _job_value(lambda job: job.state_commit_ms / 1000),
        pipeline_metrics.JOB_PROCESSES: _by_role(lambda use: use.processes),
        pipeline_metrics.JOB_OPEN_FDS: _by_role(lambda use: use.open_files),
        pipeline_metrics.JOB_MAX_FDS: _by_role(lambda use: use.open_files_limit),
        pipeline_metrics.JOB_THREADS: _by_role(lambda use: use.threads),
        pipeline_metrics.JOB_RESIDENT: _by_role(lambda use: use.resident_bytes),
        pipeline_metrics.JOB_LAG: _job_lags,
    }
)


def _reactions(_: Scrape, ready: Iterable[tuple[ReadyCluster, GaugesRow]]) -> dict[tuple[str, ...], Lag]:
    found: dict[tuple[str, ...], Lag] = {}
    for cluster, gauges in ready:
        for event, times in gauges.reactions.items():
            name = cluster.snapshot.cluster
            found[name, event, "first"] = _reaction(times.first, times.first_sum_ms)
            found[name, event, "last"] = _reaction(times.last, times.last_sum_ms)
    return found


def _reaction(counts: tuple[int, ...], sum_ms: int) -> Lag:
    none_yet = Lag.none_yet((*(bound / 1000 for bound in REACTION_BUCKETS_MS), math.inf))
    return replace(none_yet, counts=counts, sum_seconds=sum_ms / 1000)


# Read as "KEY has these histograms by their label values".
HISTOGRAMS: Mapping[
    Metric, Callable[[Scrape, Sequence[tuple[ReadyCluster, GaugesRow]]], dict[tuple[str, ...], Lag]]
] = MappingProxyType(
    {
        pipeline_metrics.END_TO_END_LAG: lambda scrape, _: {(name,): lag for name, lag in scrape.reading.lag.items()},
        cluster_metrics.CONTROLLER_REACTION: _reactions,
    }
)


@dataclass(frozen=True, slots=True, eq=False)  # a registry keeps collectors as keys
class MemoryCollector(Collector):
    """Collector that answers each scrape from the present memory, reading and active alerts."""

    _memory: Memory
    _reading: ReadingCounts
    _limits: DetailLimits
    _stale_after_ms: int
    _alerts: Callable[[], Mapping[str, Sequence[Message]]]
    page_url: str = ""

    def collect(self) -> Iterator[Family]:
        """Yield every family of the catalogue's page, in its order. A family without samples is empty."""
        scrape = Scrape(
            clusters=self._memory.clusters(),
            reading=self._reading.snapshot(),
            limits=self._limits,
            alerts=self._alerts(),
            present=Present(time.time_ns() // 1_000_000, self._stale_after_ms),
            jobs=self._memory.jobs(),
            page_url=self.page_url,
        )
        ready = tuple(ready_clusters(scrape))
        for metric in CATALOGUE:
            if metric.of_watch or metric.of_pages or metric.switched_on_by:
                continue
            if metric in HISTOGRAMS:
                yield lag_family(metric, HISTOGRAMS[metric](scrape, ready))
            elif metric in SCRAPE_SAMPLES:
                yield family(metric, SCRAPE_SAMPLES[metric](scrape))
            else:
                samples = (
                    ((cluster.snapshot.cluster, *labels), value)
                    for cluster, gauges in ready
                    for labels, value in CLUSTER_SAMPLES[metric](cluster, gauges)
                )
                yield family(metric, samples)
