"""A timeline as one self-contained page with a picture and a table, without scripts or foreign files."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final
from xml.etree.ElementTree import Element, SubElement, tostring

from dashboards.colours import VARIABLES
from dashboards.drawn_timeline.picture import STYLE, drawn, word_of
from questions.explain.explanation import Certainty
from questions.timeline.events import Change, Event
from questions.timeline.lanes import Condition
from questions.timeline.timeline import Timeline
from transport.printable import printable
from wording.sentences import counted
from wording.times import exact_moment

_NOTHING_FROM_ELSEWHERE: Final = "default-src 'none'; style-src 'unsafe-inline'"
_STYLE: Final = """
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
    SubElement(head, "style").text = VARIABLES + _STYLE + STYLE
    body = SubElement(page, "body")
    SubElement(body, "h1").text = title
    SubElement(
        body, "p"
    ).text = f"{_day(timeline.begin_ms)} to {_day(timeline.end_ms)} UTC, {counted(len(timeline.events), 'event')}"
    for doubt in doubts:
        SubElement(body, "p", {"class": "warn"}).text = printable(doubt)
    body.append(drawn(timeline))
    body.append(_legend(timeline))
    body.append(_table(timeline.events))
    return f"<!DOCTYPE html>\n{tostring(page, encoding='unicode', method='html')}\n"


def _legend(timeline: Timeline) -> Element:
    legend = Element("p")
    seen = {span.condition for lane in timeline.pictured.lanes for span in lane.spans}
    for condition in (each for each in Condition if each is not Condition.UNKNOWN or each in seen):
        SubElement(legend, "span", {"class": f"key {word_of(condition)}"}).tail = condition.value
    if timeline.pictured.left_out:
        left_out = printable("; ".join(timeline.pictured.left_out))
        SubElement(legend, "br").tail = f"Not in the picture: {left_out}."
    return legend


def _table(events: Iterable[Event]) -> Element:
    table = Element("table")
    heading = SubElement(SubElement(table, "thead"), "tr")
    for words in ("time (UTC)", "zxid", "what happened"):
        SubElement(heading, "th", {"scope": "col"}).text = words
    rows = SubElement(table, "tbody")
    for event in events:
        row = SubElement(rows, "tr")
        SubElement(row, "td", {"class": "time"}).text = _day(event.time_ms)
        SubElement(row, "td", {"class": "zxid"}).text = f"{event.zxid:#x}" if event.zxid >= 0 else "-"
        _tell(SubElement(row, "td"), event)
    return table


def _tell(cell: Element, event: Event) -> None:
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


def _day(ms: int) -> str:
    return exact_moment(ms).removesuffix("Z")
