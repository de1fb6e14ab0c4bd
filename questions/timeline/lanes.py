"""States of the controller, brokers and affected partitions over time, for a picture."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from enum import Enum
from typing import Final

import msgspec

from controller.contract.alert_row import AlertRow, Severity
from controller.contract.ids import NO_BROKER, NO_LEADER
from controller.contract.metadata_rows import BrokerRow, ControllerRow, PartitionRow
from controller.contract.problem import UNUSABLE_WORDS, Problem
from controller.contract.row import Row
from questions.doubts import BLINDING
from questions.picture import CONTROLLER_GROUP
from questions.timeline.events import Selection
from wording.facts import Fact, replicas_in_words
from wording.sentences import counted, listed

_MOST: Final = 30  # lanes per kind, because readers cannot follow more
_WORDS_AND_NUMBERS: Final = re.compile(r"([^0-9]*)([0-9]*)")
_ABSENT: Final = frozenset({Problem.NOT_YET_CREATED.value})


CONTROLLER_LANE: Final = "controller"
"""Name of the lane with the controllers over time."""


class LaneCondition(Enum):
    """Condition of a subject, the best first. The last one means that Kontrast could not see the subject."""

    WELL = "well"
    ABSENT = "not there yet, or being deleted"
    LACKING = "under-replicated"
    REFUSING = Fact.REJECTS_ACKS_ALL.singular
    DOWN = "offline, dead, or no controller"
    UNKNOWN = "not known"


_TROUBLE: Final = (LaneCondition.DOWN, LaneCondition.REFUSING)
_OF_TOPICS: Final = (*_TROUBLE, LaneCondition.LACKING)


class Span(msgspec.Struct, frozen=True):
    """Time without a change."""

    begin_ms: int
    end_ms: int
    condition: LaneCondition
    label: str
    says: str


class Lane(msgspec.Struct, frozen=True):
    """A broker, partition or the controller over time. Its state before the first span is unknown."""

    name: str
    spans: tuple[Span, ...]

    def lasted_ms(self, *conditions: LaneCondition) -> int:
        """Return how long the subject was in one of these conditions, in milliseconds."""
        return sum(span.end_ms - span.begin_ms for span in self.spans if span.condition in conditions)


class Lanes(msgspec.Struct, frozen=True):
    """Lanes of a picture, and in words the subjects without a lane."""

    lanes: tuple[Lane, ...]
    left_out: tuple[str, ...]


def lanes_of(
    story: Sequence[Row], selection: Selection, begin_ms: int, end_ms: int, *, by_topic: bool = False
) -> Lanes:
    """Return the lanes of the controller, the brokers, and the troubled partitions between two moments.

    `by_topic` replaces partitions by a lane per topic. Brokers that were always well share a lane if they are many.
    """
    controller, brokers, partitions, topics = _Marks(), _Marks(), _Marks(), _TopicMarks()
    for row in story:
        if isinstance(row, ControllerRow):
            controller.add(row, CONTROLLER_LANE, _controller_mark(row))
        elif isinstance(row, BrokerRow):
            brokers.add(row, f"broker {row.broker}", _broker_mark(row))
        elif isinstance(row, PartitionRow) and by_topic:
            topics.add(row)
        elif isinstance(row, PartitionRow) and selection.shows(row):
            partitions.add(row, f"{row.topic}-{row.partition}", _partition_mark(row))
    failed = _alerted(story, LaneCondition.DOWN, begin_ms, end_ms)
    controllers = [Lane(lane.name, _covered(lane.spans, failed)) for lane in controller.lanes(begin_ms, end_ms)]
    shown, left_out = _of_brokers(list(brokers.lanes(begin_ms, end_ms)), together=by_topic)
    found = topics.lanes(begin_ms, end_ms) if by_topic else partitions.lanes(begin_ms, end_ms)
    shows = _OF_TOPICS if by_topic or not selection.is_all else _TROUBLE
    drawn, more = _worst((lane for lane in found if lane.lasted_ms(*shows)), *_TROUBLE)
    noun = "more topic" if by_topic else "more partition"
    left_out += [f"{counted(more, noun)} affected for a shorter time"] if more else []
    unseen = _alerted(story, LaneCondition.UNKNOWN, begin_ms, end_ms)
    lanes = (
        Lane(lane.name, _covered(lane.spans, unseen)) if unseen else lane for lane in (*controllers, *shown, *drawn)
    )
    return Lanes(tuple(lanes), tuple(left_out))


def _of_brokers(lanes: list[Lane], *, together: bool) -> tuple[list[Lane], list[str]]:
    """Return the brokers' lanes, and words for brokers without one. With `together`, many healthy ones share a lane."""
    if not together or len(lanes) <= _MOST:
        shown, more = _worst(lanes, LaneCondition.DOWN)
        return shown, [f"{counted(more, 'more broker')} with less time away"] if more else []
    shown, more = _worst((lane for lane in lanes if lane.lasted_ms(LaneCondition.DOWN)), LaneCondition.DOWN)
    well = [lane for lane in lanes if not lane.lasted_ms(LaneCondition.DOWN)]
    left_out = [f"{counted(more, 'more broker')} with less time away"] if more else []
    if not well:
        return shown, left_out
    says = f"{counted(len(well), 'broker')} registered"
    span = Span(well[0].spans[0].begin_ms, well[0].spans[-1].end_ms, LaneCondition.WELL, "", says)
    others = Lane(f"{len(well)} other brokers", (span,))
    return [*shown, others], left_out


def _worst(lanes: Iterable[Lane], *conditions: LaneCondition) -> tuple[list[Lane], int]:
    """Return the lanes that were in these conditions the longest, by name, and the number of the others."""
    by_time = sorted(lanes, key=lambda lane: (-lane.lasted_ms(*conditions), -lane.lasted_ms(LaneCondition.LACKING)))
    words_and_numbers = _WORDS_AND_NUMBERS.findall  # so that t2-3 comes before t10-1
    kept = sorted(by_time[:_MOST], key=lambda lane: [(a, int(n or 0)) for a, n in words_and_numbers(lane.name)])
    return kept, max(0, len(by_time) - _MOST)


_Mark = tuple[LaneCondition, str, str] | None  # condition, label, sentence; None after its end


class _Marks:
    """The moments at which things of one kind changed."""

    def __init__(self) -> None:
        self._marks: dict[str, list[tuple[int, _Mark]]] = {}

    def add(self, row: Row, name: str, mark: _Mark) -> None:
        marks = self._marks.setdefault(name, [])
        if not marks or marks[-1][1] != mark:
            marks.append((row.time_ms, mark))

    def lanes(self, begin_ms: int, end_ms: int) -> Iterator[Lane]:
        for name, marks in self._marks.items():
            if spans := tuple(_spans(marks, begin_ms, end_ms)):
                yield Lane(name, spans)


def _spans(marks: Sequence[tuple[int, _Mark]], begin_ms: int, end_ms: int) -> Iterator[Span]:
    ends = [*(at for at, _ in marks[1:]), end_ms]
    for (at, mark), end in zip(marks, ends, strict=True):
        if mark is not None and max(at, begin_ms) < min(end, end_ms):
            yield Span(max(at, begin_ms), min(end, end_ms), *mark)


class _TopicMarks:
    """The moments at which the worst condition of a topic's partitions changed."""

    def __init__(self) -> None:
        self._bad: dict[str, dict[int, LaneCondition]] = {}
        self._marks: dict[str, list[tuple[int, LaneCondition]]] = {}
        self._most: dict[str, dict[LaneCondition, int]] = {}  # partitions in each condition at once

    def add(self, row: PartitionRow) -> None:
        condition = LaneCondition.WELL if row.removed else _condition(row)
        bad = self._bad.setdefault(row.topic, {})
        if condition in _OF_TOPICS:
            bad[row.partition] = condition
        else:
            bad.pop(row.partition, None)
        worst = next((each for each in _OF_TOPICS if each in bad.values()), LaneCondition.WELL)
        marks = self._marks.setdefault(row.topic, [])
        if not marks or marks[-1][1] is not worst:
            marks.append((row.time_ms, worst))
        if condition in _OF_TOPICS:
            most = self._most.setdefault(row.topic, {})
            most[condition] = max(most.get(condition, 0), sum(each is condition for each in bad.values()))

    def lanes(self, begin_ms: int, end_ms: int) -> Iterator[Lane]:
        for topic, most in self._most.items():
            marks = [(at, (worst, *_topic_words(worst, most))) for at, worst in self._marks[topic]]
            if spans := tuple(_spans(marks, begin_ms, end_ms)):
                yield Lane(f"{topic} ({max(most.values())})", spans)


def _topic_words(worst: LaneCondition, most: Mapping[LaneCondition, int]) -> tuple[str, str]:
    if worst is LaneCondition.WELL:
        return "", "all partitions are online and in sync"
    word = {LaneCondition.DOWN: Fact.OFFLINE, LaneCondition.REFUSING: Fact.REJECTS_ACKS_ALL}.get(
        worst, Fact.UNDER_REPLICATED
    ).word
    return word, f"up to {counted(most[worst], 'partition')} {word}"


def _controller_mark(row: ControllerRow) -> _Mark:
    if row.broker == NO_BROKER:
        return LaneCondition.DOWN, "none", "no broker is controller"
    return LaneCondition.WELL, f"broker {row.broker}", f"broker {row.broker} is controller in epoch {row.epoch}"


def _broker_mark(row: BrokerRow) -> _Mark:
    if not row.registered:
        return LaneCondition.DOWN, "", "not registered"
    return LaneCondition.WELL, "", f"registered with epoch {row.epoch}"


def _partition_mark(row: PartitionRow) -> _Mark:
    if row.removed:
        return None
    led = f"leader {row.leader}" if row.leader != NO_LEADER else "no leader"
    says = f"{led}, {replicas_in_words(row.isr, row.replicas)}"
    moves = [f"adds {listed(row.adding_replicas)}"] if row.adding_replicas else []
    moves += [f"removes {listed(row.removing_replicas)}"] if row.removing_replicas else []
    moving = f"; a reassignment {' and '.join(moves)}" if moves else ""
    return _condition(row), led, f"{row.state}: {row.reason or says}{moving}"


def _condition(row: PartitionRow) -> LaneCondition:
    if row.deleting or row.problem in _ABSENT:
        return LaneCondition.ABSENT
    if row.problem in UNUSABLE_WORDS:
        return LaneCondition.DOWN
    if row.writable_acks_all is False:
        return LaneCondition.REFUSING
    return LaneCondition.WELL if row.problem is None else LaneCondition.LACKING


def _alerted(story: Sequence[Row], condition: LaneCondition, begin_ms: int, end_ms: int) -> tuple[Span, ...]:
    """Return the times in which a controller did not act (DOWN) or the cluster was not seen (UNKNOWN), by alerts."""
    is_down = condition is LaneCondition.DOWN
    opened: dict[str, AlertRow] = {}
    ended: list[tuple[AlertRow, int]] = []
    for row in story:
        if not isinstance(row, AlertRow) or not (row.group == CONTROLLER_GROUP if is_down else row.alert in BLINDING):
            continue
        if row.state != "resolved" and (row.severity is Severity.PAGE or not is_down):
            opened[row.id] = row if is_down else opened.get(row.id, row)
        elif row.id in opened:
            ended.append((opened.pop(row.id), min(row.time_ms, end_ms)))
    ended += [(row, end_ms) for row in opened.values()]
    return tuple(
        Span(
            max(row.since_ms, begin_ms),
            until,
            condition,
            row.alert if is_down else "not known",
            f"{row.alert}: {row.cause}",
        )
        for row, until in ended
        if max(row.since_ms, begin_ms) < until
    )


def _covered(spans: Sequence[Span], covers: Sequence[Span]) -> tuple[Span, ...]:
    """Return the covers and the uncovered parts of the spans. Of two covers the earlier one wins."""
    kept: list[Span] = []
    for cover in sorted(covers, key=lambda cover: cover.begin_ms):
        kept.extend(_left_by(cover, tuple(kept)))
    left = [piece for span in spans for piece in _left_by(span, kept)]
    return tuple(sorted([*kept, *left], key=lambda span: span.begin_ms))


def _left_by(span: Span, covers: Iterable[Span]) -> list[Span]:
    pieces = [span]
    for cover in covers:
        pieces = [piece for left in pieces for piece in _without(left, cover)]
    return pieces


def _without(span: Span, other: Span) -> Iterator[Span]:
    before = msgspec.structs.replace(span, end_ms=min(span.end_ms, other.begin_ms))
    after = msgspec.structs.replace(span, begin_ms=max(span.begin_ms, other.end_ms))
    yield from (piece for piece in (before, after) if piece.begin_ms < piece.end_ms)
