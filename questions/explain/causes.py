"""Steps that led to a state, from the rows of a history or, without one, from the znodes' own times.

Changes of a partition's ISR and replicas have no transition. Each comes with the event that made it.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator, Sequence
from typing import Final, NamedTuple

from controller.contract.effect_rows import FINAL, WITHDRAWN, Transition
from controller.contract.ids import NO_LEADER, BrokerId, PartitionId
from controller.contract.metadata_rows import PartitionRow
from controller.contract.row import NOT_KNOWN_MS, Row
from questions.explain.explanation import Cause, Certainty
from questions.picture import Picture
from wording.facts import replicas_in_words
from wording.sentences import in_order, listed


class RowChange(NamedTuple):
    """A change between two rows of a partition."""

    alike: str  # the part that several partitions can share: broker 2 left the ISR
    says: str  # the rest, which names the replicas in sync and the others
    why: str  # the event in Kafka's words
    by: Transition | None = None  # a transition of the event, if the controller made the change
    is_due: bool = False  # the controller has not written it


class PartitionChanges:
    """The changes in a story, whose rows are given in order."""

    def __init__(self, story: Sequence[Row]) -> None:
        self._newest = {(row.topic, row.partition): row for row in story if isinstance(row, PartitionRow)}
        # Transitions have their own entries, even if they become final only after the row of the partition.
        self._shown = {_written(row) for row in story if isinstance(row, Transition) and row.status is not WITHDRAWN}
        self._events: dict[int, Transition] = {}
        self._begun: Transition | None = None  # first transition of the newest event

    def note(self, row: Transition) -> None:
        """Note a transition, because later rows name its event only by number."""
        number = int(row.effect.split("-")[1])
        if number not in self._events or self._events[number].cause != row.cause:
            self._events[number] = self._begun = row

    def between(self, before: PartitionRow, now: PartitionRow) -> Iterator[RowChange]:
        """Yield the changes between two rows of a partition."""
        if before.removed or now.removed or before.leader_epoch < 0 or now.leader_epoch < 0:
            return
        if (before.replicas, before.removing_replicas) != (now.replicas, now.removing_replicas):
            yield from self._of_replicas(before, now)
        if before.isr != now.isr and _written(now) not in self._shown:
            yield self._of_isr(before, now)

    def _of_isr(self, before: PartitionRow, now: PartitionRow) -> RowChange:
        alike = _joined_and_left(before.isr, now.isr)
        says = replicas_in_words(now.isr, now.replicas)
        if before.leader_epoch == now.leader_epoch and now.leader != NO_LEADER:  # only the leader writes in an epoch
            return RowChange(alike, says, f"leader {now.leader} changed its ISR")
        writer = f"the controller of epoch {now.controller_epoch}"
        event = self._event(_due(before), _due(now), now)
        why = f"{writer} changed ISRs" if event is None else event.cause
        return RowChange(alike, f"{says}, written by {writer}", why, event)

    def _of_replicas(self, before: PartitionRow, now: PartitionRow) -> Iterator[RowChange]:
        origin, aim, was_aim = _without_added(before), _without_removed(now), _without_removed(before)
        was_moving, moves = _is_moving(before), _is_moving(now)
        if moves and aim == was_aim and was_moving:
            return  # after a failover, the new controller counts the added replicas again
        from_to = f"replicas from {in_order(was_aim if was_moving else origin)} to {in_order(aim)}"
        if moves:
            alike = "a reassignment was replaced" if was_moving else "a reassignment began"
            from_to += f", once {listed(now.adding_replicas, 'is')} in sync" if now.adding_replicas else ""
        elif was_moving and aim == was_aim:
            alike, from_to = "a reassignment was completed", f"replicas from {in_order(origin)} to {in_order(aim)}"
        else:
            alike = "a reassignment was cancelled" if was_moving and aim == origin else "a reassignment began and ended"
        event = self._event(_due(now), _due(before), now)
        why = "the controller took a reassignment up" if event is None else event.cause
        newest = self._newest[now.topic, now.partition].details
        due = () if newest is None else newest.assignments_due
        is_due = not moves and any(each.replicas == aim for each in due)
        yield RowChange(alike, from_to, why, event, is_due=is_due)

    def _event(self, due: Sequence[int], other: Sequence[int], now: PartitionRow) -> Transition | None:
        """Return a transition of the event that only `due` has, not `other`, or else of one that began with `now`."""
        numbers = [number for number in due if number not in other] or due
        if numbers:
            return next((self._events[number] for number in numbers if number in self._events), None)
        begun = self._begun
        is_together = begun is not None and (begun.generation, begun.seq) == (now.generation, now.seq)
        return begun if is_together else None


def _joined_and_left(before: Sequence[BrokerId], now: Sequence[BrokerId]) -> str:
    """Return the difference between two ISRs in words."""
    words = [f"broker {broker} joined the ISR" for broker in sorted(set(now) - set(before))]
    words += [f"broker {broker} left the ISR" for broker in sorted(set(before) - set(now))]
    return ", ".join(words) or "the ISR's order changed"


def _written(row: Transition | PartitionRow) -> Hashable:
    return row.topic, row.partition, row.leader, row.leader_epoch, row.isr


def _due(row: PartitionRow) -> tuple[int, ...]:
    return row.details.due_events if row.details is not None else ()


def _is_moving(row: PartitionRow) -> bool:
    return bool(row.adding_replicas or row.removing_replicas)


def _without_added(row: PartitionRow) -> tuple[BrokerId, ...]:
    return tuple(broker for broker in row.replicas if broker not in row.adding_replicas)


def _without_removed(row: PartitionRow) -> tuple[BrokerId, ...]:
    return tuple(broker for broker in row.replicas if broker not in row.removing_replicas)


_NAMED: Final = 20
_BEFORE_IT: Final = 3  # kept steps before the trouble began


class Happening(NamedTuple):
    """Row of the past with its step, if any, and its partition's row before it."""

    row: Row
    cause: Cause | None
    before: PartitionRow | None = None
    change: RowChange | None = None  # of a step that is a partition's row


def happenings(rows: Sequence[Row]) -> Iterator[Happening]:
    """Yield each row with its steps, a transition that moved a state or a change of a partition's ISR or replicas.

    A transition of a replica is no step, because it only names the event behind a change of an ISR or of replicas.
    """
    final = {row.effect for row in rows if isinstance(row, Transition) and row.status is FINAL}
    withdrawn = {row.effect for row in rows if isinstance(row, Transition) and row.status is WITHDRAWN}
    known: dict[tuple[str, PartitionId], PartitionRow] = {}
    changes = PartitionChanges(rows)
    for row in rows:
        if isinstance(row, Transition):
            changes.note(row)
            is_repeated = row.status is not FINAL and row.effect in final
            moves = (row.from_state != row.to_state or row.leader is not None) and row.subject != "replica"
            stands = moves and not is_repeated and row.effect not in withdrawn
            before = None if row.topic is None or row.partition is None else known.get((row.topic, row.partition))
            yield Happening(row, _step(row) if stands else None, before)
        elif isinstance(row, PartitionRow):
            before = known.get((row.topic, row.partition))
            found = () if before is None else tuple(changes.between(before, row))
            yield from (Happening(row, _changed(row, each), before, each) for each in found)
            if not found:
                yield Happening(row, None, before)
            known[row.topic, row.partition] = row
        else:
            yield Happening(row, None)


def causes_of(rows: Sequence[Row] | None, brokers: Iterable[BrokerId] | None = None) -> tuple[Cause, ...] | None:
    """Return the steps in these rows, oldest first, from shortly before the present trouble.

    `brokers` limits the brokers' steps. Without rows the steps are unknown, and the result is None.
    """
    if rows is None:
        return None
    wanted = None if brokers is None else set(brokers)
    steps: list[Cause] = []
    began = 0
    for row, cause, *_ in happenings(rows):
        is_other = (
            wanted is not None and isinstance(row, Transition) and row.subject == "broker" and row.broker not in wanted
        )
        if cause is not None and not is_other:
            steps.append(cause)
        if isinstance(row, PartitionRow) and row.problem is None:
            began = len(steps)
    kept = steps[max(0, began - _BEFORE_IT) :]
    return tuple(kept[-_NAMED:])


def _step(row: Transition) -> Cause:
    who = f"broker {row.broker}: " if row.subject in ("broker", "controller") and row.broker is not None else ""
    leader = "none" if row.leader == NO_LEADER else row.leader
    written = f", leader {leader} (epoch {row.leader_epoch}), {replicas_in_words(row.isr or ())}"
    moves = f"{row.from_state} -> {row.to_state}" if row.from_state != row.to_state else row.to_state
    says = f"{who}{moves}" if row.leader is None else f"{who}{moves}{written}"
    return Cause(row.time_ms, row.zxid, says, row.cause, _certainty(row), row.inferred_by)


def _certainty(row: Transition) -> Certainty:
    if row.inferred_by:
        return Certainty.INFERRED
    return Certainty.SEEN if row.status is FINAL else Certainty.EXPECTED


def _changed(row: PartitionRow, change: RowChange) -> Cause:
    rule = "" if change.by is None else change.by.inferred_by
    certainty = Certainty.INFERRED if rule else Certainty.EXPECTED if change.is_due else Certainty.SEEN
    return Cause(row.time_ms, row.zxid, f"{change.alike} ({change.says})", change.why, certainty, rule)


def last_writes(picture: Picture, paths: Iterable[tuple[str, str]]) -> tuple[Cause, ...]:
    """Return the last write of each of these znodes, the only trace of an unwatched past."""
    return tuple(sorted(_last_writes(picture, paths), key=lambda cause: (cause.time_ms, cause.zxid)))


def _last_writes(picture: Picture, paths: Iterable[tuple[str, str]]) -> Iterator[Cause]:
    for path, meaning in paths:
        record = (picture.records or {}).get(path)
        time_ms = picture.written_ms.get(path, NOT_KNOWN_MS)
        if record is not None and time_ms != NOT_KNOWN_MS:
            yield Cause(time_ms, record.mzxid, meaning, f"last write of {path}", Certainty.SEEN)
