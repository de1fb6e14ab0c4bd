"""The events of a step in progress: how they begin, what waits for them, and how that is withdrawn.

Here belong the few ways in which an event waits for steps, so that what is due is always counted. When a step of it is
certain, and what then comes of it, is `turn`'s business; that of requests is in `sending`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import msgspec

from controller.contract.outputs import FINAL, WITHDRAWN, EffectStamp, Status, Transition
from controller.contract.records import Record
from controller.derived import reaction_times
from controller.derived.rows import state_change_row
from controller.model.context import Context
from controller.model.event import Event, EventKind
from controller.model.leadership import AnyAction, LeaderAndIsr, RemoveFromIsr, StateChange, Write
from controller.model.mutable_state import MutableState
from controller.model.topics import Partition, TopicPartition
from controller.rules.states import PartitionState, ReplicaState

replace = msgspec.structs.replace

# Within this a controller that lives has begun to act.
_ACTING_MS = 1_000


class PendingEvents(MutableState):
    """A step's private copy of the context with the events in it."""

    __slots__ = ("_advanced", "_fresh", "_open", "_ordinal", "event")

    def __init__(self, context: Context, record: Record) -> None:
        super().__init__(context, record)
        self.event: Event | None = None
        self._ordinal = 0
        self._open: dict[int, Event] = {}
        self._fresh: set[int] = set()
        self._advanced: set[int] = set()

    def begin(self, kind: EventKind, cause: str) -> Event:
        """Start an event of the controller; the steps that follow belong to it."""
        self.event = self._next_event(kind, cause)
        self._open[self.event.id] = self.event
        self._fresh.add(self.event.id)
        self._ordinal = 0
        return self.event

    def _next_event(self, kind: EventKind, cause: str) -> Event:
        header, record = self.header, self.record
        event = Event(header.next_event, kind, cause, record.zxid, header.time_ms, header.controller_epoch)
        if header.controller_epoch == header.term.epoch:  # else it is one of a deposed controller
            event.controller = header.term.broker
        header.next_event += 1
        return event

    @property
    def is_idle(self) -> bool:
        """Whether nothing of any event is uncertain, and none has begun in this step."""
        return not (self._open or self.header.events)

    @contextmanager
    def another_event(self, kind: EventKind, cause: str) -> Iterator[Event]:
        """An event that must have been handled before what is being handled, and is as certain as that."""
        handled, ordinal = self.event, self._ordinal
        earlier = self.begin(kind, cause)
        earlier.begun = handled is not None and handled.begun
        yield earlier
        self.event, self._ordinal = handled, ordinal

    def begin_batch(self) -> None:
        """Start the next pass of a state machine in the current event."""
        assert self.event is not None, "a pass outside of an event"
        self.event.due.append(0)

    def place(self) -> tuple[int, int, int]:
        """Where the next step stands: its event, the pass in it, and its place in the event."""
        assert self.event is not None, "a step outside of an event"
        assert self.event.due, "a step outside of a pass"
        self._ordinal += 1
        return self.event.id, len(self.event.due) - 1, self._ordinal - 1

    def queue(self, tp: TopicPartition, partition: Partition, *steps: AnyAction) -> Partition:
        """Let the partition (which may have changed otherwise too) wait for these steps of the current event."""
        assert self.event is not None, "a step outside of an event"
        self.event.pending += len(steps)
        self.event.topics[tp.topic] = None
        for step in steps:
            if isinstance(step, Write):
                self.event.due[step.at_batch] += 1
        waiting = replace(partition, queue=(*partition.queue, *steps))
        self.put_partition(tp, waiting)
        return waiting

    def open_event(self, event_id: int) -> Event:
        """The event, to be changed in this step."""
        event = self._open.get(event_id)
        if event is None:
            stored = self.header.events[event_id]
            event = self._open[event_id] = replace(stored, due=list(stored.due))
        return event

    def last_event(self) -> Event | None:
        """The newest event of which something is not certain yet."""
        open_ids = {**self.header.events, **self._open}
        newest = max((key for key, event in open_ids.items() if event.pending), default=None)
        return None if newest is None else self.open_event(newest)

    def await_proof(self, event: Event) -> None:
        """Nothing may show that the event was handled, and the controller may be dead without anybody knowing it yet.

        It is certain once the controller's session wrote something later, or has outlived it. Only ZooKeeper's log
        tells whose session wrote or ended; where no controller was ever heard of, that is not what is being read.
        """
        if self.record.author or self.header.term.heard_ms:
            silent_ms = self.header.settings.zookeeper_session_timeout_ms + _ACTING_MS
            event.proven_ms = self.header.time_ms + silent_ms

    def undo_in(self, tp: TopicPartition, event_id: int) -> None:
        """Take back what an event that has not begun would have done to a partition."""
        self.take_back(tp, lambda step: step.event == event_id)

    def take_back(self, tp: TopicPartition, such: Callable[[AnyAction], bool]) -> None:
        """The partition does not wait for steps that are such any more: the last is taken back first."""
        partition = self.partition(tp)
        if partition is None or not any(map(such, partition.queue)):
            return
        for step in reversed(partition.queue):
            if such(step):
                self.withdraw(tp, step)
                if isinstance(step, StateChange):
                    partition = before_move(partition, step)
        kept = tuple(step for step in partition.queue if not such(step))
        self.put_partition(tp, replace(partition, queue=kept))

    def removal_of(self, move: StateChange) -> RemoveFromIsr:
        """The write that a replica's move to Offline turns out to need, due from now on."""
        assert move.replica is not None, "a partition leaves no ISR"
        event = self.open_event(move.event)
        event.due[move.at_batch] += 1
        event.pending += 1
        return RemoveFromIsr(move.event, move.at_batch, move.ordinal, move.replica)

    def settle(self, write: Write, *, seen: bool) -> None:
        """A write is no longer due: it was seen, or it turned out that there is nothing to write."""
        event = self.open_event(write.event)
        event.due[write.at_batch] -= 1
        event.pending -= 1
        if seen:
            self.show_begun(event)
            if event.id not in self._fresh:
                reaction_times.wrote(self.header, event, self.header.time_ms)
        if event.first_write_ms and not event.writes_due:
            reaction_times.done(self.header, event)
        self._advanced.add(event.id)

    def show_begun(self, event: Event) -> None:
        """Something that the event writes was seen: it has begun, and what it does before its first state is done."""
        event.begun = True
        self.header.last_written_event = max(event.id, self.header.last_written_event)
        self._advanced.add(event.id)

    def withdraw(self, tp: TopicPartition, step: AnyAction) -> None:
        """A step will not be done."""
        event = self.open_event(step.event)
        event.pending -= 1
        if isinstance(step, Write):
            event.due[step.at_batch] -= 1
            self._advanced.add(event.id)
        elif isinstance(step, StateChange) and step.event not in self._fresh:
            self._publish_move(tp, step, WITHDRAWN, step.value)

    def moved(self, subject: str, from_state: str, to_state: str, **details: Any) -> None:  # noqa: ANN401 (row fields)
        """Publish a transition that is certain at once."""
        self._publish(Transition, FINAL, subject=subject, from_state=from_state, to_state=to_state, **details)

    def _publish(self, row: Any, status: Status, **fields: Any) -> None:  # noqa: ANN401
        assert self.event is not None, "an effect outside of an event"
        self._ordinal += 1
        self.effects.append(row(*self._effect(self.event, self._ordinal - 1, status), **fields))

    def _effect(self, event: Event, ordinal: int, status: Status) -> EffectStamp:
        effect = f"{event.epoch}-{event.id}-{ordinal}"
        return *self.stamp(), effect, status, event.sentence, event.epoch

    def _publish_move(self, tp: TopicPartition, move: StateChange, status: Status, value: LeaderAndIsr | None) -> None:
        effect = self._effect(self.open_event(move.event), move.ordinal, status)
        self.effects.append(state_change_row(tp, move, value, effect))

    def open_events(self) -> list[Event]:
        """The events of which something is not certain yet, by age."""
        known = {**self.header.events, **self._open}
        return [event for _, event in sorted(known.items()) if event.pending]


def before_move(partition: Partition, move: StateChange) -> Partition:
    """The partition as it was before the move."""
    if move.replica is None:
        return replace(partition, state=PartitionState(move.from_state))
    return partition.with_replica_state(move.replica, ReplicaState(move.from_state))
