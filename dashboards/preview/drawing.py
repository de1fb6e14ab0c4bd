"""Drawing of a board from the answers of a Prometheus."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from dashboards.preview.board import Board, Filling, Panel
from dashboards.preview.panels_at import draw_number, draw_table
from dashboards.preview.panels_over import Mark, Span, draw_graph, draw_timeline
from dashboards.preview.prometheus import Prometheus, Series
from dashboards.preview.svg import Area, Drawing

_COLUMN, _ROW, _GAP, _MARGIN, _HEAD = 50, 30, 8, 10, 52


@dataclass(frozen=True, slots=True, kw_only=True)
class View:
    """The variables' values and the time of a drawing."""

    filling: Filling
    start: float
    end: float  # numbers and tables show this moment
    step_seconds: float


def draw(board: Board, prometheus: Prometheus, view: View) -> str:
    """Return the board as SVG."""
    bottom = max(panel.y + panel.height for panel in board.panels)
    picture = Drawing(24 * _COLUMN + 2 * _MARGIN, bottom * (_ROW + _GAP) + _HEAD + _MARGIN)
    picture.text(_MARGIN, 22, f"Preview of the board “{board.title}”", size=16, bold=True)
    picture.text(
        _MARGIN,
        40,
        f"Cluster {view.filling.clusters}. Kontrast drew this picture from Prometheus’ answers. "
        "Grafana draws the same data in its own way.",
        color="faint",
    )
    marks = [
        Mark(at, annotation.color)
        for annotation in board.annotations
        for series in _over(prometheus, annotation.expression, view)
        for at in _beginnings(series, view.step_seconds)
    ]
    for panel in board.panels:
        _draw_panel(picture, panel, prometheus, view, marks)
    return picture.finished()


def _draw_panel(picture: Drawing, panel: Panel, prometheus: Prometheus, view: View, marks: list[Mark]) -> None:
    area = Area(
        panel.x * _COLUMN + _MARGIN,
        panel.y * (_ROW + _GAP) + _HEAD,
        panel.width * _COLUMN - _GAP,
        panel.height * (_ROW + _GAP) - _GAP,
    )
    if panel.type == "row":
        picture.text(area.x, area.y + 22, panel.title, size=14, bold=True)
        return
    picture.rectangle(area.x, area.y, area.width, area.height, "panel", rounded=3)
    picture.text(area.x + 8, area.y + 17, panel.title, size=12, bold=True, room=area.width - 16)
    inner = Area(area.x + 8, area.y + 26, area.width - 16, area.height - 34)
    span = Span(view.start, view.end, view.step_seconds)
    match panel.type:
        case "stat":
            draw_number(picture, panel, _named(panel, _instant(panel, prometheus, view)), inner)
        case "table":
            draw_table(picture, panel, _instant(panel, prometheus, view), inner)
        case "state-timeline":
            draw_timeline(picture, panel, _named(panel, _ranges(panel, prometheus, view)), span, inner)
        case _:
            draw_graph(picture, panel, _named(panel, _ranges(panel, prometheus, view)), span, marks, inner)


def _instant(panel: Panel, prometheus: Prometheus, view: View) -> dict[str, list[Series]]:
    return {
        query.ref_id: prometheus.query(view.filling.concrete(query.expression), view.end) for query in panel.queries
    }


def _ranges(panel: Panel, prometheus: Prometheus, view: View) -> dict[str, list[Series]]:
    return {query.ref_id: _over(prometheus, query.expression, view) for query in panel.queries}


def _over(prometheus: Prometheus, expression: str, view: View) -> list[Series]:
    return prometheus.query_range(view.filling.concrete(expression), view.start, view.end, view.step_seconds)


def _named(panel: Panel, answers: Mapping[str, list[Series]]) -> list[tuple[str, Series]]:
    return [
        (query.name_of(series.labels).strip(), series) for query in panel.queries for series in answers[query.ref_id]
    ]


def _beginnings(series: Series, step_seconds: float) -> list[float]:
    times = [at for at, _ in series.points]
    return [at for at, before in zip(times, [0.0, *times], strict=False) if at - before > 1.5 * step_seconds]
