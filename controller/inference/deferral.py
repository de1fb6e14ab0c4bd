"""Events that the controller turns out to take up later than ZooKeeper showed them.

Here belong putting such events aside, while what came first is run, and running them again behind it. The controller
is one thread: what has begun no write when something else writes comes after that as a whole.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Final

from controller.events import broker_change, topic_deletion
from controller.machines import partition_creation
from controller.model.brokers import NO_BROKER
from controller.model.event import Event, EventKind
from controller.model.topics import TopicPartition
from controller.transaction.transaction import Transaction, replace

_Again = Callable[[], None]


def overtaken(tx: Transaction) -> list[int]:
    """The events that have writes due, have not begun, and can be run again."""
    return [
        event.id
        for event in tx.open_events()
        if event.writes_due and not event.begun and _putting_aside(event) is not None
    ]


@contextmanager
def behind(tx: Transaction, events: list[int]) -> Iterator[None]:
    """Run what is run in here before these events, which follow then in their order."""
    again: list[_Again] = []
    for event in map(tx.open_event, reversed(events)):
        put_aside = _putting_aside(event)
        assert put_aside is not None, f"{event.kind} cannot be run again"
        again.append(put_aside(tx, event))
    yield
    for run in reversed(again):
        run()


def _putting_aside(event: Event) -> Callable[[Transaction, Event], _Again] | None:
    if event.kind is EventKind.BROKER_CHANGE and (not event.failed_brokers or event.started_broker != NO_BROKER):
        return None
    return _PUTTING_ASIDE.get(event.kind)


def _defer_deaths(tx: Transaction, event: Event) -> Callable[[], None]:
    """Take back deaths that the controller has not begun to handle; gives how they are handled later."""
    failed_brokers, cause = dict(event.failed_brokers), event.cause
    tx.undo(event)
    tx.header.brokers = {**tx.header.brokers, **failed_brokers}

    def again() -> None:
        brokers = tx.header.brokers
        tx.header.brokers = {key: value for key, value in brokers.items() if key not in failed_brokers}
        tx.begin(EventKind.BROKER_CHANGE, cause).failed_brokers = failed_brokers
        broker_change.on_broker_failure(tx, tuple(failed_brokers))

    return again


def _defer_creation(tx: Transaction, event: Event) -> Callable[[], None]:
    """Take back partitions that the controller has not begun to create; gives how they are created later."""
    tps = [tp for tp in tx.waiting(event) if is_created_by(tx, tp, event)]
    kind, cause = event.kind, event.cause
    tx.undo(event)

    def again() -> None:
        tx.begin(kind, cause)
        partition_creation.create(tx, tps)

    return again


def is_created_by(tx: Transaction, tp: TopicPartition, event: Event) -> bool:
    """Whether the partition waits for steps of the event that creates it."""
    partition = tx.partition(tp)
    return partition is not None and any(step.event == event.id for step in partition.queue)


def _defer_deletion(tx: Transaction, event: Event) -> Callable[[], None]:
    """Take back a deletion that the controller has not begun; gives how it is begun later."""
    (name,) = event.topics
    tx.undo(event)
    tx.header.deletions.halted = {key: ms for key, ms in tx.header.deletions.halted.items() if key != name}
    held = name in tx.header.deletions.ineligible_leftovers
    tx.put_topic(name, replace(tx.topics[name], queued_for_deletion=False, deletion_started=False, ineligible=held))
    return lambda: topic_deletion.deletion_asked(tx, name)


_PUTTING_ASIDE: Final[Mapping[EventKind, Callable[[Transaction, Event], _Again]]] = {
    EventKind.BROKER_CHANGE: _defer_deaths,
    EventKind.PARTITION_MODIFICATIONS: _defer_creation,
    EventKind.TOPIC_CHANGE: _defer_creation,
    EventKind.TOPIC_DELETION: _defer_deletion,
}
