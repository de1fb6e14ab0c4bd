"""The timeline of a cluster: its events and its lanes, of a selection and a window."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from controller.contract.row import Row
from questions.picture import Picture
from questions.timeline.events import Event, events_of
from questions.timeline.folding import folded
from questions.timeline.lanes import CONTROLLER_LANE, Lanes, lanes_of
from questions.timeline.selection import HistorySpan, Selection
from wording.said import Said, line
from wording.sentences import counted
from wording.times import exact_moment


class Timeline(msgspec.Struct, frozen=True, kw_only=True):
    """What happened in a cluster between two moments."""

    cluster: str
    about: str  # the selection in words, empty without one
    begin_ms: int
    end_ms: int
    events: tuple[Event, ...]
    pictured: Lanes

    def said(self, *, names_controllers: bool = False) -> Said:
        """Yield the events, the oldest first. With `names_controllers`, begin with the controllers and their times."""
        about = f" of {self.about}" if self.about else ""
        span = f"{exact_moment(self.begin_ms)} to {exact_moment(self.end_ms)}"
        yield line(f"{self.cluster}: {counted(len(self.events), 'event')}{about}, {span}")
        if names_controllers:
            lanes = (lane for lane in self.pictured.lanes if lane.name == CONTROLLER_LANE)
            for each in (each for lane in lanes for each in lane.spans):
                yield line(f"{exact_moment(each.begin_ms)} to {exact_moment(each.end_ms)}  {each.says}", indent=2)
        for group in folded(self.events):
            yield from group.said()


def timeline_of(
    picture: Picture, selection: Selection, window: HistorySpan, *, pictured: Sequence[Row] | None = None
) -> Timeline | None:
    """Return the timeline of the picture's story, if it has rows about the selection.

    `pictured` has the rows for the lanes if they are more than the story. Without a selection, a lane is then a topic.
    """
    story = picture.story or ()
    if not any(selection.is_about(row, None) for row in story):
        return None
    events = events_of(story, selection, window)
    begin_ms, end_ms = _edges(picture.as_of_ms, story, window, events)
    by_topic = pictured is not None and selection.is_all
    lanes = lanes_of(story if pictured is None else pictured, selection, begin_ms, end_ms, by_topic=by_topic)
    return Timeline(
        cluster=picture.header.cluster,
        about=selection.words,
        begin_ms=begin_ms,
        end_ms=end_ms,
        events=events,
        pictured=lanes,
    )


def _edges(as_of_ms: int, story: tuple[Row, ...], window: HistorySpan, events: tuple[Event, ...]) -> tuple[int, int]:
    """Return the first and the last moment that the window and the story share."""
    first_ms = story[0].time_ms
    begin_ms = first_ms if window.since_ms is None else max(first_ms, window.since_ms)
    end_ms = as_of_ms if window.until_ms is None else min(as_of_ms, window.until_ms)
    if window.since_zxid is not None and events:
        begin_ms = max(begin_ms, events[0].time_ms)
    if window.until_zxid is not None and events:
        end_ms = min(end_ms, max(event.time_ms for event in events))
    return begin_ms, max(begin_ms, end_ms)
