"""Drawing of panels over time, graphs and state timelines."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from dashboards.preview.board import Panel
from dashboards.preview.prometheus import Series
from dashboards.preview.svg import SERIES, Area, Drawing, width_of
from dashboards.preview.values import clock, in_words

_AXIS, _LEGEND, _TICKS = 58, 18, 4
_LEGEND_LINES = 2


class Span(NamedTuple):
    """The time on the x-axis."""

    start: float
    end: float
    step_seconds: float

    def place(self, at: float, x: float, width: float) -> float:
        """Return where a moment is, in pixels."""
        return x + (at - self.start) / (self.end - self.start) * width


class Mark(NamedTuple):
    """A moment that is marked in every graph."""

    at: float
    color: str


def draw_graph(
    picture: Drawing,
    panel: Panel,
    named: Sequence[tuple[str, Series]],
    span: Span,
    marks: Sequence[Mark],
    area: Area,
) -> None:
    """Draw a line per series over the time, with marks, an axis and a legend."""
    x, y, width, height = area
    left, wide = x + _AXIS, width - _AXIS - 4
    bottom = y + height - 16 - _LEGEND_LINES * _LEGEND
    top = _top(max((value for _, series in named for _, value in series.points if math.isfinite(value)), default=1))
    for tick in range(_TICKS + 1):
        level = bottom - (bottom - y) * tick / _TICKS
        picture.line([(left, level), (left + wide, level)], "line")
        words = in_words(top * tick / _TICKS, panel.unit)
        picture.text(left - 6, level + 4, words, size=10, color="faint", anchor="end")
    _draw_times(picture, span, left, bottom + 14, wide)
    for mark in marks:
        place = span.place(mark.at, left, wide)
        picture.line([(place, y), (place, bottom)], mark.color, dashed=True)
    stepped = panel.defaults.get("custom", {}).get("lineInterpolation") == "stepAfter"
    for (_, series), color in zip(named, _colors(), strict=False):
        for run in _runs(series, span.step_seconds):
            points = [(span.place(at, left, wide), bottom - (bottom - y) * max(0, value) / top) for at, value in run]
            picture.line(_steps(points) if stepped else _straight(points), color)
    _draw_legend(picture, [name for name, _ in named], x, bottom + 16, width)


def draw_timeline(picture: Drawing, panel: Panel, named: Sequence[tuple[str, Series]], span: Span, area: Area) -> None:
    """Draw a bar per series in the words and colours of its values, with a gap where it is missing."""
    x, y, width, height = area
    left, wide = x + 130, width - 134
    each = (height - 18) / max(1, len(named))
    for index, (name, series) in enumerate(sorted(named, key=lambda pair: pair[0])):
        above = y + index * each
        picture.text(left - 8, above + each / 2 + 4, name, size=11, anchor="end", room=122)
        for start, end, value in _bars(series, span):
            word, color = panel.words().get(f"{value:g}", (f"{value:g}", "blue"))
            if color == "transparent":
                continue
            begin, stop = span.place(start, left, wide), span.place(end, left, wide)
            picture.rectangle(begin, above + 2, stop - begin, each - 4, color)
            if width_of(word) < stop - begin - 6:
                picture.text(begin + 4, above + each / 2 + 4, word, color="white", size=11)
    _draw_times(picture, span, left, y + height, wide)


def _draw_times(picture: Drawing, span: Span, x: float, y: float, width: float) -> None:
    for tick in range(_TICKS + 1):
        at = span.start + (span.end - span.start) * tick / _TICKS
        anchor = ("start", "middle", "middle", "middle", "end")[tick]
        picture.text(span.place(at, x, width), y, clock(at), size=10, color="faint", anchor=anchor)


def _draw_legend(picture: Drawing, names: Sequence[str], x: float, y: float, width: float) -> None:
    at, line = x, 1
    for index, (name, color) in enumerate(zip(names, _colors(), strict=False)):
        needed = width_of(name, 10) + 24
        rest = f"and {len(names) - index} more"
        is_last = index == len(names) - 1
        room = x + width - (0 if line < _LEGEND_LINES or is_last else width_of(rest, 10))
        if at + needed > room and line == _LEGEND_LINES:
            picture.text(at, y + line * _LEGEND, rest, size=10, color="faint")
            return
        if at + needed > room:
            at, line = x, line + 1
        picture.rectangle(at, y + line * _LEGEND - 6, 10, 3, color)
        picture.text(at + 14, y + line * _LEGEND, name, size=10)
        at += needed


def _colors() -> Iterator[str]:
    while True:
        yield from SERIES


def _top(highest: float) -> float:
    """Return the next round number above."""
    if highest <= 0:
        return 1.0
    magnitude: float = 10.0 ** math.floor(math.log10(highest))
    factors = (1, 1.2, 1.6, 2, 2.4, 3.2, 4, 5, 6, 8, 10)
    return next(magnitude * factor for factor in factors if magnitude * factor >= highest)


def _runs(series: Series, step_seconds: float) -> Iterator[list[tuple[float, float]]]:
    """Yield the points in runs that end where the series was absent."""
    run: list[tuple[float, float]] = []
    for at, value in series.points:
        if not math.isfinite(value) or (run and at - run[-1][0] > 1.5 * step_seconds):
            if run:
                yield run
            run = []
        if math.isfinite(value):
            run.append((at, value))
    if run:
        yield run


def _steps(points: Sequence[tuple[float, float]]) -> list[tuple[float, float]]:
    """Return the corners of a step line. A value lasts until the next one."""
    corners = [points[0]]
    for x, y in points[1:]:
        if y != corners[-1][1]:
            corners += [(x, corners[-1][1]), (x, y)]
    return [*corners, points[-1]]


def _straight(points: Sequence[tuple[float, float]]) -> list[tuple[float, float]]:
    """Remove the points in the middle of a level piece."""
    kept = [
        point
        for before, point, after in zip(points, points[1:], points[2:], strict=False)
        if not before[1] == point[1] == after[1]
    ]
    return [points[0], *kept, points[-1]]


def _bars(series: Series, span: Span) -> Iterator[tuple[float, float, float]]:
    """Yield the beginning, the end and the value of each run of equal points."""
    points = series.points
    begin = 0
    for index in range(1, len(points) + 1):
        ends = index == len(points) or points[index][1] != points[begin][1]
        if ends or points[index][0] - points[index - 1][0] > 1.5 * span.step_seconds:
            yield points[begin][0], min(points[index - 1][0] + span.step_seconds, span.end), points[begin][1]
            begin = index
