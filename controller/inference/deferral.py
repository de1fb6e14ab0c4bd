"""Events that the controller turns out to take up later than ZooKeeper showed them.

Here belong putting such events aside, while what came first is run, and running them again behind it. The controller
is one thread: what has begun no write when something else writes comes after that as a whole.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Final

from controller.events import broker_change, topic_change, topic_deletion
from controller.model.context import NO_BROKER, Event
from controller.transaction.transaction import Turn

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


_PUTTING_ASIDE: Final[Mapping[str, Callable[[Turn, Event], _Again]]] = {
    "BrokerChange": broker_change.put_deaths_aside,
    "PartitionModifications": topic_change.put_creation_aside,
    "TopicChange": topic_change.put_creation_aside,
    "TopicDeletion": topic_deletion.put_aside,
}
