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
from controller.model.context import NO_BROKER, Event
from controller.model.topics import TopicPartition
from controller.transaction.transaction import Turn, replace

_Again = Callable[[], None]


def overtaken(turn: Turn) -> list[int]:
    """The events that have writes due, have not begun, and can be run again."""
    return [
        event.id
        for event in turn.open_events()
        if event.writes_due and not event.begun and _putting_aside(event) is not None
    ]


@contextmanager
def behind(turn: Turn, events: list[int]) -> Iterator[None]:
    """Run what is run in here before these events, which follow then in their order."""
    again: list[_Again] = []
    for event in map(turn.open_event, reversed(events)):
        put_aside = _putting_aside(event)
        assert put_aside is not None, f"{event.kind} cannot be run again"
        again.append(put_aside(turn, event))
    yield
    for run in reversed(again):
        run()


def _putting_aside(event: Event) -> Callable[[Turn, Event], _Again] | None:
    if event.kind == "BrokerChange" and (not event.died or event.born != NO_BROKER):
        return None
    return _PUTTING_ASIDE.get(event.kind)


def _defer_deaths(turn: Turn, event: Event) -> Callable[[], None]:
    """Take back deaths that the controller has not begun to handle; gives how they are handled later."""
    died, cause = dict(event.died), event.cause
    turn.undo(event)
    turn.header.brokers = {**turn.header.brokers, **died}

    def again() -> None:
        brokers = turn.header.brokers
        turn.header.brokers = {key: value for key, value in brokers.items() if key not in died}
        turn.begin("BrokerChange", cause).died = died
        broker_change.on_broker_failure(turn, tuple(died))

    return again


def _defer_creation(turn: Turn, event: Event) -> Callable[[], None]:
    """Take back partitions that the controller has not begun to create; gives how they are created later."""
    tps = [tp for tp in turn.waiting(event) if is_created_by(turn, tp, event)]
    kind, cause = event.kind, event.cause
    turn.undo(event)

    def again() -> None:
        turn.begin(kind, cause)
        partition_creation.create(turn, tps)

    return again


def is_created_by(turn: Turn, tp: TopicPartition, event: Event) -> bool:
    """Whether the partition waits for steps of the event that creates it."""
    partition = turn.partition(tp)
    return partition is not None and any(step.event == event.id for step in partition.queue)


def _defer_deletion(turn: Turn, event: Event) -> Callable[[], None]:
    """Take back a deletion that the controller has not begun; gives how it is begun later."""
    (name,) = event.topics
    turn.undo(event)
    turn.header.halted_deletions = {key: ms for key, ms in turn.header.halted_deletions.items() if key != name}
    held = name in turn.header.ineligible_leftovers
    turn.put_topic(name, replace(turn.topics[name], queued=False, deletion_started=False, ineligible=held))
    return lambda: topic_deletion.deletion_asked(turn, name)


_PUTTING_ASIDE: Final[Mapping[str, Callable[[Turn, Event], _Again]]] = {
    "BrokerChange": _defer_deaths,
    "PartitionModifications": _defer_creation,
    "TopicChange": _defer_creation,
    "TopicDeletion": _defer_deletion,
}
