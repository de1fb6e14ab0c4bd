"""Print `reference/metrics.md` from `dashboards.catalogue`. `make docs` runs it."""

from __future__ import annotations

import sys
from collections.abc import Iterable
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

from dashboards.catalogue.metric import METRICS_PAGE, Metric  # noqa: E402 (needs the path above)
from dashboards.catalogue.table import CATALOGUE  # noqa: E402

_HEADING = (
    "| metric | type | labels | exported | meaning |",
    "| --- | --- | --- | --- | --- |",
)


def metrics_page() -> str:
    """Return the page."""
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
        *_table(CATALOGUE),
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
