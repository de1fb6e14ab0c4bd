"""Builds the metric families of one scrape of `/metrics` from a snapshot of the view.

Here belongs where each metric of the catalogue gets its values. Names and help texts are the catalogue's.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from types import MappingProxyType

from prometheus_client.core import Metric as Family
from prometheus_client.registry import Collector

from controller.contract.alert_row import Severity
from controller.contract.gauges_row import REACTION_BUCKETS_MS, GaugesRow
from controller.contract.job_row import JobRow
from controller.contract.records import RecordKind
from controller.rules.election import Strategy
from controller.rules.states import PartitionState, ReplicaState
from dashboards import catalogue
from dashboards.alerting.message import NAME_PREFIX, Message
from dashboards.brokers import brokers_in_order
from dashboards.catalogue import CATALOGUE, METRICS_PAGE, Metric
from dashboards.families import Sample, family, lag_family
from dashboards.partitions_page import PageFigures
from dashboards.reading import Reading, ReadingSnapshot
from dashboards.view import ClusterSnapshot, View, problem_since_ms
from transport.lag import Lag

# Kafka's name of a state in the rows, and the label value that stands for it.
_STATE_LABELS: Mapping[str, str] = MappingProxyType(
    {
        state.word: state.name.lower().replace("non_existent", "nonexistent")
        for states in (PartitionState, ReplicaState)
        for state in states
    }
)

_ELECTIONS = (*(strategy.value for strategy in Strategy), f"Unclean{Strategy.OFFLINE.value}")


@dataclass(frozen=True, slots=True, kw_only=True)
class DetailLimits:
    """How many of each cluster are named at most."""

    partitions: int
    brokers: int
    alerts: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Scrape:
    """All that one scrape is answered from."""

    clusters: tuple[ClusterSnapshot, ...]
    reading: ReadingSnapshot
    limits: DetailLimits
    alerts: Mapping[str, Sequence[Message]]  # those that stand by cluster, whoever says so; to page first
    job: JobRow | None = None
    page: PageFigures | None = None

    def is_ready(self, cluster: ClusterSnapshot) -> bool:
        """Whether something may be said about the cluster: what is still being read of it is the past."""
        return self.reading.vouches_for(cluster.cluster) and cluster.ready


@dataclass(frozen=True, slots=True)
class _Ready:
    """A cluster of which something may be said, and its brokers that are named."""

    snapshot: ClusterSnapshot
    brokers: tuple[int, ...]
    brokers_dropped: int
    limits: DetailLimits


def _gauge(read: Callable[[GaugesRow], float]) -> Callable[[_Ready, GaugesRow], Iterator[Sample]]:
    def samples(_: _Ready, gauges: GaugesRow) -> Iterator[Sample]:
        yield (), read(gauges)

    return samples


def _counts(
    read: Callable[[GaugesRow], Mapping[str, int]], *known: str
) -> Callable[[_Ready, GaugesRow], Iterator[Sample]]:
    """A sample a key; the known ones are there from the start, for `rate()` does not see a counter's first value."""

    def samples(_: _Ready, gauges: GaugesRow) -> Iterator[Sample]:
        for key, count in sorted({**dict.fromkeys(known, 0), **read(gauges)}.items()):
            yield (key,), count

    return samples


def _by_broker(read: Callable[[GaugesRow], Mapping[int, int]]) -> Callable[[_Ready, GaugesRow], Iterator[Sample]]:
    def samples(ready: _Ready, gauges: GaugesRow) -> Iterator[Sample]:
        counts = read(gauges)
        for broker in ready.brokers:
            yield (str(broker),), counts.get(broker, 0)

    return samples


def _by_state(counts: Mapping[str, int], states: type[PartitionState] | type[ReplicaState]) -> dict[str, int]:
    """Every state has a count; a state that has no name here is shown as the row has it, never dropped."""
    complete = {**dict.fromkeys((state.word for state in states), 0), **counts}
    return {_STATE_LABELS.get(word, word): count for word, count in complete.items()}


def _controller_info(_: _Ready, gauges: GaugesRow) -> Iterator[Sample]:
    if gauges.controller >= 0:
        yield (str(gauges.controller),), 1


def _controller_since(ready: _Ready, _: GaugesRow) -> Iterator[Sample]:
    if ready.snapshot.controller is not None:
        yield (), ready.snapshot.controller.since_ms / 1000


def _broker_registered(ready: _Ready, _: GaugesRow) -> Iterator[Sample]:
    registered = {row.broker for row in ready.snapshot.brokers if row.registered}
    for broker in ready.brokers:
        yield (str(broker),), broker in registered


def _brokers_dropped(ready: _Ready, _: GaugesRow) -> Iterator[Sample]:
    yield (), ready.brokers_dropped


def _open_alerts(ready: _Ready, _: GaugesRow) -> Iterator[Sample]:
    counts = {severity.value: 0 for severity in Severity}
    for (_alert, severity, _state), count in ready.snapshot.alert_counts.items():
        counts[severity] += count
    for severity in counts:
        yield (severity,), counts[severity]


def _alerts_open(ready: _Ready, _: GaugesRow) -> Iterator[Sample]:
    yield from sorted(ready.snapshot.alert_counts.items())


def _maintenance_until(_: _Ready, gauges: GaugesRow) -> Iterator[Sample]:
    ends_ms: dict[str, int] = {}
    for window in gauges.maintenance:
        for broker in map(str, window.brokers) if window.brokers else ("all",):
            ends_ms[broker] = max(window.until_ms, ends_ms.get(broker, 0))
    for broker, until_ms in sorted(ends_ms.items()):
        yield (broker,), until_ms / 1000


def _offline_since(ready: _Ready, _: GaugesRow) -> Iterator[Sample]:
    for row in ready.snapshot.unusable[: ready.limits.partitions]:
        yield (row.topic, str(row.partition), str(row.problem)), problem_since_ms(row) / 1000


def _brought_back_by(ready: _Ready, _: GaugesRow) -> Iterator[Sample]:
    for row in ready.snapshot.unusable[: ready.limits.partitions]:
        brokers = row.isr or row.replicas  # one that was never created needs any of its replicas
        yield (row.topic, str(row.partition), _listed(brokers)), 1


def _partitions_dropped(ready: _Ready, _: GaugesRow) -> Iterator[Sample]:
    yield (), max(0, len(ready.snapshot.unusable) - ready.limits.partitions)


def _under_min_isr_since(ready: _Ready, _: GaugesRow) -> Iterator[Sample]:
    for row in ready.snapshot.under_min_isr[: ready.limits.partitions]:
        yield (row.topic, str(row.partition)), problem_since_ms(row) / 1000


def _in_sync_lacking(ready: _Ready, _: GaugesRow) -> Iterator[Sample]:
    for row in ready.snapshot.under_min_isr[: ready.limits.partitions]:
        yield (row.topic, str(row.partition), _listed(row.in_sync_candidates)), row.in_sync_lacking


def _under_min_isr_dropped(ready: _Ready, _: GaugesRow) -> Iterator[Sample]:
    yield (), max(0, len(ready.snapshot.under_min_isr) - ready.limits.partitions)


def _listed(brokers: Iterable[int]) -> str:
    return ",".join(map(str, sorted(brokers)))


def _zxid_part(part: Callable[[int], int]) -> Callable[[_Ready, GaugesRow], Iterator[Sample]]:
    def samples(_: _Ready, gauges: GaugesRow) -> Iterator[Sample]:
        if gauges.zxid >= 0:
            yield (), part(gauges.zxid)

    return samples


# Read as: KEY has these samples for a cluster that is ready.
_OF_READY_CLUSTER: Mapping[Metric, Callable[[_Ready, GaugesRow], Iterator[Sample]]] = MappingProxyType(
    {
        catalogue.CONTROLLER_INFO: _controller_info,
        catalogue.CONTROLLER_ACTIVE: _gauge(lambda gauges: gauges.controller >= 0),
        catalogue.CONTROLLER_EPOCH: _gauge(lambda gauges: gauges.controller_epoch),
        catalogue.CONTROLLER_SINCE: _controller_since,
        catalogue.CONTROLLER_CHANGES: _gauge(lambda gauges: gauges.controller_changes),
        catalogue.PENDING_WRITES: _gauge(lambda gauges: gauges.pending_writes),
        catalogue.BROKERS: _gauge(lambda gauges: gauges.active_brokers),
        catalogue.BROKER_REGISTERED: _broker_registered,
        catalogue.BROKER_LEADERS: _by_broker(lambda gauges: gauges.leaders_by_broker),
        catalogue.BROKER_REPLICAS: _by_broker(lambda gauges: gauges.replicas_by_broker),
        catalogue.BROKER_UNDER_REPLICATED: _by_broker(lambda gauges: gauges.under_replicated_by_broker),
        catalogue.BROKER_UNDER_MIN_ISR: _by_broker(lambda gauges: gauges.under_min_isr_by_broker),
        catalogue.BROKER_AT_MIN_ISR: _by_broker(lambda gauges: gauges.at_min_isr_by_broker),
        catalogue.BROKER_SOLE_IN_SYNC: _by_broker(lambda gauges: gauges.sole_in_sync_by_broker),
        catalogue.REASSIGNING: _gauge(lambda gauges: gauges.reassigning_partitions),
        catalogue.BROKER_DETAIL_DROPPED: _brokers_dropped,
        catalogue.TOPICS: _gauge(lambda gauges: gauges.topics),
        catalogue.PARTITIONS: _counts(lambda gauges: _by_state(gauges.partitions_by_state, PartitionState)),
        catalogue.REPLICAS: _counts(lambda gauges: _by_state(gauges.replicas_by_state, ReplicaState)),
        catalogue.OFFLINE: _gauge(lambda gauges: gauges.offline_partitions),
        catalogue.LEADERLESS: _gauge(lambda gauges: gauges.leaderless_partitions),
        catalogue.UNDER_REPLICATED: _gauge(lambda gauges: gauges.under_replicated_partitions),
        catalogue.UNDER_MIN_ISR: _gauge(lambda gauges: gauges.under_min_isr_partitions),
        catalogue.AT_MIN_ISR: _gauge(lambda gauges: gauges.at_min_isr_partitions),
        catalogue.PREFERRED_IMBALANCE: _gauge(lambda gauges: gauges.preferred_replica_imbalance),
        catalogue.TOPICS_TO_DELETE: _gauge(lambda gauges: gauges.topics_to_delete),
        catalogue.REPLICAS_TO_DELETE: _gauge(lambda gauges: gauges.replicas_to_delete),
        catalogue.TOPICS_INELIGIBLE: _gauge(lambda gauges: gauges.topics_ineligible_to_delete),
        catalogue.REPLICAS_INELIGIBLE: _gauge(lambda gauges: gauges.replicas_ineligible_to_delete),
        catalogue.RECORDS: _counts(lambda gauges: gauges.records, *(kind.value for kind in RecordKind)),
        catalogue.ELECTIONS: _counts(lambda gauges: gauges.elections, *_ELECTIONS),
        catalogue.ISR_CHANGES: _counts(lambda gauges: gauges.isr_changes, "shrink", "expand"),
        catalogue.REFUSED: _gauge(lambda gauges: gauges.refused),
        catalogue.DIVERGENCES: _counts(lambda gauges: gauges.divergences),
        catalogue.OPEN_ALERTS: _open_alerts,
        catalogue.ALERTS_OPEN: _alerts_open,
        catalogue.MAINTENANCE_UNTIL: _maintenance_until,
        catalogue.OFFLINE_SINCE: _offline_since,
        catalogue.BROUGHT_BACK_BY: _brought_back_by,
        catalogue.DETAIL_DROPPED: _partitions_dropped,
        catalogue.UNDER_MIN_ISR_SINCE: _under_min_isr_since,
        catalogue.IN_SYNC_LACKING: _in_sync_lacking,
        catalogue.UNDER_MIN_ISR_DROPPED: _under_min_isr_dropped,
        catalogue.ZXID_EPOCH: _zxid_part(lambda zxid: zxid >> 32),
        catalogue.ZXID_SEQUENCE: _zxid_part(lambda zxid: zxid & 0xFFFFFFFF),
    }
)


def _ready(scrape: Scrape) -> Iterator[Sample]:
    for cluster in scrape.clusters:
        yield (cluster.cluster,), scrape.is_ready(cluster)


def _with_gauges(
    read: Callable[[GaugesRow], Sample],
) -> Callable[[Scrape], Iterator[Sample]]:
    def samples(scrape: Scrape) -> Iterator[Sample]:
        for cluster in scrape.clusters:
            if cluster.gauges is not None:
                labels, value = read(cluster.gauges)
                yield (cluster.cluster, *labels), value

    return samples


def _heartbeats(scrape: Scrape) -> Iterator[Sample]:
    for cluster in scrape.clusters:
        if cluster.heartbeat_ms is not None:
            yield (cluster.cluster,), cluster.heartbeat_ms / 1000


def _alert_since(scrape: Scrape) -> Iterator[Sample]:
    for cluster, alerts in sorted(scrape.alerts.items()):
        for message in alerts[: scrape.limits.alerts]:
            alert = message.label("alertname").removeprefix(NAME_PREFIX)
            labels = (message.label(name) for name in catalogue.ALERT_SINCE.labels[3:])
            yield (cluster, alert, message.severity.value, *labels), message.since_ms / 1000


def _alerts_dropped(scrape: Scrape) -> Iterator[Sample]:
    for cluster in scrape.clusters:
        yield (cluster.cluster,), max(0, len(scrape.alerts.get(cluster.cluster, ())) - scrape.limits.alerts)


def _of_job(read: Callable[[JobRow], Iterable[Sample]]) -> Callable[[Scrape], Iterable[Sample]]:
    return lambda scrape: () if scrape.job is None else read(scrape.job)


def _job_value(read: Callable[[JobRow], float]) -> Callable[[Scrape], Iterable[Sample]]:
    return _of_job(lambda job: [((), read(job))])


def _of_page(read: Callable[[PageFigures], Iterable[Sample]]) -> Callable[[Scrape], Iterable[Sample]]:
    return lambda scrape: () if scrape.page is None else read(scrape.page)


# Read as: KEY has these samples, whether clusters are ready or not.
_OF_SCRAPE: Mapping[Metric, Callable[[Scrape], Iterable[Sample]]] = MappingProxyType(
    {
        catalogue.SOURCE_UP: lambda scrape: [((), scrape.reading.source_up)],
        catalogue.READY: _ready,
        catalogue.HEARTBEAT: _heartbeats,
        catalogue.ALERT_SINCE: _alert_since,
        catalogue.ALERT_DETAIL_DROPPED: _alerts_dropped,
        catalogue.SESSION_CONNECTED: _with_gauges(lambda gauges: ((), gauges.session == "connected")),
        catalogue.WATCH_INFO: _with_gauges(lambda gauges: ((gauges.watch_mode,), 1)),
        catalogue.ROWS: lambda scrape: scrape.reading.rows.items(),
        catalogue.BAD_ROWS: lambda scrape: [((output,), count) for output, count in scrape.reading.bad_rows.items()],
        catalogue.GAPS: lambda scrape: [((output,), count) for output, count in scrape.reading.gaps.items()],
        catalogue.JOB_STARTED: _job_value(lambda job: job.began_ms / 1000),
        catalogue.JOB_LAST_BATCH: _job_value(lambda job: job.time_ms / 1000),
        catalogue.JOB_BATCHES: _job_value(lambda job: job.batches),
        catalogue.JOB_RECORDS: _job_value(lambda job: job.records),
        catalogue.JOB_REFUSED: _job_value(lambda job: job.refused),
        catalogue.JOB_ROWS: _job_value(lambda job: job.rows),
        catalogue.JOB_PHASES: _of_job(
            lambda job: [((phase,), spent_ms / 1000) for phase, spent_ms in sorted(job.total_phase_ms.items())]
        ),
        catalogue.JOB_STATE_BYTES: _job_value(lambda job: job.state_bytes),
        catalogue.JOB_STATE_VALUES: _job_value(lambda job: job.state_values),
        catalogue.JOB_STATE_COMMIT: _job_value(lambda job: job.state_commit_ms / 1000),
        catalogue.JOB_LAG: _of_job(
            lambda job: [((cluster,), progress.lag_ms / 1000) for cluster, progress in sorted(job.clusters.items())]
        ),
        catalogue.PAGE_RENDER: _of_page(lambda page: [((), page.render_seconds)]),
        catalogue.PAGE_BYTES: _of_page(
            lambda page: [(("gzip",), page.compressed_bytes), (("identity",), page.plain_bytes)]
        ),
    }
)


def _lags(scrape: Scrape, _: Iterable[tuple[_Ready, GaugesRow]]) -> dict[tuple[str, ...], Lag]:
    return {(cluster,): lag for cluster, lag in scrape.reading.lag.items()}


def _reactions(_: Scrape, ready: Iterable[tuple[_Ready, GaugesRow]]) -> dict[tuple[str, ...], Lag]:
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


# Read as: KEY has these histograms by their label values.
_HISTOGRAMS: Mapping[Metric, Callable[[Scrape, Sequence[tuple[_Ready, GaugesRow]]], dict[tuple[str, ...], Lag]]] = (
    MappingProxyType({catalogue.END_TO_END_LAG: _lags, catalogue.CONTROLLER_REACTION: _reactions})
)


class ViewCollector(Collector):
    """Answers each scrape from the view, the reading and the alerts that stand as they are at that moment."""

    def __init__(
        self,
        view: View,
        reading: Reading,
        limits: DetailLimits,
        alerts: Callable[[], Mapping[str, Sequence[Message]]],
        page: Callable[[], PageFigures] | None = None,
    ) -> None:
        self._view = view
        self._reading = reading
        self._limits = limits
        self._alerts = alerts
        self._page = page

    def collect(self) -> Iterator[Family]:
        """Every family of the catalogue's page, in its order; one without samples has nothing to say for now."""
        scrape = Scrape(
            clusters=self._view.snapshot(),
            reading=self._reading.snapshot(),
            limits=self._limits,
            alerts=self._alerts(),
            job=self._view.job(),
            page=None if self._page is None else self._page(),
        )
        ready = tuple(_ready_clusters(scrape))
        for metric in CATALOGUE:
            if metric.of_watch or metric.of_pages or metric.switched_on_by or metric.page != METRICS_PAGE:
                continue
            if metric in _HISTOGRAMS:
                yield lag_family(metric, _HISTOGRAMS[metric](scrape, ready))
            elif metric in _OF_SCRAPE:
                yield family(metric, _OF_SCRAPE[metric](scrape))
            else:
                yield family(metric, _of_clusters(_OF_READY_CLUSTER[metric], ready))


def _ready_clusters(scrape: Scrape) -> Iterator[tuple[_Ready, GaugesRow]]:
    for cluster in scrape.clusters:
        if cluster.gauges is not None and scrape.is_ready(cluster):
            brokers = brokers_in_order(cluster, cluster.gauges)
            named = brokers[: scrape.limits.brokers]
            yield _Ready(cluster, named, len(brokers) - len(named), scrape.limits), cluster.gauges


def _of_clusters(
    read: Callable[[_Ready, GaugesRow], Iterator[Sample]], clusters: Iterable[tuple[_Ready, GaugesRow]]
) -> Iterator[Sample]:
    for ready, gauges in clusters:
        for labels, value in read(ready, gauges):
            yield (ready.snapshot.cluster, *labels), value
