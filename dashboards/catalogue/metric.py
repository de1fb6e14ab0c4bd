"""An exported metric with its name, type, unit, labels and help text."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

CLUSTER_LABEL = "kafka_cluster"
SOURCE_LABEL = "source"  # the address of a job's outputs

METRICS_PAGE = "/metrics"


class MetricType(Enum):
    """A Prometheus metric type."""

    GAUGE = "gauge"
    COUNTER = "counter"
    INFO = "info"
    HISTOGRAM = "histogram"


@dataclass(frozen=True, slots=True, kw_only=True)
class Metric:
    """A metric on `/metrics`. `labels` follow the cluster label if there is one.

    A metric that is not `before_ready` describes the watched cluster. It is absent, never zero, until a complete read
    of that cluster has arrived.
    """

    name: str
    help: str
    type: MetricType = MetricType.GAUGE
    unit: str = ""
    labels: tuple[str, ...] = (CLUSTER_LABEL,)
    before_ready: bool = False
    of_watch: bool = False  # exported by `kontrast watch` about itself, otherwise by `kontrast serve`
    of_pages: bool = False  # exported by both, about the process and its pages
    switched_on_by: str = ""  # table of the configuration that switches the metric on


def of_cluster(name: str, text: str, *labels: str, unit: str = "") -> Metric:
    """Return a gauge of a watched cluster."""
    return Metric(name=f"kontrast_{name}", help=text, labels=(CLUSTER_LABEL, *labels), unit=unit)


def cluster_counter(name: str, text: str, *labels: str) -> Metric:
    """Return a counter of a watched cluster."""
    full_name = f"kontrast_{name}_total"
    return Metric(name=full_name, help=text, labels=(CLUSTER_LABEL, *labels), type=MetricType.COUNTER)
