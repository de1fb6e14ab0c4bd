"""An exported metric with its name, type, unit, labels and help text."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum
from typing import Any

CLUSTER_LABEL = "kafka_cluster"
SOURCE_LABEL = "source"  # the address of a job's outputs

METRICS_PAGE = "/metrics"
_UNITS = ("seconds", "bytes", "ratio")


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
    labels: tuple[str, ...]
    is_histogram: bool = False
    before_ready: bool = False
    of_watch: bool = False  # exported by `kontrast watch` about itself, otherwise by `kontrast serve`
    of_pages: bool = False  # exported by both, about the process and its pages
    switched_on_by: str = ""  # table of the configuration that switches the metric on

    @property
    def type(self) -> MetricType:
        """Return the type, which names show by Prometheus's conventions except for histograms."""
        if self.is_histogram:
            return MetricType.HISTOGRAM
        ends = {"info": MetricType.INFO, "total": MetricType.COUNTER}
        return ends.get(self.name.rpartition("_")[2], MetricType.GAUGE)

    @property
    def unit(self) -> str:
        """Return the unit, which ends the name of a metric that has one."""
        last = self.name.removesuffix("_total").rpartition("_")[2]
        return last if last in _UNITS else ""


def family_of(prefix: str, *first: str, **where: Any) -> Callable[..., Metric]:  # noqa: ANN401 (fields of a metric)
    """Return a maker of metrics that share the begin of their names, their first labels, and where they are exported.

    It takes the rest of the name, the help text, and the further labels in one text.
    """

    def make(name: str, text: str, labels: str = "", *, is_histogram: bool = False) -> Metric:
        every = (*first, *labels.split())
        return Metric(name=f"kontrast_{prefix}{name}", help=text, labels=every, is_histogram=is_histogram, **where)

    return make


of_cluster = family_of("", CLUSTER_LABEL)
of_known_cluster = family_of("", CLUSTER_LABEL, before_ready=True)
