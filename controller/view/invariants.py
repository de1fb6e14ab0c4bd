"""Invariants of a cluster's state, checked in production after each complete read and when a state is restored.

The checks look at events in flight and at the topics that these affect, so their cost follows the work under way and
not the size of the cluster. The caller puts a cluster that violates an invariant into quarantine.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import Final

from controller.model.context import Header
from controller.model.topics import Topics, chunk_of

IDLE_UNDER_KRAFT: Final = "no event is expected while KRaft leads"
EVENTS_ARE_PENDING: Final = "an event in flight has an earlier number than the next one, and actions left"
EVENTS_KNOW_THEIR_QUEUES: Final = "an event counts its actions in the queues of its topics"
TOPICS_ARE_IN_THEIR_CHUNKS: Final = "a topic is in the chunk of its name"


class InvariantError(RuntimeError):
    """Violated invariant of a cluster's state, by name, with the part that violates it."""


def check_header(header: Header) -> None:
    """Check the header alone. Raise InvariantError."""
    if header.led_by_kraft:
        _require(IDLE_UNDER_KRAFT, not header.acting and not header.events, f"events {sorted(header.events)}")
    for number, event in header.events.items():
        holds = number == event.id < header.next_event and event.pending > 0 and min(event.due, default=0) >= 0
        _require(EVENTS_ARE_PENDING, holds, event.sentence)


def check_queues(header: Header, topics: Topics) -> None:
    """Check the header, and the events in flight against the partitions' queues. Raise InvariantError."""
    check_header(header)
    queued, due = Counter[int](), Counter[int]()
    for name in dict.fromkeys(name for event in header.events.values() for name in event.topics):
        topic = topics.get(name)
        for partition in topic.partitions.values() if topic is not None else ():
            queued.update(action.event for action in partition.queue)
            due.update(action.event for action in partition.queue if action.writes)
    for number, event in header.events.items():
        counted = (queued[number] + len(event.batches), due[number])
        _require(EVENTS_KNOW_THEIR_QUEUES, counted == (event.pending, event.writes_due), event.sentence)


def check_chunk(index: int, chunk_count: int, names: Iterable[str]) -> None:
    """Check that these topics belong to the chunk. Raise InvariantError."""
    for name in names:
        _require(TOPICS_ARE_IN_THEIR_CHUNKS, chunk_of(name, chunk_count) == index, f"{name} in chunk {index}")


def _require(name: str, holds: bool, violated_by: str) -> None:
    if not holds:
        raise InvariantError(f"{name}: {violated_by}")
