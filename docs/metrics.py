"""Print `reference/metrics.md` from `dashboards.catalogue`. `make docs` runs it."""

from __future__ import annotations

import sys
from collections.abc import Iterable
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

from dashboards.catalogue.jmx_metrics import JMX_METRICS  # noqa: E402 (needs the path above)
from dashboards.catalogue.metric import JMX_PAGE, METRICS_PAGE, PARTITIONS_PAGE, Metric  # noqa: E402
from dashboards.catalogue.table import CATALOGUE  # noqa: E402

_HEADING = (
    "| metric | type | labels | exported | meaning |",
    "| --- | --- | --- | --- | --- |",
)


def metrics_page() -> str:
    """Return the page."""
    everywhere = [metric for metric in CATALOGUE if metric.page == METRICS_PAGE]
    by_partition = [metric for metric in CATALOGUE if metric.page != METRICS_PAGE]
    lines = [
        "# Metrics",
        "",
        "Look up a metric of `kontrast serve` here.",
        "",
        "A metric marked *when ready* describes the watched cluster. It is absent, never zero, until the exporter",
        "has read a complete read of that cluster (`kontrast_ready` is 1).",
        "",
        f"## `{METRICS_PAGE}`",
        "",
        "Totals, and by name only brokers, alerts and unhealthy partitions. Each group has its own limit;",
        "`…_detail_dropped` counts the rest. `kontrast watch --metrics-listen` exports metrics marked *watch*. A",
        "table of the configuration enables metrics marked *with* that table. In OpenMetrics, lag histograms have",
        "exemplars with the zxid of a change.",
        "",
        "The boards and alerts link each series to its page at the same address. Percent-encode each value:",
        "",
        "| labels | page |",
        "| --- | --- |",
        "| `topic`, `partition` | `/clusters/{kafka_cluster}/topics/{topic}/{partition}` |",
        "| `broker` | `/clusters/{kafka_cluster}/brokers/{broker}` |",
        "| `subject` | `/clusters/{kafka_cluster}/explain?of={subject}` |",
        "| others | `/clusters/{kafka_cluster}` |",
        "",
        *_table(everywhere),
        "",
        f"## `{PARTITIONS_PAGE}`",
        "",
        "Every partition, with `partitions_page = true`. The exporter renders it after changes of metadata, at",
        "most once a second, and keeps it compressed. Scrape it with gzip. Each partition has five series, so",
        "200,000 partitions are a million series. Scrape it seldom, or drop series with `metric_relabel_configs`.",
        "",
        *_table(by_partition),
        "",
        f"## `{JMX_PAGE}`",
        "",
        "With `jmx_page = true`: the metadata part of Kafka's gauges, under the names of Prometheus' JMX exporter",
        "in its example for Kafka. Boards and rules for these names then work without JMX. **Leave it off if you",
        "scrape JMX.** With two sources `sum(...activecontrollercount) != 1` fires, and every sum doubles. Scrape",
        "it with `honor_labels: true` to keep each broker's `instance`.",
        "",
        "As in JMX, the controller's gauges are 0 on every other broker. While no broker is controller, JMX",
        "reports 0 everywhere. This page then reports the values on the first registered broker. Unclean elections",
        "are one series per cluster. Rates, request times, log directories and ISR shrinks are missing, because",
        "only brokers know them. If your boards use another label than `kafka_cluster`, copy it with",
        "`metric_relabel_configs`.",
        "",
        *_table(JMX_METRICS),
    ]
    return "\n".join([*lines, ""])


def _table(metrics: Iterable[Metric]) -> Iterable[str]:
    yield from _HEADING
    for metric in metrics:
        labels = ", ".join(f"`{label}`" for label in metric.labels)
        exported = "watch" if metric.of_watch else "always" if metric.before_ready else "when ready"
        if metric.of_pages:
            exported = "always, and watch"
        if metric.switched_on_by:
            exported = f"with `[{metric.switched_on_by}]`"
        yield f"| `{metric.name}` | {metric.type.value} | {labels} | {exported} | {metric.help} |"


if __name__ == "__main__":
    sys.stdout.write(metrics_page())
