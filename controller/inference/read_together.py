"""A broker's failure and another's start that the controller reads at once: one BrokerChange handles both.

It then handles the start first, while those that left still count as live; what it writes belongs to that one event,
though ZooKeeper showed the failure before.
"""

from __future__ import annotations

from itertools import pairwise

from controller.events.broker_change import names_of, on_broker_failure, on_broker_startup
from controller.inference.expected_writes import confirm
from controller.model.context import NO_BROKER, Event
from controller.model.leadership import LeaderAndIsr
from controller.model.topics import TopicPartition
from controller.transaction.transaction import Turn


def shows_both_read(turn: Turn, tp: TopicPartition, written: LeaderAndIsr) -> bool:
    """Take up both together if the write shows that; where it confirms the failure alone, it does not."""
    pair = _may_be_read_together(turn) if len(turn.header.events) > 1 else None
    if pair is None:
        return False
    failure, start = pair
    as_seen = turn.fork()
    if confirm(as_seen, tp, written) and not as_seen.open_event(start.id).begun:
        return False
    trial = turn.fork()
    _read_together(trial, trial.open_event(failure.id), trial.open_event(start.id))
    if not confirm(trial, tp, written):
        return False
    turn.adopt(trial)
    return True


def _may_be_read_together(turn: Turn) -> tuple[Event, Event] | None:
    """A failure and a start behind it that the controller has not begun to handle."""
    events = turn.header.events.items()
    waiting = sorted(key for key, event in events if event.queued and not (event.begun or event.taken_up))
    for earlier, later in pairwise(waiting):
        failure, start = turn.header.events[earlier], turn.header.events[later]
        if failure.died and start.born != NO_BROKER:
            return turn.open_event(earlier), turn.open_event(later)
    return None


def _read_together(turn: Turn, failure: Event, start: Event) -> None:
    header = turn.header
    turn.undo(start)
    turn.undo(failure)
    live = header.brokers
    header.brokers = {**live, **failure.died}
    event = turn.begin("BrokerChange", f"broker {start.born} registered, broker {names_of(failure.died)} left")
    event.born = start.born
    on_broker_startup(turn, start.born)
    header.brokers = live
    on_broker_failure(turn, tuple(failure.died))
