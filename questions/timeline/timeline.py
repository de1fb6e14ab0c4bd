"""The timeline of a cluster: its events and its lanes, of a selection and a window, and the question for it.

Like events that followed one another at once are one event that names all their subjects.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import Annotated, Final

import msgspec

from controller.contract.ids import BrokerId
from controller.contract.row import Row
from questions.explain.explanation import Certainty
from questions.explain.subject import Subject, read_partition
from questions.moments import TIMES, GivenMoment, read_moment
from questions.picture import Picture
from questions.question import NotFoundError, Question, Scope, meaning
from questions.timeline.events import Change, Entry, HistorySpan, Selection, TimelineRows, events_of
from questions.timeline.lanes import CONTROLLER_LANE, Lanes, lanes_of
from wording.said import Line, Said, line, marked
from wording.sentences import counted, joined
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

    first: Entry
    events: tuple[Entry, ...]
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


def folded(events: Iterable[Entry]) -> tuple[EventGroup, ...]:
    """Return the events, with each run of like ones as one group."""
    runs: list[list[Entry]] = []
    for event in events:
        before = runs[-1][-1] if runs else None
        if before is not None and _is_like(before, event):
            runs[-1].append(event)
        else:
            runs.append([event])
    return tuple(EventGroup(run[0], tuple(run), run[-1].time_ms) for run in runs)


def _is_like(one: Entry, other: Entry) -> bool:
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


class Timeline(msgspec.Struct, frozen=True, kw_only=True):
    """What happened in a cluster between two moments."""

    cluster: str
    about: str  # the selection in words, empty without one
    begin_ms: int
    end_ms: int
    events: tuple[Entry, ...]
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


def _edges(as_of_ms: int, story: tuple[Row, ...], window: HistorySpan, events: tuple[Entry, ...]) -> tuple[int, int]:
    """Return the first and the last moment that the window and the story share."""
    first_ms = story[0].time_ms
    begin_ms = first_ms if window.since_ms is None else max(first_ms, window.since_ms)
    end_ms = as_of_ms if window.until_ms is None else min(as_of_ms, window.until_ms)
    if window.since_zxid is not None and events:
        begin_ms = max(begin_ms, events[0].time_ms)
    if window.until_zxid is not None and events:
        end_ms = min(end_ms, max(event.time_ms for event in events))
    return begin_ms, max(begin_ms, end_ms)


class ShowTimeline(Question, frozen=True):
    """List the events of a cluster in order, with their changes of leaders, ISRs and alerts."""

    answer = Timeline
    tool = "timeline"
    needs_past = True

    topics: Annotated[tuple[str, ...], meaning("Only this topic.")] = ()
    partitions: Annotated[tuple[str, ...], meaning("Only this partition, such as orders-7.")] = ()
    brokers: Annotated[tuple[int, ...], meaning("Only this broker, its leaderships and its places in ISRs.")] = ()
    controller: Annotated[bool, meaning("Only controllers, failovers, and phases of a migration to KRaft.")] = False
    since: Annotated[str | None, meaning(f"First moment: 0x1f, {TIMES}.")] = None
    until: Annotated[str | None, meaning(f"Last moment: 0x1f, {TIMES}.")] = None

    def __post_init__(self) -> None:
        """Raise ValueError for words that name no partition or no moment."""
        self._selection()
        self._window()

    def scope(self) -> Scope:
        """Return the whole cluster with its past."""
        return Scope(past=True, keeps=TimelineRows(), past_outputs=("transitions", "metadata", "alerts"))

    def ask(self, picture: Picture) -> Timeline:
        """Return the events. Raise NotFoundError if none is about a named subject."""
        selection = self._selection()
        found = timeline_of(picture, selection, self._window())
        if found is None:
            named = selection.words or "any subject"
            raise NotFoundError(f"the kept data of cluster {picture.header.cluster} lacks {named}")
        return found

    def similar(self, picture: Picture) -> list[str]:
        """Return existing subjects with a name similar to the first named topic or partition."""
        named = [Subject(name, topic=name) for name in sorted(self.topics)]
        named += [Subject(str(tp), partition=tp) for tp in sorted(map(read_partition, self.partitions))]
        return named[0].similar(picture) if named else []

    def _selection(self) -> Selection:
        return Selection(
            topics=frozenset(self.topics),
            partitions=frozenset(map(read_partition, self.partitions)),
            brokers=frozenset(map(BrokerId, self.brokers)),
            controller=self.controller,
        )

    def _window(self) -> HistorySpan:
        since, until = (GivenMoment() if text is None else read_moment(text) for text in (self.since, self.until))
        return HistorySpan(since_zxid=since.zxid, since_ms=since.time_ms, until_zxid=until.zxid, until_ms=until.time_ms)
