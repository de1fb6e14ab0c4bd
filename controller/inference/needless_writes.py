"""Needless expected writes. The controller acted after their cause and is silent since, and the cluster is well.

A write is expected in vain if the controller did two things at once, or in another order. Later events give it up
(`expected_writes`). Without a later event it would be due for ever, and the controller overdue.
"""

from __future__ import annotations

from msgspec.structs import replace

from controller.contract.ids import TopicPartition
from controller.inference.expected_writes import give_up
from controller.inference.led_meanwhile import count_as_online_after
from controller.model.context import Header
from controller.model.event import Event, EventKind
from controller.model.leadership import RemoveFromIsr
from controller.model.mutable_state import MutableState
from controller.model.topics import Partition
from controller.transaction.transaction import Transaction


def judge(tx: Transaction) -> None:
    """Give up the needless writes of this term's events that the controller has had its time for."""
    header = tx.header
    acted_ms = header.term.acted_ms
    if not (header.acting and header.has_outlasted_a_hang(acted_ms)):
        return
    for event_id, event in list(header.events.items()):
        is_past = event.epoch == header.term.epoch and event.time_ms <= acted_ms
        if is_past and event.writes_due and mends_nothing(tx, event):
            _keep_from_shutting_down(tx, event)
            waiting = tx.certainty.waiting(event)
            for tp in waiting:
                give_up(tx, tp, event_id)
                _forget_shown_assignments(tx.state, tp)
            count_as_online_after(tx, event, waiting)


def _keep_from_shutting_down(tx: Transaction, event: Event) -> None:
    """Count brokers as staying whose inferred controlled shutdown did not take them out of their ISRs."""
    if event.kind is EventKind.CONTROLLED_SHUTDOWN:
        stay = {action.replica for action in tx.certainty.actions_of(event) if isinstance(action, RemoveFromIsr)}
        tx.header.shutdowns.end(stay)


def mends_nothing(tx: Transaction, event: Event) -> bool:
    """Return whether the cluster is as it should be without the event's due writes."""
    if event.kind is EventKind.REPLICA_LEADER_ELECTION and tx.header.triggers.preferred is not None:
        return False
    for tp in tx.certainty.waiting(event):
        topic = tx.state.topics[tp.topic]
        partition = topic.partitions[tp.partition]
        is_due = any(action.event == event.id and action.writes for action in partition.queue)
        if is_due and (topic.queued_for_deletion or _is_wanting(tx.header, partition)):
            return False
    return True


def _is_wanting(header: Header, partition: Partition) -> bool:
    value = partition.zk_state
    if value is None or partition.reassigning or not _are_shown(partition):
        return True
    works = header.brokers.keys() - set(partition.offline_dirs)
    return not works >= {value.leader, *value.isr}


def _are_shown(partition: Partition) -> bool:
    """Return whether the topic's znode has the assignment that the controller has still to write there."""
    shown = partition.zk_assignment or partition.assignment
    return all(assignment == shown for assignment in partition.pending_assignments)


def _forget_shown_assignments(state: MutableState, tp: TopicPartition) -> None:
    partition = state.partition(tp)
    if partition is not None and partition.pending_assignments and _are_shown(partition):
        state.put_partition(tp, replace(partition, pending_assignments=()))
