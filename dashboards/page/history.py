"""A cluster as of a moment that is kept, and what happened around it."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from types import MappingProxyType
from typing import Final

import msgspec

from controller.restore.stored_context import new_context
from dashboards.following.cluster_at import kept, snapshot_as_of
from dashboards.following.transitions import Transitions
from dashboards.following.view import AsOf, View
from dashboards.page.answers import Overview, overview_of
from questions.explain.subject import Subject
from questions.picture import Origin, Picture
from questions.timeline.selection import HistorySpan, Selection, is_in_a_timeline
from questions.timeline.timeline import Timeline, timeline_of

# Of metadata, of alerts and of transitions each. A page of as many took 50 ms beside 200,000 partitions, and 120 ms
# where 20,000 of these were offline.
_MOST_ROWS: Final = 1_500
_NAMED_EVENTS: Final = 200
WINDOWS_SECONDS: Final = MappingProxyType(
    {900: "15 minutes", 3_600: "an hour", 21_600: "6 hours", 86_400: "a day", 604_800: "a week"}
)
"""How much of the time around a moment may be asked for, and how that is said."""

OLDEST: Final = "nothing before this moment is kept: this is the oldest that can be shown"
"""What is said where an earlier moment was asked for."""


class AskedMoment(msgspec.Struct, frozen=True):
    """A moment of a cluster (None: the newest), and how much of the time around it is wanted."""

    at_ms: int | None = None
    window_seconds: int = 3_600
    subject: Subject | None = None  # only what is about it; None: all


class History(msgspec.Struct, frozen=True, kw_only=True):
    """What happened between two moments, and the cluster as of a third between them."""

    overview: Overview
    at_ms: int
    begin_ms: int
    end_ms: int
    newest_ms: int
    kept_since_ms: int
    timeline: Timeline | None  # with the newest of its events; None: nothing happened
    earlier_events: int  # that are not in it
    previous_ms: int | None  # of the event before the moment
    next_ms: int | None
    notes: tuple[str, ...]  # why it may not be all


class Histories:
    """Histories of the clusters that are followed, from what is in memory."""

    def __init__(self, view: View, transitions: Transitions) -> None:
        self._view = view
        self._transitions = transitions

    def history(self, cluster: str, asked: AskedMoment) -> History | None:
        """What is kept around the moment, or the nearest that is kept; None where nothing is."""
        past = kept(self._view, cluster)
        if past is None:
            return None
        since_ms, newest_ms = past
        at_ms = newest_ms if asked.at_ms is None else past.nearest(asked.at_ms)
        lasts_ms = asked.window_seconds * 1000
        end_ms = min(newest_ms, at_ms + lasts_ms // 2)
        begin_ms = max(since_ms, end_ms - lasts_ms)
        state = self._view.as_of(cluster, at_ms)
        assert state is not None, "a cluster that was there a moment ago"
        timeline, notes = self._timeline(state, asked.subject, begin_ms, end_ms)
        if asked.at_ms is not None and asked.at_ms < since_ms:
            notes.insert(0, OLDEST)
        moments = [] if timeline is None else sorted({event.time_ms for event in timeline.events})
        before, behind = bisect_left(moments, at_ms), bisect_right(moments, at_ms)
        return History(
            overview=overview_of(snapshot_as_of(state, at_ms), None),
            at_ms=at_ms,
            begin_ms=begin_ms,
            end_ms=end_ms,
            newest_ms=newest_ms,
            kept_since_ms=since_ms,
            timeline=None if timeline is None else _with_newest(timeline),
            earlier_events=0 if timeline is None else max(0, len(timeline.events) - _NAMED_EVENTS),
            previous_ms=moments[before - 1] if before else None,
            next_ms=moments[behind] if behind < len(moments) else None,
            notes=tuple(notes),
        )

    def _timeline(
        self, state: AsOf, subject: Subject | None, begin_ms: int, end_ms: int
    ) -> tuple[Timeline | None, list[str]]:
        cluster = state.now.cluster
        changed = self._view.changed(cluster, begin_ms, end_ms, _MOST_ROWS)
        steps = self._transitions.between(cluster, begin_ms, end_ms)
        incomplete = self._transitions.why_incomplete()
        notes = [] if incomplete is None else [incomplete]
        if len(steps) > _MOST_ROWS or sum(begin_ms <= row.time_ms for row in changed) >= _MOST_ROWS:
            notes.append("so much happened that only the newest of it is listed: choose an earlier moment for the rest")
        rows = {(row.generation, row.seq, row.ordinal): row for row in (*changed, *steps[-_MOST_ROWS:])}
        # What did not change has a lane, too.
        standing = [row for row in (*state.now.brokers, state.now.controller) if row is not None]
        rows |= {(row.generation, row.seq, row.ordinal): row for row in standing if row.time_ms < begin_ms}
        story = tuple(rows[place] for place in sorted(rows) if is_in_a_timeline(rows[place]))
        context = new_context(cluster, chunk_count=1)
        picture = Picture(origin=Origin.HISTORY, context=context, story=story, as_of_ms=end_ms)
        window = HistorySpan(since_ms=begin_ms, until_ms=end_ms)
        return (timeline_of(picture, _selection(subject), window) if story else None), notes


def _selection(subject: Subject | None) -> Selection:
    if subject is None:
        return Selection()
    return Selection(
        topics=frozenset() if subject.topic is None else frozenset({subject.topic}),
        partitions=frozenset() if subject.partition is None else frozenset({subject.partition}),
        brokers=frozenset() if subject.broker is None else frozenset({subject.broker}),
        controller=subject.is_controller,
    )


def _with_newest(timeline: Timeline) -> Timeline:
    return msgspec.structs.replace(timeline, events=timeline.events[-_NAMED_EVENTS:])
