"""Events of a history in order with their changes, in Kafka's words. Inferred events are marked."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator, Sequence
from typing import Final

import msgspec

from controller.contract.alert_row import AlertRow, Severity
from controller.contract.effect_rows import Transition
from controller.contract.ids import NO_BROKER, NO_LEADER, UNKNOWN_ZXID, ControllerEpoch, Zxid
from controller.contract.metadata_rows import MigrationRow, PartitionRow
from controller.contract.row import Row
from questions.explain.causes import Happening, happenings
from questions.explain.explanation import Cause, Certainty
from questions.timeline.selection import HistorySpan, Selection
from wording.sentences import counted

_RESOLVED: Final = "resolved"
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


class Event(msgspec.Struct, frozen=True, kw_only=True):
    """Event of the controller, a leader's change of its ISR, or the beginning or end of an alert."""

    time_ms: int
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


def events_of(story: Sequence[Row], selection: Selection, window: HistorySpan) -> tuple[Event, ...]:
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
            if _is_other(alerts.get(row.id), row):
                yield happening
            alerts[row.id] = row
        elif happening.cause is not None:
            yield happening


def _is_other(before: AlertRow | None, row: AlertRow) -> bool:
    """Return whether the alert begins, ends or changes its severity. Other changes are no events."""
    return before is None or (before.state, before.severity) != (row.state, row.severity)


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

    def finished(self) -> Event:
        """Return the event with all its changes."""
        row = self._first
        if isinstance(row, AlertRow):
            return Event(time_ms=row.time_ms, zxid=row.zxid, says=_alert_said(row), severity=row.severity)
        if isinstance(row, MigrationRow):
            return Event(
                time_ms=row.since_ms, zxid=row.zxid, says=_phase_said(row), controller_epoch=row.controller_epoch
            )
        changes = tuple(_change(alike) for alike in self._changes.values())
        if isinstance(row, Transition):
            return Event(
                time_ms=row.time_ms,
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
        return Event(time_ms=row.time_ms, zxid=row.zxid, says=change.why, changes=changes)


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
    return Change(
        subject=_subject(row) if len(names) <= 1 else counted(len(names), "partition"),
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


def _subject(row: Row) -> str:
    if isinstance(row, PartitionRow) or (isinstance(row, Transition) and row.subject == "partition"):
        return f"{row.topic}-{row.partition}"
    assert isinstance(row, Transition)
    return f"{row.subject} {row.topic if row.subject == 'topic' else row.broker}"


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
