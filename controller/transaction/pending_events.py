"""In-flight events of a transaction, with their beginning, their planned actions for partitions, and their withdrawal.

All planned actions are queued and taken out by the methods here, so that due writes are always counted. `certainty`
decides when an action is certain and publishes it. `pending_requests` has the events' requests.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from copy import copy
from functools import partial
from itertools import repeat
from typing import Any

import msgspec

from controller.contract.effect_rows import FINAL, WITHDRAWN, EffectStamp, Request, Status, Transition
from controller.contract.ids import BrokerId, TopicPartition
from controller.contract.leader_and_isr import LeaderAndIsr
from controller.model.event import Event, EventKind
from controller.model.leadership import AnyAction, RemoveFromIsr, StateChange, Write
from controller.model.mutable_state import MutableState
from controller.model.published_rows import PublishedRows
from controller.model.topics import Partition
from controller.rules import timing
from controller.rules.states import PARTITION_VALID_PREVIOUS, PartitionState, ReplicaState
from controller.transaction import reaction_times
from controller.view.rows import state_change_row

replace = msgspec.structs.replace


class PendingEvents:
    """Events of a transaction's state, with the planned actions in its partitions."""

    __slots__ = ("_evidence", "_header", "_ordinal", "_rows", "_rule", "_state", "advanced", "event", "fresh", "open")

    def __init__(self, state: MutableState, rows: PublishedRows) -> None:
        self._state = state
        self._header = state.header
        self._rows = rows
        self._rule = self._evidence = ""  # the inference of events that begin now
        self._ordinal = 0
        self.event: Event | None = None  # the event of the next planned action
        self.open: dict[int, Event] = {}  # copies that this transaction may change
        self.fresh: set[int] = set()  # events that this record began
        self.advanced: set[int] = set()  # events of which this record settled or withdrew a due write

    def next_record(self) -> None:
        """Forget the events of the previous record, which are stored by now."""
        if self.open or self.event is not None:
            self.event, self.open, self.fresh, self.advanced = None, {}, set(), set()

    def fork(self, state: MutableState, rows: PublishedRows) -> PendingEvents:
        """Return a copy for a fork of the state and the rows."""
        forked = copy(self)
        forked._state, forked._header, forked._rows = state, state.header, rows
        forked.open = {key: replace(e, due=list(e.due), topics=dict(e.topics)) for key, e in self.open.items()}
        forked.fresh, forked.advanced = set(self.fresh), set(self.advanced)
        return forked

    def adopt(self, fork: PendingEvents) -> None:
        """Take over the events of a fork."""
        self._rule, self._evidence, self._ordinal = fork._rule, fork._evidence, fork._ordinal
        self.event, self.open, self.fresh, self.advanced = fork.event, fork.open, fork.fresh, fork.advanced

    def begin(self, kind: EventKind, cause: str) -> Event:
        """Start an event of the controller, to which the next queued actions belong."""
        self.event = self.next_event(kind, cause)
        self.open[self.event.id] = self.event
        self.fresh.add(self.event.id)
        self._ordinal = 0
        return self.event

    def begin_again(self, event: Event) -> Event:
        """Start an event again that was taken back, with the inference that it rests on."""
        with self.inferring(event.inferred_by, event.inferred_from):
            return self.begin(event.kind, event.cause)

    def next_event(self, kind: EventKind, cause: str) -> Event:
        """Return the controller's next event, without an action."""
        header, record = self._header, self._state.record
        event = Event(header.next_event, kind, cause, record.zxid, header.time_ms, header.controller_epoch)
        if header.controller_epoch == header.term.epoch:  # else the event is a deposed controller's
            event.controller = header.term.broker
        if self._rule:
            event.inferred_by, event.inferred_from = self._rule, self._evidence
            self._state.count(self._state.happened.inferred_events, self._rule)
        header.next_event += 1
        return event

    @contextmanager
    def inferring(self, rule: str, evidence: str = "") -> Iterator[None]:
        """Attribute events that begin in the body to a rule of inference and its evidence, by default this record."""
        outer = self._rule, self._evidence
        self._rule, self._evidence = rule, evidence or f"{self._state.record.path} at {self._state.record.zxid:#x}"
        yield
        self._rule, self._evidence = outer

    @property
    def is_idle(self) -> bool:
        """Return whether no event is in flight, and this transaction has begun no event."""
        return not (self.open or self._header.events)

    @contextmanager
    def another_event(self, kind: EventKind, cause: str) -> Iterator[Event]:
        """Insert an event that must have been handled before the current event, and is equally certain."""
        handled, ordinal = self.event, self._ordinal
        earlier = self.begin(kind, cause)
        earlier.begun = handled is not None and handled.begun
        yield earlier
        self.event, self._ordinal = handled, ordinal

    def begin_batch(self) -> None:
        """Start the next batch of a state machine in the current event."""
        assert self.event is not None, "a batch outside of an event"
        self.event.due.append(0)

    def place(self) -> tuple[int, int, int]:
        """Return the next action's place, which is its event, the batch in the event, and its ordinal in the event."""
        assert self.event is not None, "an action outside of an event"
        assert self.event.due, "an action outside of a batch"
        self._ordinal += 1
        return self.event.id, len(self.event.due) - 1, self._ordinal - 1

    def places(self, count: int) -> Iterator[tuple[int, int, int]]:
        """Return the places of this many next actions. Later batches may begin before the caller takes these places."""
        assert self.event is not None, "an action outside of an event"
        first = self._ordinal
        self._ordinal += count
        return zip(repeat(self.event.id), repeat(len(self.event.due) - 1), range(first, self._ordinal))

    def affect(self, topics: Iterable[str]) -> None:
        """Let the current event affect these topics in this order, whatever the order of its queued actions."""
        assert self.event is not None, "topics outside of an event"
        assert self.event.id in self.fresh, "topics of an earlier record's event, which the contexts before share"
        self.event.topics.update(dict.fromkeys(topics))

    def queue(self, tp: TopicPartition, partition: Partition, *actions: AnyAction) -> Partition:
        """Queue these actions of the current event, and store the partition, which may have other changes too."""
        assert self.event is not None, "an action outside of an event"
        for action in actions:
            if action.writes:
                self.event.due[action.at_batch] += 1
        return self.queue_unwritten(tp, partition, actions)

    def queue_unwritten(self, tp: TopicPartition, partition: Partition, actions: Sequence[AnyAction]) -> Partition:
        """Queue actions that are no writes, without the search for writes. A takeover has four for each partition."""
        event = self.event
        assert event is not None, "an action outside of an event"
        event.pending += len(actions)
        if tp.topic not in event.topics:
            self.affect((tp.topic,))
        waiting = replace(partition, queue=(*partition.queue, *actions))
        self._state.put_partition(tp, waiting)
        return waiting

    def open_event(self, event_id: int) -> Event:
        """Return the event as a copy that this transaction may change."""
        event = self.open.get(event_id)
        if event is None:
            event = self.open[event_id] = self._header.events[event_id].opened()
        return event

    def last_event(self) -> Event | None:
        """Return the newest in-flight event that changes states, as a copy that this transaction may change.

        A read of notified states only sends UpdateMetadata, so it neither separates nor hides the events before it.
        """
        in_flight = {**self._header.events, **self.open}.items()
        changing = [
            key for key, event in in_flight if event.pending and event.kind != EventKind.ISR_CHANGE_NOTIFICATION
        ]
        newest = max(changing, default=None)
        return None if newest is None else self.open_event(newest)

    def await_proof(self, event: Event) -> None:
        """Hold the event back until the controller proves to be active. It may have failed before it handled the event.

        The event is certain once the controller's session wrote something later, or has outlasted its timeout. Only
        ZooKeeper's transaction log names the session of a write. If no record named one yet, the log is not read.
        """
        if self._state.record.author or self._header.term.heard_ms:
            silent_ms = self._header.settings.zookeeper_session_timeout_ms + timing.ACTING.ms
            event.proven_ms = self._header.time_ms + silent_ms

    def undo_in(self, tp: TopicPartition, event_id: int) -> None:
        """Take back the actions of an event that has not begun from a partition."""
        self.take_back(tp, lambda action: action.event == event_id)

    def take_back(self, tp: TopicPartition, predicate: Callable[[AnyAction], bool]) -> None:
        """Take actions with the predicate out of the partition's queue, the last first.

        A later state change then begins in the state that is left. If the change is not legal from there, it is taken
        back too.
        """
        partition = self._state.partition(tp)
        if partition is None or not any(map(predicate, partition.queue)):
            return
        kept, taken, states = list[AnyAction](), list[AnyAction](), dict[BrokerId | None, int]()
        for action in partition.queue:
            if isinstance(action, StateChange) and action.replica in states and not predicate(action):
                state = states[action.replica]
                if not self._may_enter(partition, action, state):
                    taken.append(action)
                    continue
                action = replace(action, from_state=states.pop(action.replica))
            elif predicate(action):
                taken.append(action)
                if isinstance(action, StateChange):
                    states.setdefault(action.replica, action.from_state)
                continue
            kept.append(action)
        for action in reversed(taken):
            self.withdraw(tp, action)
        for replica, state in states.items():
            # A replica that the topic's znode no longer names has left, whatever moved it.
            has_left = replica is not None and not (replica in partition.replicas or partition.pending_assignments)
            partition = _in_state(partition, replica, ReplicaState.NON_EXISTENT if has_left else state)
        self._state.put_partition(tp, replace(partition, queue=tuple(kept)))

    def _may_enter(self, partition: Partition, change: StateChange, state: int) -> bool:
        if change.replica is not None:
            return ReplicaState(state) in self._header.profile.replica_valid_previous(ReplicaState(change.to_state))
        target = PartitionState(change.to_state)
        if target is PartitionState.OFFLINE and partition.zk_state is None:
            return False  # without a first state the partition has no leader to lose
        return PartitionState(state) in PARTITION_VALID_PREVIOUS[target]

    def removal_of(self, change: StateChange) -> RemoveFromIsr:
        """Return the write that a replica's change to OfflineReplica turns out to need, due from now on."""
        assert change.replica is not None, "a partition leaves no ISR"
        event = self.open_event(change.event)
        event.due[change.at_batch] += 1
        event.pending += 1
        return RemoveFromIsr(change.event, change.at_batch, change.ordinal, change.replica)

    def settle(self, write: Write, *, seen: bool) -> None:
        """Count a write as no longer due, because it was seen or has no effect."""
        event = self.open_event(write.event)
        event.due[write.at_batch] -= 1
        event.pending -= 1
        if seen:
            self.mark_begun(event.id)
            event.last_write_ms = self._header.time_ms
            if event.id not in self.fresh:
                self._measure_load(event)
                reaction_times.wrote(self._header, event, self._header.time_ms)
        if event.first_write_ms and not event.writes_due:
            reaction_times.done(self._header, event)
        self.advanced.add(event.id)

    def _measure_load(self, event: Event) -> None:
        """Keep the time from a new controller's election to its failover's first write, if it is the longest so far."""
        if event.kind is EventKind.CONTROLLER_FAILOVER and not event.first_write_ms:
            self._header.former.note_load(self._header.time_ms - event.time_ms)

    def mark_begun(self, event_id: int) -> None:
        """Mark an event as begun, because one of its writes was seen. Actions before its first due write are done."""
        event = self.open_event(event_id)
        event.begun = True
        if event.epoch == self._header.term.epoch:
            self._header.term.note_act(self._header.time_ms)
        self._header.last_written_event = max(event_id, self._header.last_written_event)
        self.advanced.add(event_id)

    def withdraw(self, tp: TopicPartition, action: AnyAction) -> None:
        """Withdraw an action that will not be done."""
        event = self.open_event(action.event)
        event.pending -= 1
        if isinstance(action, Write):
            event.due[action.at_batch] -= 1
            self.advanced.add(event.id)
        elif isinstance(action, StateChange) and action.event not in self.fresh:
            self.publish_state_change(tp, action, WITHDRAWN, action.value)

    def publish_transition(self, subject: str, from_state: str, to_state: str, **details: Any) -> None:  # noqa: ANN401 (row fields)
        """Publish a transition that is certain at once."""
        self._publish(Transition, FINAL, subject=subject, from_state=from_state, to_state=to_state, **details)

    def _publish(self, row: Any, status: Status, **fields: Any) -> None:  # noqa: ANN401
        assert self.event is not None, "an effect outside of an event"
        self._ordinal += 1
        if self._rows.shown.steps:
            self.append_effect(self.event, row(*self.effect_stamp(self.event, self._ordinal - 1, status), **fields))

    def effect_stamp(self, event: Event, ordinal: int, status: Status) -> EffectStamp:
        """Return the fields that every row of the event has, in their order."""
        effect = f"{event.epoch}-{event.id}-{ordinal}"
        return *self._rows.stamp(), effect, status, event.sentence, event.epoch

    def publisher_of(
        self, event: Event, status: Status
    ) -> Callable[[TopicPartition, StateChange, LeaderAndIsr | None], None]:
        """Return a function that publishes state changes of the event, fast enough for thousands in this record."""
        if not self._rows.shown.steps:
            return _publish_nothing
        cluster, generation, seq, _, zxid, time_ms = self._rows.stamp()
        effects, first, prefix, sentence = (
            self._rows.effects,
            self._rows.first,
            f"{event.epoch}-{event.id}-",
            event.sentence,
        )
        epoch, append = event.epoch, partial(self.append_effect, event) if event.inferred_by else effects.append

        def publish(tp: TopicPartition, change: StateChange, value: LeaderAndIsr | None) -> None:
            at, effect = len(effects) - first, f"{prefix}{change.ordinal}"
            stamp = (cluster, generation, seq, at, zxid, time_ms, effect, status, sentence, epoch)
            append(state_change_row(tp, change, value, stamp))

        return publish

    def publish_state_change(
        self, tp: TopicPartition, change: StateChange, status: Status, value: LeaderAndIsr | None
    ) -> None:
        """Publish a state change of an event that has begun."""
        if self._rows.shown.steps:
            event = self.open_event(change.event)
            self.append_effect(
                event, state_change_row(tp, change, value, self.effect_stamp(event, change.ordinal, status))
            )

    def append_effect(self, event: Event, row: Transition | Request) -> None:
        """Publish a row of the event, with the inference that the event rests on."""
        if event.inferred_by:
            row = replace(row, inferred_by=event.inferred_by, inferred_from=event.inferred_from)
        self._rows.effects.append(row)

    def open_events(self) -> list[Event]:
        """Return the in-flight events for reading, the oldest first. `open_event` returns one that may be changed."""
        events = {**self._header.events, **self.open}
        return [event for _, event in sorted(events.items()) if event.pending]


def _publish_nothing(tp: TopicPartition, change: StateChange, value: LeaderAndIsr | None) -> None:
    """Publish no row of a state change, because it has no readers."""


def before_state_change(partition: Partition, change: StateChange) -> Partition:
    """Return the partition as it was before the state change."""
    return _in_state(partition, change.replica, change.from_state)


def _in_state(partition: Partition, replica: BrokerId | None, state: int) -> Partition:
    """Return the partition in this state, or with this replica in this state."""
    if replica is None:
        return replace(partition, state=PartitionState(state))
    return partition.with_replica_state(replica, ReplicaState(state))
