"""Collector of the metrics of delivery to Alertmanagers."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from types import MappingProxyType

from dashboards.alerting.sender import Sender
from dashboards.catalogue import delivery_metrics
from dashboards.catalogue.families import Sample, TableCollector, value_of
from dashboards.catalogue.metric import Metric

# The samples of each metric for one Alertmanager.
_SAMPLES: Mapping[Metric, Callable[[Sender], Iterable[Sample]]] = MappingProxyType(
    {
        delivery_metrics.ALERT_DELIVERIES: lambda sender: [
            ((result.value,), count) for result, count in sender.results.items()
        ],
        delivery_metrics.ALERTMANAGER_UP: value_of(lambda sender: sender.is_up),
        delivery_metrics.ALERTMANAGER_LAST_DELIVERY: value_of(lambda sender: sender.delivered_ms / 1000 or None),
    }
)


def delivery_collector(senders: Sequence[Sender]) -> TableCollector[Sender]:
    """Return a collector of the counts of these senders."""
    return TableCollector(_SAMPLES, lambda: [((sender.url,), sender) for sender in senders])
