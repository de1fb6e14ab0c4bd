"""A timeline with each event in a line, and its changes below it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from rich.console import RenderableType

from cli.printing.answers import line, severity_word
from questions.explain.explanation import Certainty
from questions.timeline.events import Change, Event
from questions.timeline.timeline import Timeline
from wording.sentences import counted
from wording.times import exact_moment

_NAMED: Final = 8


def timeline_lines(timeline: Timeline) -> Iterator[RenderableType]:
    """Yield the events, the oldest first."""
    about = f" of {timeline.about}" if timeline.about else ""
    count = counted(len(timeline.events), "event")
    span = f"{exact_moment(timeline.begin_ms)} to {exact_moment(timeline.end_ms)}"
    yield line(f"{timeline.cluster}: {count}{about}, {span}")
    for event in timeline.events:
        yield _event(event)
        for change in event.changes:
            yield _change(change, event.time_ms)


def _event(event: Event) -> RenderableType:
    zxid = f"{event.zxid:#x}" if event.zxid >= 0 else "-"
    word = () if event.severity is None else (severity_word(event.severity.value), " ")
    sure = "" if event.certainty is Certainty.SEEN else f"  [{event.certainty.value}: {event.rule}]"
    return line(f"{exact_moment(event.time_ms)}  {zxid:>8}  ", *word, event.says, (sure, "yellow"))


def _change(change: Change, began_ms: int) -> RenderableType:
    more = f" and {len(change.partitions) - _NAMED} more" if len(change.partitions) > _NAMED else ""
    names = f": {', '.join(change.partitions[:_NAMED])}{more}" if len(change.partitions) > 1 else ""
    sure = f"  [{change.certainty.value}]" if change.certainty is Certainty.EXPECTED else ""
    return line(f"{change.subject}{change.took(began_ms)}: {change.says}{names}", (sure, "yellow"), indent=6)
