"""Kinds of panels with one appearance on each board, numbers, graphs, tables and timelines."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Final, NamedTuple

from grafana_foundation_sdk.builders import (
    common as common_builders,
    dashboard,
    prometheus,
    stat,
    statetimeline,
    table,
    timeseries,
)
from grafana_foundation_sdk.models import common, dashboard as models
from grafana_foundation_sdk.models.prometheus import PromQueryFormat

from dashboards.catalogue import pipeline_metrics
from dashboards.catalogue.metric import CLUSTER_LABEL
from lab.boards.queries import CLUSTER_LEGEND, newest

DATASOURCE = common.DataSourceRef(type_val="prometheus", uid="${datasource}")

# Links of numbers, series and rows lead to the exporter's live page, at the address in the board's variable.
KONTRAST_URL = "kontrast_url"
LIVE_PAGE = f"${{{KONTRAST_URL}}}/"
# Encoding of values in links, because Grafana by default leaves a slash or ampersand in a cluster's name as it is.
_ENCODED = "percentencode"

_REF_IDS = "ABCDEFGH"

_UNKNOWN: Final = "unknown"
_UNSEEN: Final = models.SpecialValueMap(
    options=models.DashboardSpecialValueMapOptions(
        match=models.SpecialValueMatch.NULL_AND_NAN, result=models.ValueMappingResult(text=_UNKNOWN, color="purple")
    )
)


class Line(NamedTuple):
    """One query of a graph or a timeline, and the name of its series."""

    expression: str
    legend: str = CLUSTER_LEGEND


@dataclass(frozen=True, slots=True)
class Limits:
    """Least values at which a number becomes green, orange or red. An unset limit never applies."""

    orange: float | None = None
    red: float | None = None
    green: float | None = None
    below: str = "green"  # the colour below the limits

    def thresholds(self) -> dashboard.ThresholdsConfig:
        """Return the limits in Grafana's form."""
        steps = [models.Threshold(value=None, color=self.below)]
        steps += [
            models.Threshold(value=value, color=color)
            for value, color in ((self.green, "green"), (self.orange, "orange"), (self.red, "red"))
            if value is not None
        ]
        return dashboard.ThresholdsConfig().mode(models.ThresholdsMode.ABSOLUTE).steps(steps)


class Column(NamedTuple):
    """One value of a table's rows."""

    heading: str
    expression: str
    unit: str = "none"
    meaning: Mapping[int, tuple[str, str]] = MappingProxyType({})  # by value, a word and a colour
    limits: Limits | None = None  # limits that colour the value


NEUTRAL = Limits(below="blue")
ANY_IS_BAD = Limits(red=1)
NONE_IS_BAD = Limits(below="red", green=1)


def words(meaning: Mapping[int, tuple[str, str]]) -> list[models.ValueMap | models.SpecialValueMap]:
    """Return the mappings that show a word and a colour in place of each of these values."""
    options = {
        str(value): models.ValueMappingResult(text=text, color=color) for value, (text, color) in meaning.items()
    }
    return [models.ValueMap(options=options), _UNSEEN]


YES_NO = words({1: ("yes", "green"), 0: ("no", "red")})


def number(
    title: str,
    description: str,
    expression: str,
    *,
    limits: Limits = NEUTRAL,
    unit: str = "none",
    legend: str = CLUSTER_LEGEND,
) -> stat.Panel:
    """Return one current number per cluster.

    A cluster that Kontrast does not see has no metrics, so its panel gets NaN in their place, which reads *unknown*.
    """
    if CLUSTER_LABEL in expression:
        expression = f"{expression} or ({newest(pipeline_metrics.READY)} == 0) * NaN"
    return (
        stat.Panel()
        .title(title)
        .description(description)
        .datasource(DATASOURCE)
        .unit(unit)
        .no_value(_UNKNOWN)
        .mappings([_UNSEEN])
        .thresholds(limits.thresholds())
        .color_mode(common.BigValueColorMode.BACKGROUND)
        .graph_mode(common.BigValueGraphMode.NONE)
        .text_mode(common.BigValueTextMode.VALUE_AND_NAME)
        .override_by_regexp(".*", [_page_of_series(Line(expression, legend))])
        .reduce_options(common_builders.ReduceDataOptions().calcs(["lastNotNull"]).values(False).fields(""))
        .with_target(_query(expression, legend, instant=True))
        .span(4)
        .height(4)
    )


def graph(title: str, description: str, *lines: Line, unit: str = "none", stepped: bool = False) -> timeseries.Panel:
    """Return a graph of values over time. `stepped` is for values that jump."""
    panel = (
        timeseries.Panel()
        .title(title)
        .description(description)
        .datasource(DATASOURCE)
        .unit(unit)
        .min(0)
        .line_width(1)
        .fill_opacity(10)
        .line_interpolation(common.LineInterpolation.STEP_AFTER if stepped else common.LineInterpolation.LINEAR)
        .show_points(common.VisibilityMode.NEVER)
        .legend(_legend(shown=True))
        .tooltip(
            common_builders.VizTooltipOptions().mode(common.TooltipDisplayMode.MULTI).sort(common.SortOrder.DESCENDING)
        )
        .span(12)
        .height(8)
    )
    for ref_id, line in zip(_REF_IDS, lines, strict=False):
        panel.with_target(_query(line.expression, line.legend, ref_id=ref_id))
        panel.override_by_query(ref_id, [_page_of_series(line)])
    return panel


def timeline(title: str, description: str, *lines: Line, meaning: Mapping[int, tuple[str, str]]) -> statetimeline.Panel:
    """Return a bar per series with its states in words and colours. A missing series has no bar."""
    panel = (
        statetimeline.Panel()
        .title(title)
        .description(description)
        .datasource(DATASOURCE)
        .unit("none")
        .mappings(words(meaning))
        .merge_values(True)
        .show_value(common.VisibilityMode.AUTO)
        .legend(_legend(shown=False))
        .row_height(0.8)
        .line_width(0)
        .fill_opacity(80)
        .span(24)
        .height(7)
    )
    for ref_id, line in zip(_REF_IDS, lines, strict=False):
        panel.with_target(_query(line.expression, line.legend, ref_id=ref_id))
        panel.override_by_query(ref_id, [_page_of_series(line)])
    return panel


def listing(
    title: str,
    description: str,
    labels: Sequence[str],
    *columns: Column,
    sort_by: str,
    is_descending: bool = False,
    empty: str = "none known",
) -> table.Panel:
    """Return a table with a present row for each combination of the cluster and these labels.

    Each row has a link to the live page that explains its subject.
    """
    names = ["Value"] if len(columns) == 1 else [f"Value #{ref_id}" for ref_id in _REF_IDS[: len(columns)]]
    is_of_clusters = any(CLUSTER_LABEL in column.expression for column in columns)
    headings = {CLUSTER_LABEL: "cluster"} if is_of_clusters else {}
    headings |= {label: label for label in labels}
    headings |= {name: column.heading for name, column in zip(names, columns, strict=True)}
    organize = models.DataTransformerConfig(
        id_val="organize",
        options={
            "excludeByName": {"Time": True},
            "indexByName": {name: index for index, name in enumerate(headings)},
            "renameByName": headings,
        },
    )
    panel = (
        table.Panel()
        .title(title)
        .description(description)
        .datasource(DATASOURCE)
        .unit("none")
        .no_value(empty)
        .with_transformation(models.DataTransformerConfig(id_val="merge", options={}))
        .with_transformation(organize)
        .override_by_regexp(".*", [_page_of_row(headings)])
        .sort_by([common_builders.TableSortByFieldState().display_name(sort_by).desc(is_descending)])
        .span(24)
        .height(8)
    )
    for ref_id, column in zip(_REF_IDS, columns, strict=False):
        query = _query(column.expression, "", instant=True, ref_id=ref_id)
        panel.with_target(query.format(PromQueryFormat.TABLE))
        panel.override_by_name(column.heading, _look_of(column))
    return panel


def _look_of(column: Column) -> list[models.DynamicConfigValue]:
    """Return the unit of a column, and the colours of its cells."""
    look = [models.DynamicConfigValue(id_val="unit", value=column.unit)]
    if column.meaning:
        look.append(models.DynamicConfigValue(id_val="mappings", value=words(column.meaning)))
    if column.limits is not None:
        look.append(models.DynamicConfigValue(id_val="thresholds", value=column.limits.thresholds().build()))
    if column.meaning or column.limits is not None:
        look.append(models.DynamicConfigValue(id_val="custom.cellOptions", value={"type": "color-background"}))
    return look


def _page_of_row(headings: Mapping[str, str]) -> models.DynamicConfigValue:
    """Return the link to the page of a row's subject, by its most specific label."""
    parts: tuple[str, ...] = ()
    if CLUSTER_LABEL in headings:
        parts = ("clusters", _field(headings[CLUSTER_LABEL]))
        if {"topic", "partition"} <= headings.keys():
            parts += ("topics", _field("topic"), _field("partition"))
        elif "subject" in headings:
            parts += (f"explain?of={_field('subject')}",)
        elif "broker" in headings:
            parts += (f"explain?of=broker+{_field('broker')}",)
    return _page(*parts)


def _page_of_series(line: Line) -> models.DynamicConfigValue:
    """Return the link to the live page of a series' broker or cluster."""
    if CLUSTER_LABEL not in line.expression:
        return _page()
    cluster = ("clusters", _label(CLUSTER_LABEL))
    return _page(*cluster, f"explain?of=broker+{_label('broker')}") if "{{broker}}" in line.legend else _page(*cluster)


def _page(*parts: str) -> models.DynamicConfigValue:
    link = {"title": "Why: the live page", "url": LIVE_PAGE + "/".join(parts), "targetBlank": True}
    return models.DynamicConfigValue(id_val="links", value=[link])


def _field(heading: str) -> str:
    return f"${{__data.fields.{heading}:{_ENCODED}}}"


def _label(name: str) -> str:
    return f"${{__field.labels.{name}:{_ENCODED}}}"


def _query(expression: str, legend: str, *, instant: bool = False, ref_id: str = "A") -> prometheus.Dataquery:
    """Return a query of the chosen data source. An instant query has only the present value."""
    target = prometheus.Dataquery().datasource(DATASOURCE).ref_id(ref_id).expr(expression).legend_format(legend)
    return target.instant() if instant else target.range()


def _legend(*, shown: bool) -> common_builders.VizLegendOptions:
    return (
        common_builders.VizLegendOptions()
        .show_legend(shown)
        .display_mode(common.LegendDisplayMode.LIST)
        .placement(common.LegendPlacement.BOTTOM)
    )
