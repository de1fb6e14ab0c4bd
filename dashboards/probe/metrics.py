"""Collects the metrics of the brokers' probe."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from types import MappingProxyType

from prometheus_client.core import Metric as Family
from prometheus_client.registry import Collector

from dashboards.catalogue import broker_view_metrics
from dashboards.catalogue.families import Sample, family
from dashboards.catalogue.metric import Metric
from dashboards.probe.prober import ProbedBroker, Prober


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


# Read as: KEY has these samples for one broker.
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
        """Every family of the probe, in the catalogue's order."""
        for metric in _SAMPLES:
            yield family(metric, self._samples(metric))

    def _samples(self, metric: Metric) -> Iterator[Sample]:
        for probe in self._prober.probes():
            for broker in probe.brokers():
                for labels, value in _SAMPLES[metric](broker):
                    yield (probe.cluster, str(broker.broker), *labels), value
