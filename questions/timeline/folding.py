"""Like events that followed one another at once, as one event that names all their subjects."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Final

import msgspec

from questions.explain.explanation import Certainty
from questions.timeline.events import Change, Event
from wording.said import Line, Said, line, marked
from wording.sentences import joined
from wording.times import exact_moment

_NAMED: Final = 8
_AT_ONCE_MS: Final = 1_000
_NAMES_AND_NUMBERS: Final = re.compile(r"\[[^]]*\]|\S*[0-9]\S*")
_SEVERAL: Final = re.compile(r"\b(broker|topic|partition|leader|epoch) (\S*[0-9]\S*?(?:, | and )\S*[0-9])")
_OF_SEVERAL: Final = (
    (re.compile(r"(: (?:topics|partitions) .*) was "), r"\1 were "),
    (re.compile(r"(: partitions .*) moves "), r"\1 move "),
    (re.compile(r"(leaders .*) changed its ISR"), r"\1 changed their ISRs"),
)


class EventGroup(msgspec.Struct, frozen=True):
    """Events that differ only in their names and numbers, and followed one another at once."""

    first: Event
    events: tuple[Event, ...]
    last_ms: int

    @property
    def says(self) -> str:
        """Return the sentence of all events: where names and numbers differ, it lists them."""
        first = self.first.says
        if len(self.events) == 1:
            return first
        named = [_NAMES_AND_NUMBERS.findall(event.says) for event in self.events]
        different = [list(dict.fromkeys(each)) for each in zip(*named, strict=True)]
        lists = iter(
            joined([name.rstrip(",.:;") for name in names]) if len(names) > 1 else names[0] for names in different
        )
        said = _NAMES_AND_NUMBERS.sub(lambda _: next(lists), first)
        said = _SEVERAL.sub(r"\1s \2", said)
        for of_one, of_several in _OF_SEVERAL:
            said = of_one.sub(of_several, said)
        return said

    def changes(self) -> tuple[Change, ...]:
        """Return the changes of all events. Equal ones of several events are one, which names all subjects."""
        alike: dict[tuple[object, ...], list[Change]] = {}
        for event in self.events:
            for change in event.changes:
                alike.setdefault((change.says, change.certainty), []).append(change)
        return tuple(map(_one_of, alike.values()))

    def said(self) -> Said:
        """Yield the events as one, then each change."""
        event, several = self.first, len(self.events)
        times = f"{several} times within {(self.last_ms - event.time_ms) / 1000:.3f} s: " if several > 1 else ""
        zxid = f"{event.zxid:#x}" if event.zxid >= 0 else "-"
        word = () if event.severity is None else (marked(event.severity.value), " ")
        sure = "" if event.certainty is Certainty.SEEN else f"  [{event.certainty.value}: {event.rule}]"
        yield line(f"{exact_moment(event.time_ms)}  {zxid:>8}  ", *word, f"{times}{self.says}", (sure, "warn"))
        for change in self.changes():
            yield _said(change, event.time_ms)


def _said(change: Change, began_ms: int) -> Line:
    more = f" and {len(change.partitions) - _NAMED} more" if len(change.partitions) > _NAMED else ""
    names = f": {', '.join(change.partitions[:_NAMED])}{more}" if len(change.partitions) > 1 else ""
    sure = change.certainty.mark if change.certainty is Certainty.EXPECTED else ""
    return line(f"{change.subject}{change.took(began_ms)}: {change.says}{names}", (sure, "warn"), indent=6)


def folded(events: Iterable[Event]) -> tuple[EventGroup, ...]:
    """Return the events, with each run of like ones as one group."""
    runs: list[list[Event]] = []
    for event in events:
        before = runs[-1][-1] if runs else None
        if before is not None and _is_like(before, event):
            runs[-1].append(event)
        else:
            runs.append([event])
    return tuple(EventGroup(run[0], tuple(run), run[-1].time_ms) for run in runs)


def _is_like(one: Event, other: Event) -> bool:
    if one.severity is not None or other.severity is not None or other.time_ms - one.time_ms > _AT_ONCE_MS:
        return False
    if (one.certainty, one.rule) != (other.certainty, other.rule):
        return False
    return _NAMES_AND_NUMBERS.sub("", one.says) == _NAMES_AND_NUMBERS.sub("", other.says)


def _one_of(alike: list[Change]) -> Change:
    if len(alike) == 1:
        return alike[0]
    names = [name for each in alike for name in each.partitions or (each.subject,)]
    last_ms = max(each.last_ms for each in alike)
    return msgspec.structs.replace(alike[0], subject=joined(names), last_ms=last_ms, partitions=())
