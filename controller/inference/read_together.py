"""Broker failure and startup that the controller reads at once, and handles in one BrokerChange.

The controller handles the startup first, while the failed brokers still count as live. The writes belong to this one
event, although ZooKeeper showed the failure before.
"""

from __future__ import annotations

from itertools import pairwise
from typing import Final

from controller.contract.ids import TopicPartition
from controller.contract.leader_and_isr import LeaderAndIsr
from controller.events import partition_reassignment
from controller.events.broker_change import is_any_back, on_broker_failure, on_broker_startup
from controller.inference.expected_writes import match_expected_write, match_under
from controller.model.event import BrokersChanged, Event, EventKind
from controller.transaction.transaction import Transaction
from wording.sentences import listed

RULE: Final = "read-together"


def shows_both_read(tx: Transaction, tp: TopicPartition, written: LeaderAndIsr) -> bool:
    """Merge a failure and a startup into one event if only that gives the written state."""
    pair = _may_be_read_together(tx) if len(tx.header.events) > 1 else None
    if pair is None:
        return False
    failure, start = pair
    as_seen = tx.fork()
    if match_expected_write(as_seen, tp, written) and not as_seen.events.open_event(start.id).begun:
        return False
    return match_under(
        tx,
        RULE,
        tp,
        written,
        lambda trial: _read_together(trial, trial.events.open_event(failure.id), trial.events.open_event(start.id)),
    )


def _may_be_read_together(tx: Transaction) -> tuple[Event, Event] | None:
    """Return the failure and the startup after it that the controller has not begun to handle.

    The broker that started is still there.
    """
    events = tx.header.events.items()
    waiting = sorted(key for key, event in events if event.pending and not (event.begun or event.taken_up))
    for earlier, later in pairwise(waiting):
        failure, start = tx.header.events[earlier], tx.header.events[later]
        if failure.failed_brokers and start.started_broker in tx.header.brokers and not is_any_back(tx.header, failure):
            return tx.events.open_event(earlier), tx.events.open_event(later)
    return None


def _read_together(tx: Transaction, failure: Event, start: Event) -> None:
    header = tx.header
    partition_reassignment.resume_completed_by(tx, start)
    tx.requests.undo(start.id)
    tx.requests.undo(failure.id)
    event = tx.events.begin(
        EventKind.BROKER_CHANGE,
        f"broker {start.started_broker} registered, {listed(failure.failed_brokers)} left",
    )
    event.detail = BrokersChanged(started=start.started_broker)
    with header.knowing({**header.brokers, **failure.failed_brokers}):
        on_broker_startup(tx, start.started_broker)
    on_broker_failure(tx, tuple(failure.failed_brokers))
