"""Events of a history in order with their changes, in Kafka's words. Inferred events are marked."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator, Sequence
from enum import Enum
from typing import Final

import msgspec

from controller.contract.alert_row import AlertRow, Severity
from controller.contract.effect_rows import Transition
from controller.contract.ids import (
    NO_BROKER,
    NO_LEADER,
    UNKNOWN_ZXID,
    BrokerId,
    ControllerEpoch,
    PartitionId,
    TopicPartition,
    Zxid,
)
from controller.contract.metadata_rows import BrokerRow, ControllerRow, MigrationRow, PartitionRow
from controller.contract.row import Row
from questions.explain.causes import Happening, happenings
from questions.explain.explanation import Cause, Certainty
from questions.picture import CONTROLLER_GROUP
from wording.sentences import counted

_HEARTBEAT_MS = 1_000


class HistorySpan(msgspec.Struct, frozen=True):
    """Part of a history, both ends included. An end is a zxid or a time in milliseconds since 1970."""

    since_zxid: Zxid | None = None
    since_ms: int | None = None
    until_zxid: Zxid | None = None
    until_ms: int | None = None

    def has(self, zxid: Zxid, time_ms: int) -> bool:
        """Return whether an event at this time, between these zxids, is in the window."""
        begun = zxid >= (self.since_zxid or zxid) and time_ms >= (self.since_ms or time_ms)
        ended = (self.until_zxid is not None and zxid > self.until_zxid) or (
            self.until_ms is not None and time_ms > self.until_ms
        )
        return begun and not ended


class Selection(msgspec.Struct, frozen=True, kw_only=True):
    """Subjects of a timeline. Without names, these are all subjects."""

    topics: frozenset[str] = frozenset()
    partitions: frozenset[TopicPartition] = frozenset()
    brokers: frozenset[BrokerId] = frozenset()
    controller: bool = False

    @property
    def is_all(self) -> bool:
        """Return whether no subject is named."""
        return not (self.topics or self.partitions or self.brokers or self.controller)

    @property
    def words(self) -> str:
        """Return the names."""
        topics = [f"topic {name}" for name in sorted(self.topics)]
        partitions = [str(tp) for tp in sorted(self.partitions)]
        brokers = [f"broker {number}" for number in sorted(self.brokers)]
        return ", ".join([*topics, *partitions, *brokers, *(["the controller"] if self.controller else [])])

    def is_about(self, row: Row, before: PartitionRow | None) -> bool:
        """Return whether the row is about one of the subjects. `before` is its partition's previous row."""
        if self.is_all:
            return True
        if isinstance(row, (ControllerRow, MigrationRow)):
            return self.controller
        if isinstance(row, BrokerRow):
            return row.broker in self.brokers
        if isinstance(row, AlertRow):
            return self._is_alert_about(row)
        if isinstance(row, PartitionRow):
            return self.names(row.topic, row.partition) or self._changes_replicas(row, before)
        return isinstance(row, Transition) and self._is_transition_about(row, before)

    def shows(self, row: PartitionRow) -> bool:
        """Return whether to draw the partition, because it or a broker that hosts it is named."""
        narrows = self.topics or self.partitions or self.brokers
        return not narrows or self.names(row.topic, row.partition) or not self.brokers.isdisjoint(row.replicas)

    def names(self, topic: str, partition: PartitionId) -> bool:
        """Return whether the partition or its topic is named."""
        return topic in self.topics or TopicPartition(topic, partition) in self.partitions

    def _is_transition_about(self, row: Transition, before: PartitionRow | None) -> bool:
        if row.subject == "controller":
            return self.controller or row.broker in self.brokers
        if row.subject == "broker":
            return row.broker in self.brokers
        if row.topic is None or row.partition is None:
            return row.topic in self.topics
        led = {row.leader, None if before is None else before.leader}
        return self.names(row.topic, row.partition) or not self.brokers.isdisjoint(led)

    def _changes_replicas(self, row: PartitionRow, before: PartitionRow | None) -> bool:
        """Return whether a selected broker leads the partition, or is in sync or assigned in only one of both rows."""
        was = row if before is None else before
        changed = set(row.isr) ^ set(() if before is None else was.isr) | set(row.replicas) ^ set(was.replicas)
        return row.leader in self.brokers or not self.brokers.isdisjoint(changed)

    def _is_alert_about(self, row: AlertRow) -> bool:
        partitions = {str(tp) for tp in self.partitions}
        topics = {row.topic, *(example.rpartition("-")[0] for example in row.examples)}
        return (
            (self.controller and row.group == CONTROLLER_GROUP)
            or not self.brokers.isdisjoint((*row.brokers, row.broker))
            or not partitions.isdisjoint((*row.examples, f"{row.topic}-{row.partition}"))
            or not self.topics.isdisjoint(topics)
        )


class TimelineRows:
    """Choice of the rows that timelines use, which are transitions, metadata and alerts.

    Transitions of replicas are the most frequent rows, so only the first of each event is taken, because only its cause
    is shown. While KRaft leads, each heartbeat has a row of the migration, but only a phase's first row counts.
    """

    def __init__(self) -> None:
        self._event = ("", "")

    def __call__(self, row: Row) -> bool:
        """Return whether timelines use the row."""
        if isinstance(row, MigrationRow):
            return row.time_ms - row.since_ms < _HEARTBEAT_MS
        if isinstance(row, Transition):
            before, self._event = self._event, (row.effect.rpartition("-")[0], row.cause)
            return row.subject != "replica" or before != self._event
        if isinstance(row, AlertRow):
            return row.severity is not Severity.INFO
        return isinstance(row, (PartitionRow, BrokerRow, ControllerRow))


_RESOLVED: Final = "resolved"
_SUBJECTS_OF_BROKERS: Final = ("broker", "controller")
_STATES: Final = {"open": "opened", "unknown": "cannot be seen any more", _RESOLVED: "resolved"}


class Change(msgspec.Struct, frozen=True, kw_only=True):
    """Change by an event: of one subject, or an equal change of several partitions."""

    subject: str  # broker 3 | controller 3 | topic orders | orders-7 | 12 partitions
    says: str
    certainty: Certainty
    time_ms: int  # of the first change
    last_ms: int  # of the last change
    zxid: Zxid
    partitions: tuple[str, ...] = ()

    def took(self, began_ms: int) -> str:
        """Return the delay after its event in words, or an empty text."""
        first, last = ((ms - began_ms) / 1000 for ms in (self.time_ms, self.last_ms))
        if not last:
            return ""
        if not first:
            return f", within {last:.3f} s"
        return f", {first:.3f} s later" if first == last else f", {first:.3f} to {last:.3f} s later"


class EntryKind(Enum):
    """Kind of an event, by which a list of events can be narrowed."""

    ALERT = "alerts"
    BROKER = "brokers and controllers"
    PARTITION = "topics and partitions"


class Entry(msgspec.Struct, frozen=True, kw_only=True):
    """Event of the controller, a leader's change of its ISR, or the beginning or end of an alert."""

    time_ms: int
    kind: EntryKind = EntryKind.PARTITION
    zxid: Zxid  # -1: of no change in ZooKeeper
    says: str
    controller_epoch: ControllerEpoch | None = None  # of the controller that handles it
    certainty: Certainty = Certainty.SEEN
    rule: str = ""  # the rule of inference behind the event, empty if it was seen
    inferred_from: str = ""  # the write that shows it
    severity: Severity | None = None  # of an alert
    changes: tuple[Change, ...] = ()

    @property
    def size(self) -> int:
        """Return the number of the event's changes."""
        return len(self.changes)


def events_of(story: Sequence[Row], selection: Selection, window: HistorySpan) -> tuple[Entry, ...]:
    """Return the events of these rows in the window, each with its changes that are about the selection."""
    events: list[_Event] = []
    by_key: dict[Hashable, _Event] = {}
    followed: set[str] = set()  # alerts with a beginning here, because their end no longer names partitions
    newest_zxid = UNKNOWN_ZXID
    for happening in _news(story):
        row = happening.row
        newest_zxid = max(newest_zxid, row.zxid)
        key = _key_of(happening)
        event = by_key.get(key)
        by = None if happening.change is None else happening.change.by
        # A leader changes ISRs one by one. They are one event only without other events between them.
        if event is None or (isinstance(row, PartitionRow) and by is None and event is not events[-1]):
            event = by_key[key] = _Event(by or row)
            events.append(event)
        is_end = isinstance(row, AlertRow) and row.id in followed
        if (is_end or selection.is_about(row, happening.before)) and window.has(newest_zxid, row.time_ms):
            event.take(happening)
            if isinstance(row, AlertRow):
                (followed.discard if row.state == _RESOLVED else followed.add)(row.id)
    wanted = [event for event in events if event.is_wanted]
    return tuple(event.finished() for event in sorted(wanted, key=lambda event: event.position))


def _news(story: Sequence[Row]) -> Iterator[Happening]:
    """Yield the rows that report an event."""
    alerts: dict[str, AlertRow] = {}
    phase: tuple[str, int] | None = None
    for happening in happenings(story):
        row = happening.row
        if isinstance(row, MigrationRow):
            if phase != (row.phase, row.since_ms):
                yield happening
            phase = (row.phase, row.since_ms)
        elif isinstance(row, AlertRow):
            before = alerts.get(row.id)
            if before is None or (before.state, before.severity) != (row.state, row.severity):
                yield happening
            alerts[row.id] = row
        elif happening.cause is not None:
            yield happening


def _key_of(happening: Happening) -> Hashable:
    """Return the common key of one event's rows."""
    row, change = happening.row, happening.change
    if change is not None:
        if change.by is None:
            return change.why, change.alike
        row = change.by
    if isinstance(row, Transition):
        return row.effect.rpartition("-")[0], row.cause
    if isinstance(row, MigrationRow):
        return row.phase, row.since_ms
    return (row.id, row.state, row.seq) if isinstance(row, AlertRow) else None


class _Event:
    """An event while its rows come."""

    def __init__(self, first: Row) -> None:
        self.is_wanted = False
        self._first = first
        self._changes: dict[Hashable, list[Happening]] = {}

    @property
    def position(self) -> tuple[int, int, int]:
        """Return the event's place in the order of the rows."""
        return self._first.generation, self._first.seq, self._first.ordinal

    def take(self, happening: Happening) -> None:
        """Add the row of another change."""
        if isinstance(self._first, PartitionRow) and not self.is_wanted:
            self._first = happening.row  # without a common cause, the event has the age of its visible part
        self.is_wanted = True
        if happening.cause is not None:
            self._changes.setdefault(_alike(happening), []).append(happening)

    def finished(self) -> Entry:
        """Return the event with all its changes."""
        row = self._first
        if isinstance(row, AlertRow):
            says, alert = _alert_said(row), EntryKind.ALERT
            return Entry(time_ms=row.time_ms, kind=alert, zxid=row.zxid, says=says, severity=row.severity)
        if isinstance(row, MigrationRow):
            return Entry(
                time_ms=row.since_ms,
                kind=EntryKind.BROKER,
                zxid=row.zxid,
                says=_phase_said(row),
                controller_epoch=row.controller_epoch,
            )
        changes = tuple(_change(alike) for alike in self._changes.values())
        if isinstance(row, Transition):
            return Entry(
                time_ms=row.time_ms,
                kind=EntryKind.BROKER if row.subject in _SUBJECTS_OF_BROKERS else EntryKind.PARTITION,
                zxid=row.zxid,
                says=row.cause,
                controller_epoch=row.controller_epoch,
                certainty=Certainty.INFERRED if row.inferred_by else Certainty.SEEN,
                rule=row.inferred_by,
                inferred_from=row.inferred_from,
                changes=changes,
            )
        change = next(iter(self._changes.values()))[0].change
        assert change is not None, "a partition's row with a step has a change"
        return Entry(time_ms=row.time_ms, zxid=row.zxid, says=change.why, changes=changes)


def _phase_said(row: MigrationRow) -> str:
    led = f"KRaft controller {row.leader} leads, KRaft epoch {row.kraft_epoch}"
    who = led if row.leader != NO_BROKER else "brokers elect the controller"
    return f"the way to KRaft, phase {row.phase.replace('_', ' ')}: {who}"


def _alert_said(row: AlertRow) -> str:
    says = f"{row.alert} of {row.subject} {_STATES.get(row.state, row.state)}"
    if row.state == _RESOLVED:
        return says
    late_seconds = (row.time_ms - row.since_ms) / 1000  # brief conditions alert no one
    late = f", {late_seconds:.1f} s after it began" if late_seconds > 0 else ""
    return f"{says}{late}: {row.cause}"


def _alike(happening: Happening) -> Hashable:
    """Return the common part of the partitions' changes that share a line."""
    row, cause = happening.row, happening.cause
    if isinstance(row, Transition) and row.subject == "partition":
        assert cause is not None
        return row.from_state, row.to_state, row.leader, cause.certainty
    return cause if happening.change is None else happening.change.alike


def _change(alike: Sequence[Happening]) -> Change:
    first, last = alike[0], alike[-1]
    row, cause = first.row, first.cause
    assert cause is not None
    names = tuple(_partitions(happening.row for happening in alike))
    subject = counted(len(names), "partition") if len(names) > 1 else "".join(names)
    if isinstance(row, Transition) and not names:
        subject = f"{row.subject} {row.topic if row.subject == 'topic' else row.broker}"
    return Change(
        subject=subject,
        says=_said(first, cause, is_one=len(alike) == 1),
        certainty=cause.certainty,
        time_ms=row.time_ms,
        last_ms=last.row.time_ms,
        zxid=row.zxid,
        partitions=names,
    )


def _partitions(rows: Iterable[Row]) -> Iterator[str]:
    for row in rows:
        if isinstance(row, PartitionRow) or (isinstance(row, Transition) and row.subject == "partition"):
            yield f"{row.topic}-{row.partition}"


def _said(happening: Happening, cause: Cause, *, is_one: bool) -> str:
    """Return the change in words, for several partitions their common part."""
    row = happening.row
    if happening.change is not None:
        return cause.says if is_one else happening.change.alike
    assert isinstance(row, Transition)
    moves = row.to_state if row.from_state == row.to_state else f"{row.from_state} -> {row.to_state}"
    if row.subject != "partition":
        return moves
    if is_one:
        return cause.says
    led = {None: "", NO_LEADER: ", leader none"}.get(row.leader, f", leader {row.leader}")
    return f"{moves}{led}"
