"""Collector of the metrics of delivery to Alertmanagers."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from types import MappingProxyType

from prometheus_client.core import Metric as Family
from prometheus_client.registry import Collector

from dashboards.alerting.sender import Sender
from dashboards.catalogue import delivery_metrics
from dashboards.catalogue.families import Sample, family
from dashboards.catalogue.metric import Metric


def _deliveries(sender: Sender) -> Iterator[Sample]:
    for result, count in sender.results.items():
        yield (result.value,), count


def _up(sender: Sender) -> Iterator[Sample]:
    if sender.is_up is not None:
        yield (), sender.is_up


def _last_delivery(sender: Sender) -> Iterator[Sample]:
    if sender.delivered_ms:
        yield (), sender.delivered_ms / 1000


# The samples of each metric for one Alertmanager.
_SAMPLES: Mapping[Metric, Callable[[Sender], Iterator[Sample]]] = MappingProxyType(
    {
        delivery_metrics.ALERT_DELIVERIES: _deliveries,
        delivery_metrics.ALERTMANAGER_UP: _up,
        delivery_metrics.ALERTMANAGER_LAST_DELIVERY: _last_delivery,
    }
)


class DeliveryCollector(Collector):
    """Answers each scrape from the counts of these senders as they are at that moment."""

    def __init__(self, senders: Sequence[Sender]) -> None:
        self._senders = senders

    def collect(self) -> Iterator[Family]:
        """Yield every family of the delivery, in the catalogue's order."""
        for metric, samples in _SAMPLES.items():
            yield family(
                metric,
                [((sender.url, *labels), value) for sender in self._senders for labels, value in samples(sender)],
            )
