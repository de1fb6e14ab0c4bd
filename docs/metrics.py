"""Prints `metrics.md`: what Kontrast exports, from `dashboards.catalogue`. Run it by `make docs`."""

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
    """The text of `docs/metrics.md`."""
    everywhere = [metric for metric in CATALOGUE if metric.page == METRICS_PAGE]
    by_partition = [metric for metric in CATALOGUE if metric.page != METRICS_PAGE]
    lines = [
        "# Metrics",
        "",
        "What `kontrast serve` exports. This page is made from `dashboards/catalogue/` by `make docs`.",
        "",
        "A metric marked *when ready* is a statement about the watched cluster. It is absent, never zero, until a",
        "complete read of that cluster has come through the pipeline and been read (`kontrast_ready` is 1).",
        "",
        f"## `{METRICS_PAGE}`",
        "",
        "Aggregates, and by name only brokers, alerts and what is not healthy, each up to a limit of its own;",
        "what is beyond it is counted in `…_detail_dropped`. What is marked *watch*, `kontrast watch` exports on",
        "`--metrics-listen`; what is marked *with* a table, that table of the configuration switches on. Who asks for",
        "OpenMetrics gets the lag histograms with exemplars: the zxid of a change that fell into the bucket.",
        "",
        "A sample cannot have a link: of a series with the labels `topic` and `partition` the page that explains it is",
        "`/clusters/{kafka_cluster}/topics/{topic}/{partition}` at the same address, of one with `broker`",
        "`/clusters/{kafka_cluster}/brokers/{broker}`, of one with `subject`",
        "`/clusters/{kafka_cluster}/explain?of={subject}`, of any other `/clusters/{kafka_cluster}`, each value",
        "percent-encoded. The boards and the alerts link there.",
        "",
        *_table(everywhere),
        "",
        f"## `{PARTITIONS_PAGE}`",
        "",
        "Every partition, with `partitions_page = true`. It is rendered when metadata changes, at most once a second,",
        "and kept compressed; ask for it with gzip. Five series a partition: 200,000 partitions are a million series,",
        "so scrape it seldom, or keep of it what you need by `metric_relabel_configs`.",
        "",
        *_table(by_partition),
        "",
        f"## `{JMX_PAGE}`",
        "",
        "With `jmx_page = true`: what follows from metadata, by the names that Prometheus' JMX exporter gives Kafka's",
        "gauges in its example for Kafka, so that boards and rules made for them work on a cluster whose JMX nobody",
        "scrapes. **Leave it off where JMX is scraped**: with a second source `sum(...activecontrollercount) != 1`",
        "fires, and every sum is double. Scrape it with `honor_labels: true`, so that a broker's `instance` is kept.",
        "",
        "As in JMX, what the controller says has its value on the controller and 0 on every other broker. While no",
        "broker is controller, JMX says 0 everywhere; here the first registered broker then has the values. Unclean",
        "elections are one series a cluster. What only a broker knows (rates, request times, log directories, ISR",
        "shrinks) is not there. Boards that find clusters by another label than `kafka_cluster` need a rule of",
        "`metric_relabel_configs` that copies it.",
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
