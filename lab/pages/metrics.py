"""Print `reference/metrics.md` from `dashboards.catalogue`. `make docs` runs it."""

from __future__ import annotations

import sys
from collections.abc import Iterator

from dashboards.catalogue.metric import CLUSTER_LABEL, Metric, MetricType
from dashboards.catalogue.table import CATALOGUE

_HEAD = """# Metrics

Look up a metric of `/metrics` here. Names in `_total` are counters, histograms are marked, and all others are gauges.
Where every metric of a table has the label `kafka_cluster`, the table leaves it out. By name there are only brokers,
alerts and unhealthy partitions, each group up to a limit of its own, and `…_detail_dropped` counts the rest. In
OpenMetrics, lag histograms have exemplars with the zxid of a change. Counters of a cluster begin with the job's state.
Metrics of a migration are absent where no migration was ever seen.

The boards and alerts link each series to its page at the same address, with percent-encoded values: `topic` and
`partition` to `/clusters/{kafka_cluster}/topics/{topic}/{partition}`, `broker` to
`/clusters/{kafka_cluster}/brokers/{broker}`, `subject` to `/clusters/{kafka_cluster}/explain?of={subject}`, and others
to `/clusters/{kafka_cluster}`.
"""


def metrics_page() -> str:
    """Return the page, with a section for each condition under which metrics are exported."""
    sections: dict[str, list[Metric]] = {}
    for metric in CATALOGUE:
        sections.setdefault(_condition(metric), []).append(metric)
    return "\n".join([_HEAD, *("\n".join(_section(title, metrics)) for title, metrics in sections.items())])


def _condition(metric: Metric) -> str:
    if metric.switched_on_by:
        return f"With `[{metric.switched_on_by}]`"
    if metric.of_pages:
        return "Always, and by `kontrast watch`"
    if metric.of_watch:
        return "By `kontrast watch --metrics-listen`"
    return "Always" if metric.before_ready else "While `kontrast_ready` is 1, and absent before"


def _section(title: str, metrics: list[Metric]) -> Iterator[str]:
    common = {CLUSTER_LABEL} if all(CLUSTER_LABEL in metric.labels for metric in metrics) else set()
    yield f"## {title}\n\n| metric | labels | meaning |\n| --- | --- | --- |"
    for metric in metrics:
        labels = ", ".join(f"`{label}`" for label in metric.labels if label not in common)
        kind = "Histogram. " if metric.type is MetricType.HISTOGRAM else ""
        yield f"| `{metric.name}` | {labels} | {kind}{metric.help} |"
    yield ""


if __name__ == "__main__":
    sys.stdout.write(metrics_page())
