"""Lanes of a timeline as SVG, a bar for each state, with its sentence under the pointer, and as a page with a table.

A small screen has the lanes that a reader needs first, each as a narrow strip.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from datetime import datetime, timezone
from itertools import groupby
from typing import Final, NamedTuple
from xml.etree.ElementTree import Element, SubElement, tostring

import msgspec

from controller.contract.records import LATEST_MS
from dashboards.colours import VARIABLES
from questions.explain.explanation import Certainty
from questions.timeline.events import Change, Entry
from questions.timeline.lanes import Lane, LaneCondition, Span
from questions.timeline.timeline import Timeline
from transport.printable import printable
from wording.facts import without_zxid
from wording.sentences import counted
from wording.times import exact_moment

WIDTH: Final = 1200
LEFT: Final = 190  # width of the lanes' names
RIGHT: Final = 12
_TOP: Final = 26  # height of the times
_LANE: Final = 20
_BAR: Final = 14
_LEAST_BAR: Final = 1.5  # so that a short outage stays visible
_CHARACTER: Final = 6.2  # average width of a character, at the size of the text
_MOST_TICKS: Final = 8
_LONGEST_NAME: Final = 28
_SECOND: Final = 1_000
_DAY: Final = 86_400 * _SECOND
_STEPS_MS: Final = (
    *(1, 2, 5, 10, 20, 50, 100, 200, 500),
    *(seconds * _SECOND for seconds in (1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1_800, 3_600, 7_200, 21_600)),
    *(days * _DAY for days in (0.5, 1, 2, 7, 30, 90, 365)),
)

STYLE: Final = """
svg.lanes { width: 100%; height: auto; font: 11px sans-serif; }
svg.lanes text { fill: currentColor; }
svg.lanes text.in { fill: var(--card); pointer-events: none; }
svg.lanes line { stroke: currentColor; opacity: .18; }
svg.lanes line.at { opacity: 1; stroke-width: 2; }
.lanes .well, .key.well { fill: var(--well); background: var(--well); }
.lanes .absent, .key.absent { fill: var(--mute); background: var(--mute); }
.lanes .lacking, .key.lacking { fill: var(--lacking); background: var(--lacking); }
.lanes .refusing, .key.refusing { fill: var(--degraded); background: var(--degraded); }
.lanes .down, .key.down { fill: var(--affected); background: var(--affected); }
.key.unknown { background: repeating-linear-gradient(135deg, var(--unknown) 0 2px, transparent 2px 5px); }
svg.lanes .hatch { stroke: var(--unknown); stroke-width: 3; opacity: 1; }
"""


def drawn(timeline: Timeline, at_ms: int | None = None) -> Element:
    """Return the picture of the lanes, with a line at a moment. The page must have `STYLE`, which gives it its form."""
    lanes = timeline.pictured.lanes
    bottom = str(_TOP + _LANE * len(lanes) + 6)
    picture = Element("svg", {"class": "lanes", "viewBox": f"0 0 {WIDTH} {bottom}", "role": "img"})
    SubElement(picture, "title").text = f"Healthy and troubled times of cluster {printable(timeline.cluster)}"
    if any(span.condition is LaneCondition.UNKNOWN for lane in lanes for span in lane.spans):
        picture.append(_hatch())
    scale = _TimeScale(timeline.begin_ms, timeline.end_ms)
    for tick_ms, words in scale.ticks():
        x = _number(scale.x(tick_ms))
        SubElement(picture, "line", {"x1": x, "x2": x, "y1": str(_TOP - 6), "y2": bottom})
        SubElement(picture, "text", {"x": x, "y": "14", "text-anchor": "middle"}).text = words
    for number, lane in enumerate(lanes):
        picture.append(_drawn_lane(lane, _TOP + number * _LANE, scale))
    if at_ms is not None:
        place = _number(scale.x(at_ms))
        SubElement(picture, "line", {"x1": place, "x2": place, "y1": "0", "y2": bottom, "class": "at"})
    return picture


def _hatch() -> Element:
    """Return the pattern of unseen time."""
    definitions = Element("defs")
    square = {"id": "unknown-time", "width": "7", "height": "7", "patternUnits": "userSpaceOnUse"}
    pattern = SubElement(definitions, "pattern", {**square, "patternTransform": "rotate(45)"})
    SubElement(pattern, "line", {"class": "hatch", "x1": "0", "x2": "0", "y1": "0", "y2": "7"})
    return definitions


def word_of(condition: LaneCondition) -> str:
    """Return the class of this condition in `STYLE`."""
    return condition.name.lower()


def _clock(ms: float) -> str:
    """Return a time of day with milliseconds, in UTC."""
    return datetime.fromtimestamp(ms / _SECOND, timezone.utc).strftime("%H:%M:%S.%f")[:-3]


class _TimeScale:
    """Scale from moments to places in the picture."""

    def __init__(self, begin_ms: int, end_ms: int) -> None:
        self._begin_ms, self._lasts_ms = begin_ms, max(1, end_ms - begin_ms)

    def x(self, ms: float) -> float:
        """Return the distance from the left."""
        return LEFT + (ms - self._begin_ms) / self._lasts_ms * (WIDTH - LEFT - RIGHT)

    def ticks(self) -> Iterator[tuple[float, str]]:
        """Yield round moments with their labels."""
        steps = (step for step in _STEPS_MS if self._lasts_ms / step <= _MOST_TICKS)
        step = next(steps, self._lasts_ms / _MOST_TICKS)
        form = "%Y-%m-%d" if step >= _DAY else "%d %H:%M" if self._lasts_ms > _DAY else "%H:%M:%S"
        at_ms = -(-self._begin_ms // step) * step
        last_ms = min(self._begin_ms + self._lasts_ms, LATEST_MS)
        while at_ms <= last_ms:
            moment = datetime.fromtimestamp(at_ms / _SECOND, timezone.utc)
            yield at_ms, _clock(at_ms) if step < _SECOND else moment.strftime(form)
            at_ms += step


def _drawn_lane(lane: Lane, top: int, scale: _TimeScale) -> Element:
    group = Element("g")
    middle = _number(top + _LANE / 2 + 2)
    name = printable(lane.name)
    short = name if len(name) <= _LONGEST_NAME else f"{name[: _LONGEST_NAME - 9]}…{name[-8:]}"
    label = SubElement(group, "text", {"x": str(LEFT - 8), "y": middle, "text-anchor": "end"})
    label.text = short
    SubElement(label, "title").text = name
    for span in lane.spans:
        begin = scale.x(span.begin_ms)
        width = max(_LEAST_BAR, scale.x(span.end_ms) - begin)
        place = {"x": _number(begin), "y": str(top), "width": _number(width), "height": str(_BAR)}
        fill = {"fill": "url(#unknown-time)"} if span.condition is LaneCondition.UNKNOWN else {}
        bar = SubElement(group, "rect", {**place, **fill, "class": word_of(span.condition)})
        SubElement(bar, "title").text = f"{name} {_said(span)}"
        words = printable(span.label)
        if words and len(words) * _CHARACTER < width - 6:
            SubElement(group, "text", {"x": _number(begin + 4), "y": middle, "class": "in"}).text = words
    return group


def _said(span: Span) -> str:
    lasted = (span.end_ms - span.begin_ms) / _SECOND
    return f"{_clock(span.begin_ms)} to {_clock(span.end_ms)} ({lasted:.3f} s): {printable(without_zxid(span.says))}"


def _number(value: float) -> str:
    return f"{value:.1f}".removesuffix(".0")


CELLS: Final = 100  # of a strip, each with its worst condition
_BEST_FIRST: Final = tuple(LaneCondition)
_MOST_TROUBLED: Final = 8  # lanes that a phone's screen has room for, beside the band and the incidents
_MOST_SPANS: Final = 20


class Cells(NamedTuple):
    """Neighbouring cells of a strip with one condition."""

    begin: int
    length: int
    condition: LaneCondition


class FoldedLane(NamedTuple):
    """A lane with its strip, its newest condition, and its newest changes."""

    lane: Lane
    cells: tuple[Cells, ...]
    now: LaneCondition
    earlier: int  # changes before the named ones


class FoldedLanes(NamedTuple):
    """Lanes with trouble at the end of the time, or otherwise during it, and all others."""

    first: tuple[FoldedLane, ...]
    others: tuple[FoldedLane, ...]


def folded_lanes(timeline: Timeline) -> FoldedLanes:
    """Return the timeline's lanes for a small screen, lanes in trouble first."""
    every = [_folded(lane, timeline) for lane in timeline.pictured.lanes if lane.spans]
    troubled = [each for each in every if any(span.condition is not LaneCondition.WELL for span in each.lane.spans)]
    troubled.sort(key=lambda each: -_BEST_FIRST.index(each.now))
    first = troubled[:_MOST_TROUBLED]
    return FoldedLanes(tuple(first), tuple(each for each in every if each not in first))


def _folded(lane: Lane, timeline: Timeline) -> FoldedLane:
    newest = msgspec.structs.replace(lane, spans=lane.spans[-_MOST_SPANS:])
    return FoldedLane(newest, tuple(_cells(lane, timeline)), lane.spans[-1].condition, len(lane.spans[:-_MOST_SPANS]))


def _cells(lane: Lane, timeline: Timeline) -> Iterator[Cells]:
    lasts_ms = max(1, timeline.end_ms - timeline.begin_ms)
    worst: list[LaneCondition | None] = [None] * CELLS
    for span in lane.spans:
        first = (span.begin_ms - timeline.begin_ms) * CELLS // lasts_ms
        last = max(first + 1, -(-(span.end_ms - timeline.begin_ms) * CELLS // lasts_ms))
        for cell in range(max(0, first), min(CELLS, last)):
            known = worst[cell]
            if known is None or _BEST_FIRST.index(span.condition) > _BEST_FIRST.index(known):
                worst[cell] = span.condition
    begin = 0
    for condition, run in groupby(worst):
        count = len(list(run))
        if condition is not None:
            yield Cells(begin, count, condition)
        begin += count


_NOTHING_FROM_ELSEWHERE: Final = "default-src 'none'; style-src 'unsafe-inline'"
_PAGE_STYLE: Final = """
body { color: var(--text); background: var(--card); }
body { font: 14px/1.45 sans-serif; margin: 1.5rem auto; max-width: 1240px; padding: 0 1rem; }
table { border-collapse: collapse; width: 100%; }
th, td { text-align: left; vertical-align: top; padding: .25rem .6rem .25rem 0; border-bottom: 1px solid var(--line); }
td.time, td.zxid { font-family: monospace; white-space: nowrap; }
ul { margin: 0; padding-left: 1.1rem; }
.sure { font-size: .85em; border: 1px solid; border-radius: .3em; padding: 0 .3em; margin-left: .4em; }
.page { color: var(--affected); font-weight: bold; } .warn { color: var(--degraded); font-weight: bold; }
.key { display: inline-block; width: .9em; height: .9em; margin: 0 .35em 0 1em; vertical-align: -.1em; }
summary { cursor: pointer; }
"""


def page_of(timeline: Timeline, doubts: Iterable[str] = ()) -> str:
    """Return the page's HTML. `doubts` are the reasons why the timeline may be incomplete."""
    about = f": {timeline.about}" if timeline.about else ""
    title = printable(f"What happened in cluster {timeline.cluster}{about}")
    page = Element("html", {"lang": "en"})
    head = SubElement(page, "head")
    SubElement(head, "meta", {"charset": "utf-8"})
    SubElement(head, "meta", {"http-equiv": "Content-Security-Policy", "content": _NOTHING_FROM_ELSEWHERE})
    SubElement(head, "meta", {"name": "viewport", "content": "width=device-width"})
    SubElement(head, "title").text = title
    SubElement(head, "style").text = VARIABLES + _PAGE_STYLE + STYLE
    body = SubElement(page, "body")
    SubElement(body, "h1").text = title
    SubElement(
        body, "p"
    ).text = f"{_exact(timeline.begin_ms)} to {_exact(timeline.end_ms)} UTC, {counted(len(timeline.events), 'event')}"
    for doubt in doubts:
        SubElement(body, "p", {"class": "warn"}).text = printable(doubt)
    body.append(drawn(timeline))
    body.append(_legend(timeline))
    body.append(_table_of(timeline.events))
    return f"<!DOCTYPE html>\n{tostring(page, encoding='unicode', method='html')}\n"


def _legend(timeline: Timeline) -> Element:
    legend = Element("p")
    seen = {span.condition for lane in timeline.pictured.lanes for span in lane.spans}
    for condition in (each for each in LaneCondition if each is not LaneCondition.UNKNOWN or each in seen):
        SubElement(legend, "span", {"class": f"key {word_of(condition)}"}).tail = condition.value
    if timeline.pictured.left_out:
        left_out = printable("; ".join(timeline.pictured.left_out))
        SubElement(legend, "br").tail = f"Not in the picture: {left_out}."
    return legend


def _table_of(events: Iterable[Entry]) -> Element:
    table = Element("table")
    heading = SubElement(SubElement(table, "thead"), "tr")
    for words in ("time (UTC)", "zxid", "what happened"):
        SubElement(heading, "th", {"scope": "col"}).text = words
    rows = SubElement(table, "tbody")
    for event in events:
        row = SubElement(rows, "tr")
        SubElement(row, "td", {"class": "time"}).text = _exact(event.time_ms)
        SubElement(row, "td", {"class": "zxid"}).text = f"{event.zxid:#x}" if event.zxid >= 0 else "-"
        _tell(SubElement(row, "td"), event)
    return table


def _tell(cell: Element, event: Entry) -> None:
    if event.severity is not None:
        SubElement(cell, "span", {"class": event.severity.value}).text = f"{event.severity.value} "
    SubElement(cell, "span").text = printable(event.says)
    if event.certainty is not Certainty.SEEN:
        shown = {"class": "sure", "title": printable(event.inferred_from)}
        SubElement(cell, "span", shown).text = printable(f"{event.certainty.value}: {event.rule}")
    if event.changes:
        changes = SubElement(cell, "ul")
        for change in event.changes:
            _tell_change(SubElement(changes, "li"), change, event.time_ms)


def _tell_change(item: Element, change: Change, began_ms: int) -> None:
    told = item
    if len(change.partitions) > 1:
        names = SubElement(item, "details")
        told = SubElement(names, "summary")
        told.tail = printable(", ".join(change.partitions))
    told.text = printable(f"{change.subject}{change.took(began_ms)}: {change.says}")
    if change.certainty is Certainty.EXPECTED:
        SubElement(told, "span", {"class": "sure"}).text = change.certainty.value


def _exact(ms: int) -> str:
    return exact_moment(ms).removesuffix("Z")
