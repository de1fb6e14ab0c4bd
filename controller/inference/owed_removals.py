"""Removals from ISRs that a controller owes though it writes on: its process is poisoned (KAFKA-12315).

How its process was poisoned was not seen then: before the first complete read, or before its broker lost a session and
registered again. A poisoned controller goes on electing leaders and creating partitions, and no exception stops it.
"""

from __future__ import annotations

from controller.events.broker_change import trigger_online
from controller.model.event import Event, EventKind
from controller.model.leadership import RemoveFromIsr
from controller.transaction.certainty import UNFINISHED_MS
from controller.transaction.transaction import Transaction


def judge(tx: Transaction) -> None:
    """Conclude that the controller is poisoned where it passed over removals, and has made none in its term."""
    header = tx.header
    if header.term.removed_replicas or header.is_poisoned or not (header.acting and header.profile.fences_writes):
        return
    owing = next((event for event in header.events.values() if _is_passed_over(tx, event)), None)
    if owing is not None and header.controller in header.brokers:
        _poison(tx, owing)


def _is_passed_over(tx: Transaction, event: Event) -> bool:
    """Whether the controller wrote what comes after removals of this event, and for a while nothing of the event."""
    header = tx.header
    if not event.writes_due or event.epoch != header.term.epoch:
        return False
    # A failover takes replicas offline before it elects, all other events after that.
    elected_first = event.kind is EventKind.CONTROLLER_FAILOVER and event.begun
    passed_over = elected_first or event.id < header.last_written_event
    silent_ms = header.time_ms - max(event.time_ms, event.last_write_ms)
    return passed_over and silent_ms > UNFINISHED_MS and _removes_departed(tx, event)


def _removes_departed(tx: Transaction, event: Event) -> bool:
    """Whether next it has to take a replica out of an ISR whose broker was away before, and still is."""
    header = tx.header
    away = {
        action.replica
        for action in tx.actions_of(event)
        if isinstance(action, RemoveFromIsr)
        and action.at_batch == event.next_batch
        and action.replica not in header.brokers
    }
    left_ms = {broker: header.departures.last[broker].time_ms for broker in away & header.departures.last.keys()}
    return any(left_ms.get(broker, 0) <= event.time_ms for broker in away)


def _poison(tx: Transaction, owing: Event) -> None:
    """Take back what the controller's replicas were to do, and expect only what it still does."""
    header = tx.header
    broker = header.controller
    removed = f"broker {broker} took no replica out of an ISR in epoch {header.controller_epoch} and wrote on"
    shown = f"{removed}; due since zxid {owing.zxid:#x} for {owing.sentence}"
    header.former.note_poisoned(broker, header.brokers[broker].epoch, shown)
    for event in reversed(tx.open_events()):
        if any(isinstance(action, RemoveFromIsr) for action in tx.actions_of(event)):
            tx.undo(event)
    tx.begin(EventKind.CONTROLLER_FAILOVER, f"broker {broker} moves no replica")
    trigger_online(tx)
