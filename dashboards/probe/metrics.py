"""Collector of the metrics of the probes of brokers and of quorums."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from types import MappingProxyType

from prometheus_client.core import Metric as Family
from prometheus_client.registry import Collector

from dashboards.catalogue import broker_view_metrics, migration_quorum_metrics
from dashboards.catalogue.families import Sample, family
from dashboards.catalogue.metric import Metric
from dashboards.probe.prober import ProbedBroker, Prober
from dashboards.probe.quorum import QuorumSeen


def _differing(broker: ProbedBroker) -> Iterator[Sample]:
    findings = broker.findings
    if findings is not None:
        for difference, count in findings.counts().items():
            yield (difference.value,), count


def _seconds(broker: ProbedBroker) -> Iterator[Sample]:
    seconds = broker.seconds
    if seconds is not None:
        yield (), seconds


def _probes(broker: ProbedBroker) -> Iterator[Sample]:
    yield ("answered",), broker.answers
    yield ("failed",), broker.failures


# The samples of each metric for one broker.
_SAMPLES: Mapping[Metric, Callable[[ProbedBroker], Iterator[Sample]]] = MappingProxyType(
    {
        broker_view_metrics.BROKER_VIEW_DIFFERING: _differing,
        broker_view_metrics.BROKER_VIEW_SECONDS: _seconds,
        broker_view_metrics.BROKER_VIEW_PROBES: _probes,
    }
)


class BrokerViewCollector(Collector):
    """Answers each scrape with the results of the probes so far."""

    def __init__(self, prober: Prober) -> None:
        self._prober = prober

    def collect(self) -> Iterator[Family]:
        """Yield every family of the probe, in the catalogue's order."""
        for metric in _SAMPLES:
            yield family(metric, self._samples(metric))

    def _samples(self, metric: Metric) -> Iterator[Sample]:
        for probe in self._prober.probes():
            for broker in probe.brokers():
                for labels, value in _SAMPLES[metric](broker):
                    yield (probe.cluster, str(broker.broker), *labels), value


def _modes(seen: QuorumSeen) -> Iterator[Sample]:
    for mode, count in sorted(seen.modes.items()):
        yield (mode,), count


def _high_watermark(seen: QuorumSeen) -> Iterator[Sample]:
    if seen.quorum is not None:
        yield (), seen.quorum.high_watermark


def _offset_lag(seen: QuorumSeen) -> Iterator[Sample]:
    if seen.offset_lag is not None:
        yield (), seen.offset_lag


def _leader_epoch(seen: QuorumSeen) -> Iterator[Sample]:
    if seen.quorum is not None:
        yield (), seen.quorum.leader_epoch


def _differing_values(seen: QuorumSeen) -> Iterator[Sample]:
    for subject, count in (seen.differing or {}).items():
        yield (subject.value,), count


# The samples of each metric for one quorum.
_OF_QUORUMS: Mapping[Metric, Callable[[QuorumSeen], Iterator[Sample]]] = MappingProxyType(
    {
        migration_quorum_metrics.MIGRATION_NODES: _modes,
        migration_quorum_metrics.MIGRATION_HIGH_WATERMARK: _high_watermark,
        migration_quorum_metrics.MIGRATION_OFFSET_LAG: _offset_lag,
        migration_quorum_metrics.MIGRATION_LEADER_EPOCH: _leader_epoch,
        migration_quorum_metrics.MIGRATION_DIFFERING: _differing_values,
    }
)


class QuorumCollector(Collector):
    """Collector of the quorums' answers in the newest round."""

    def __init__(self, prober: Prober) -> None:
        self._prober = prober

    def collect(self) -> Iterator[Family]:
        """Yield every family of the quorums, in the catalogue's order."""
        for metric in _OF_QUORUMS:
            yield family(metric, self._samples(metric))

    def _samples(self, metric: Metric) -> Iterator[Sample]:
        for probe in self._prober.quorums():
            seen = probe.seen
            if seen is not None:
                for labels, value in _OF_QUORUMS[metric](seen):
                    yield (probe.cluster, *labels), value
