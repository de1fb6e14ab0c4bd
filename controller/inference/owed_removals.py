"""Removals from ISRs that a controller owes while it writes on, because its process is poisoned (KAFKA-12315).

The cause of the poisoning was not seen, because it preceded the first complete read, or its broker's loss of a session
and its new registration. A poisoned controller continues to elect leaders and create partitions, and no exception stops
it.
"""

from __future__ import annotations

from functools import partial
from typing import Final

from controller.events.broker_change import without_online_leader
from controller.machines import partition_machine
from controller.machines.partition_machine import trigger_online
from controller.model.event import Event, EventKind
from controller.model.leadership import AnyAction, RemoveFromIsr
from controller.rules import timing
from controller.rules.states import PartitionState
from controller.transaction.transaction import Transaction

# Events in which also live replicas leave ISRs, after other writes. A topic's deletion does so too, but it may be held
# up in the controller's memory.
_REASSIGNMENTS: Final = (
    EventKind.ZK_PARTITION_REASSIGNMENT,
    EventKind.API_PARTITION_REASSIGNMENT,
    EventKind.ALTER_PARTITION_RECEIVED,
    EventKind.PARTITION_REASSIGNMENT_ISR_CHANGE,
)


def judge(tx: Transaction) -> None:
    """Conclude that the controller is poisoned if it passed over removals, and made no removal in its term."""
    header = tx.header
    if header.term.removed_replicas or header.is_poisoned or not (header.acting and header.profile.fences_writes):
        return
    owing = next((event for event in header.events.values() if _is_passed_over(tx, event)), None)
    registered = header.brokers.get(header.controller)
    if owing is not None and registered is not None and registered.epoch == header.term.registration:
        _poison(tx, owing)


def _is_passed_over(tx: Transaction, event: Event) -> bool:
    """Return whether the controller has long done other things while removals of this event are due."""
    header = tx.header
    if not event.writes_due or event.epoch != header.term.epoch:
        return False
    seen_ms = max(event.time_ms, event.last_write_ms)
    unfinished_ms = timing.UNFINISHED.of(header.partitions)
    if header.time_ms - seen_ms <= unfinished_ms:
        return False
    # A failover takes replicas offline before it elects, all other events after that.
    elected_first = event.kind is EventKind.CONTROLLER_FAILOVER and event.begun
    wrote_on = event.id < header.last_written_event or header.term.changed_isr_ms - seen_ms > unfinished_ms
    return (elected_first or wrote_on) and any(map(partial(_is_certain, tx, event), tx.certainty.actions_of(event)))


def _is_certain(tx: Transaction, event: Event, action: AnyAction) -> bool:
    """Return whether a removal from an ISR comes next that every controller would have known of."""
    if not (isinstance(action, RemoveFromIsr) and action.at_batch == event.next_batch):
        return False
    if event.kind in _REASSIGNMENTS and event.begun:
        return True
    departure = tx.header.departures.last.get(action.replica)
    away = action.replica not in tx.header.brokers
    return away and (departure is None or departure.time_ms <= event.time_ms)


def _poison(tx: Transaction, owing: Event) -> None:
    """Take back the planned actions of the controller's replicas, and expect only its remaining actions."""
    header = tx.header
    broker = header.controller
    removed = f"broker {broker} took no replica out of an ISR in epoch {header.controller_epoch} and continued to write"
    shown = f"{removed}. A removal was due since zxid {owing.zxid:#x} for {owing.sentence}"
    header.former.note_poisoned(broker, header.brokers[broker].epoch, shown)
    header.former.confirm_poisoned(broker)
    for event in reversed(tx.events.open_events()):
        if any(isinstance(action, RemoveFromIsr) for action in tx.certainty.actions_of(event)):
            tx.requests.undo(event.id)
    tx.events.begin(EventKind.CONTROLLER_FAILOVER, f"broker {broker} moves no replica")
    partition_machine.enter_state(tx, without_online_leader(tx.state), PartitionState.OFFLINE)
    trigger_online(tx)
