"""PromQL of the boards: selectors of the chosen clusters, and common expressions."""

from __future__ import annotations

from dashboards.catalogue.metric import CLUSTER_LABEL, Metric

CLUSTER_LEGEND = f"{{{{{CLUSTER_LABEL}}}}}"

_CHOSEN = f'{CLUSTER_LABEL}=~"$kafka_cluster"'


def legend(*labels: str, word: str = "") -> str:
    """Return the cluster's name, then these labels' values, then a word."""
    return " ".join([CLUSTER_LEGEND, *(f"{{{{{label}}}}}" for label in labels), *([word] if word else [])])


def of_clusters(metric: Metric, *matchers: str, suffix: str = "") -> str:
    """Return the metric's selector for the clusters that are chosen on the board."""
    chosen = (_CHOSEN,) if CLUSTER_LABEL in metric.labels else ()
    both = ", ".join((*chosen, *matchers))
    return f"{metric.name}{suffix}{{{both}}}" if both else f"{metric.name}{suffix}"


def of_every_cluster(expression: str) -> str:
    """Return the expression for a board where no cluster is chosen."""
    return expression.replace(f"{{{_CHOSEN}}}", "").replace(f"{_CHOSEN}, ", "")


def newest(metric: Metric, *labels: str, matchers: tuple[str, ...] = ()) -> str:
    """Return the metric's value by cluster and labels. Several exporters of a cluster count once."""
    return f"max{_by(metric, labels)} ({of_clusters(metric, *matchers)})"


def rate(metric: Metric, *labels: str) -> str:
    """Return the counter's rate per second by cluster and labels. Several exporters of a cluster count once."""
    return f"max{_by(metric, labels)} (rate({of_clusters(metric)}[$__rate_interval]))"


def increase(metric: Metric, *labels: str, matchers: tuple[str, ...] = ()) -> str:
    """Return the counter's increase by cluster and labels. Several exporters of a cluster count once."""
    return f"max{_by(metric, labels)} (increase({of_clusters(metric, *matchers)}[$__rate_interval]))"


def quantile(share: float, histogram: Metric, *labels: str, matchers: tuple[str, ...] = ()) -> str:
    """Return a quantile of a histogram by cluster and labels."""
    buckets = of_clusters(histogram, *matchers, suffix="_bucket")
    by = ", ".join((CLUSTER_LABEL, *labels, "le"))
    return f"histogram_quantile({share}, sum by ({by}) (rate({buckets}[$__rate_interval])))"


def age(metric: Metric, *labels: str) -> str:
    """Return seconds since the timestamp in the metric, by cluster and labels."""
    return f"time() - {newest(metric, *labels)}"


def _by(metric: Metric, labels: tuple[str, ...]) -> str:
    all_labels = (*((CLUSTER_LABEL,) if CLUSTER_LABEL in metric.labels else ()), *labels)
    return f" by ({', '.join(all_labels)})" if all_labels else ""
