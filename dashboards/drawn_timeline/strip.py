"""A lane of a timeline as a narrow strip for small screens, and the lanes that a reader needs first."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import groupby
from typing import Final, NamedTuple

import msgspec

from questions.timeline.lanes import Condition, Lane
from questions.timeline.timeline import Timeline

CELLS: Final = 100  # of a strip, each with its worst condition
_BEST_FIRST: Final = tuple(Condition)
_MOST_TROUBLED: Final = 8  # lanes that a phone's screen has room for, beside the band and the incidents
_MOST_SPANS: Final = 20


class Cells(NamedTuple):
    """Neighbouring cells of a strip with one condition."""

    begin: int
    length: int
    condition: Condition


class FoldedLane(NamedTuple):
    """A lane with its strip, its newest condition, and its newest changes."""

    lane: Lane
    cells: tuple[Cells, ...]
    now: Condition
    earlier: int  # changes before the named ones


class FoldedLanes(NamedTuple):
    """Lanes with trouble at the end of the time, or otherwise during it, and all others."""

    first: tuple[FoldedLane, ...]
    others: tuple[FoldedLane, ...]


def folded_lanes(timeline: Timeline) -> FoldedLanes:
    """Return the timeline's lanes for a small screen, lanes in trouble first."""
    every = [_folded(lane, timeline) for lane in timeline.pictured.lanes if lane.spans]
    troubled = [each for each in every if any(span.condition is not Condition.WELL for span in each.lane.spans)]
    troubled.sort(key=lambda each: -_BEST_FIRST.index(each.now))
    first = troubled[:_MOST_TROUBLED]
    return FoldedLanes(tuple(first), tuple(each for each in every if each not in first))


def _folded(lane: Lane, timeline: Timeline) -> FoldedLane:
    newest = msgspec.structs.replace(lane, spans=lane.spans[-_MOST_SPANS:])
    return FoldedLane(newest, tuple(_cells(lane, timeline)), lane.spans[-1].condition, len(lane.spans[:-_MOST_SPANS]))


def _cells(lane: Lane, timeline: Timeline) -> Iterator[Cells]:
    lasts_ms = max(1, timeline.end_ms - timeline.begin_ms)
    worst: list[Condition | None] = [None] * CELLS
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
