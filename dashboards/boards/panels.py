"""What all panels of all boards have in common: data source, cluster filter, descriptions, thresholds.

Here belong conventions. Which panels a board has is the board's business.
"""

from __future__ import annotations

from dataclasses import dataclass

from grafana_foundation_sdk.builders import common as common_builders
from grafana_foundation_sdk.builders import dashboard, prometheus, stat, timeseries
from grafana_foundation_sdk.models import common
from grafana_foundation_sdk.models import dashboard as models
from grafana_foundation_sdk.models.prometheus import PromQueryFormat

from dashboards.catalogue import CLUSTER_LABEL, Metric

CLUSTER_LEGEND = f"{{{{{CLUSTER_LABEL}}}}}"
DATASOURCE = common.DataSourceRef(type_val="prometheus", uid="${datasource}")


def of_clusters(metric: Metric, suffix: str = "") -> str:
    """The metric's selector for the clusters that are chosen on the board."""
    return f'{metric.name}{suffix}{{{CLUSTER_LABEL}=~"$kafka_cluster"}}'


def newest(metric: Metric, *labels: str) -> str:
    """The metric's value by cluster and labels; several exporters of one cluster count once."""
    return f"max by ({', '.join((CLUSTER_LABEL, *labels))}) ({of_clusters(metric)})"


def rate(metric: Metric, *labels: str) -> str:
    """The counter's rate a second by cluster and labels; several exporters of one cluster count once."""
    return f"max by ({', '.join((CLUSTER_LABEL, *labels))}) (rate({of_clusters(metric)}[$__rate_interval]))"


@dataclass(frozen=True, slots=True)
class Limits:
    """From which value on a number turns orange and red; None never."""

    orange: float | None = None
    red: float | None = None
    below: str = "green"  # the colour of what is below both

    def thresholds(self) -> dashboard.ThresholdsConfig:
        """The limits as Grafana has them."""
        steps = [models.Threshold(value=None, color=self.below)]
        steps += [
            models.Threshold(value=value, color=color)
            for value, color in ((self.orange, "orange"), (self.red, "red"))
            if value is not None
        ]
        return dashboard.ThresholdsConfig().mode(models.ThresholdsMode.ABSOLUTE).steps(steps)


def query(expression: str, legend: str, *, instant: bool = False, ref_id: str = "A") -> prometheus.Dataquery:
    """A query of the chosen data source; an instant one never shows an old value as the present one."""
    target = prometheus.Dataquery().datasource(DATASOURCE).ref_id(ref_id).expr(expression).legend_format(legend)
    return target.instant() if instant else target.range()


def table_query(expression: str) -> prometheus.Dataquery:
    """An instant query whose series become rows."""
    return query(expression, "", instant=True).format(PromQueryFormat.TABLE)


def number(  # noqa: PLR0913 (settings with defaults)
    title: str, description: str, expression: str, *, limits: Limits, unit: str = "short", legend: str = CLUSTER_LEGEND
) -> stat.Panel:
    """One number a cluster, as it is now; `unknown` where nothing is said about a cluster."""
    return (
        stat.Panel()
        .title(title)
        .description(description)
        .datasource(DATASOURCE)
        .unit(unit)
        .no_value("unknown")
        .thresholds(limits.thresholds())
        .color_mode(common.BigValueColorMode.BACKGROUND)
        .graph_mode(common.BigValueGraphMode.NONE)
        .text_mode(common.BigValueTextMode.VALUE_AND_NAME)
        .reduce_options(common_builders.ReduceDataOptions().calcs(["lastNotNull"]).values(False).fields(""))
        .with_target(query(expression, legend, instant=True))
        .height(4)
    )


def graph(title: str, description: str, *, unit: str = "short") -> timeseries.Panel:
    """Values over time; the board adds the queries."""
    return (
        timeseries.Panel()
        .title(title)
        .description(description)
        .datasource(DATASOURCE)
        .unit(unit)
        .min(0)
        .line_width(1)
        .fill_opacity(10)
        .show_points(common.VisibilityMode.NEVER)
        .legend(
            common_builders.VizLegendOptions()
            .show_legend(True)
            .display_mode(common.LegendDisplayMode.LIST)
            .placement(common.LegendPlacement.BOTTOM)
        )
        .tooltip(
            common_builders.VizTooltipOptions().mode(common.TooltipDisplayMode.MULTI).sort(common.SortOrder.DESCENDING)
        )
        .height(8)
    )


def finished(board: dashboard.Dashboard) -> models.Dashboard:
    """The board as it is written: every panel with an id, links and annotations in sight."""
    built = board.build()
    for number_of_panel, panel in enumerate(built.panels or [], start=1):
        panel.id_val = number_of_panel
    # The SDK would hide them in a menu that only the newest Grafana has.
    for link in built.links or []:
        link.placement = None
    for annotation in built.annotations.list_val or []:
        annotation.placement = None
    return built
