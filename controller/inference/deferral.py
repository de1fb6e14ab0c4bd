"""Deferral of events that the controller handles later than ZooKeeper showed them.

Deferred events are taken back, and run again after the event that turned out to come first. The controller has one
thread, so an event without a write so far comes as a whole after an event that writes now.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import contextmanager
from typing import Final

from msgspec.structs import replace

from controller.contract.ids import NO_BROKER, TopicPartition
from controller.events import broker_change, partition_reassignment, topic_deletion
from controller.machines import partition_machine
from controller.model.event import BrokersChanged, Event, EventKind
from controller.model.mutable_state import MutableState
from controller.rules.states import PartitionState
from controller.transaction.transaction import Transaction

_Again = Callable[[], None]

# Deferring the failure of a broker with 3,000 partitions takes 0.2 s. If it explains none of the first writes, the next
# ones do not come from an earlier event either. In the recordings of real clusters no event is deferred in vain.
_MOST_IN_VAIN: Final = 8


def deferrable(tx: Transaction) -> list[int]:
    """Return the ids of events that can run again, in order. They have writes due and have not begun.

    A later event that stays in its place must not depend on an event that runs again after it.
    """
    registered = set(tx.header.brokers)  # the brokers that are registered right after the event
    stays, later = set[int](), set[int]()  # brokers of later events that stay in their place, and of all later events
    found: list[int] = []
    for event in reversed(tx.events.open_events()):
        started = {event.started_broker} - {NO_BROKER}
        failed = set(event.failed_brokers)
        is_latest = stays.isdisjoint(failed) and later.isdisjoint(started)
        is_in_force = started <= registered and registered.isdisjoint(failed)
        if is_latest and is_in_force and _waits_as_a_whole(event) and not _is_built_upon(tx, event, found):
            found.append(event.id)
            registered = (registered | failed) - started
        else:
            stays |= started | failed
        later |= started | failed
    return found[::-1]


def _waits_as_a_whole(event: Event) -> bool:
    if event.writes_due == 0 or event.begun or event.deferred_in_vain >= _MOST_IN_VAIN:
        return False
    return _deferral_of(event) is not None


def _is_built_upon(tx: Transaction, event: Event, deferred: Collection[int]) -> bool:
    """Return whether an event that stays has planned to change a partition that this event changes before."""
    for tp in tx.certainty.waiting(event):
        is_behind = False
        for action in tx.state.topics[tp.topic].partitions[tp.partition].queue:
            if action.event == event.id:
                is_behind = True
            elif is_behind and not action.is_entry and action.event not in deferred:
                return True
    return False


def note_vain(tx: Transaction, events: Collection[int]) -> None:
    """Note that the deferral of these events explained no write."""
    for event in map(tx.events.open_event, events):
        event.deferred_in_vain += 1


@contextmanager
def deferring(tx: Transaction, events: list[int]) -> Iterator[None]:
    """Run the body before these events, which then follow in their order."""
    again: list[_Again] = []
    for event in map(tx.events.open_event, reversed(events)):
        defer = _deferral_of(event)
        assert defer is not None, f"{event.kind} cannot be run again"
        again.append(defer(tx, event))
    yield
    for run in reversed(again):
        run()


def _deferral_of(event: Event) -> Callable[[Transaction, Event], _Again] | None:
    if event.kind is EventKind.BROKER_CHANGE:
        return _deferral_of_broker_change(event)
    return _DEFERRALS.get(event.kind)


def _deferral_of_broker_change(event: Event) -> Callable[[Transaction, Event], _Again] | None:
    if event.started_broker == NO_BROKER:
        return _defer_failures if event.failed_brokers else None
    return None if event.failed_brokers else _defer_startup


def _defer_failures(tx: Transaction, event: Event) -> Callable[[], None]:
    """Take back broker failures that the controller has not begun to handle. Return a function that runs them again."""
    failed_brokers = dict(event.failed_brokers)
    tx.requests.undo(event.id)
    for broker, registration in failed_brokers.items():
        tx.header.register(broker, registration)

    def again() -> None:
        tx.header.unregister(failed_brokers)
        tx.events.begin_again(event).detail = BrokersChanged(failed_brokers)
        broker_change.on_broker_failure(tx, tuple(failed_brokers))

    return again


def _defer_startup(tx: Transaction, event: Event) -> Callable[[], None]:
    """Take back a broker's startup that the controller has not begun to handle.

    Return a function that runs it again.
    """
    started = event.started_broker
    registered = tx.header.brokers[started]
    partition_reassignment.resume_completed_by(tx, event)
    tx.requests.undo(event.id)
    tx.header.unregister((started,))
    topic_deletion.hold_up(tx.state, started)

    def again() -> None:
        tx.header.register(started, registered)
        tx.events.begin_again(event).detail = BrokersChanged(started=started)
        broker_change.on_broker_startup(tx, started)

    return again


def _defer_creation(tx: Transaction, event: Event) -> Callable[[], None]:
    """Take back partitions that the controller has not begun to create.

    Return a function that runs their creation again.
    """
    tps = [tp for tp in tx.certainty.waiting(event) if waits_for_actions_of(tx.state, tp, event)]
    tx.requests.undo(event.id)

    def again() -> None:
        tx.events.begin_again(event)
        partition_machine.create(tx, [tp for tp in tps if _is_missing(tx.state, tp)])

    return again


def _is_missing(state: MutableState, tp: TopicPartition) -> bool:
    """Return whether the partition is not created yet, by a failover that turned out to have read it."""
    partition = state.partition(tp)
    return partition is not None and partition.state is PartitionState.NON_EXISTENT


def waits_for_actions_of(state: MutableState, tp: TopicPartition, event: Event) -> bool:
    """Return whether the partition is there and has actions of the event in its queue."""
    partition = state.partition(tp)
    return partition is not None and any(action.event == event.id for action in partition.queue)


def _defer_deletion(tx: Transaction, event: Event) -> Callable[[], None]:
    """Take back a deletion that the controller has not begun. Return a function that runs it again."""
    (name,) = event.topics
    tx.requests.undo(event.id)
    tx.header.deletions.go_on(name)
    held = name in tx.header.deletions.ineligible_leftovers
    tx.state.put_topic(
        name, replace(tx.state.topics[name], queued_for_deletion=False, deletion_started=False, ineligible=held)
    )
    return lambda: topic_deletion.deletion_asked(tx, name)


_DEFERRALS: Final[Mapping[EventKind, Callable[[Transaction, Event], _Again]]] = {
    EventKind.PARTITION_MODIFICATIONS: _defer_creation,
    EventKind.TOPIC_CHANGE: _defer_creation,
    EventKind.TOPIC_DELETION: _defer_deletion,
}
