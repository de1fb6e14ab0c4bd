"""Reassignment that completes with another leader than the live one, which had sent ControlledShutdown before."""

from __future__ import annotations

from collections.abc import Iterator

from msgspec.structs import replace

from controller.contract.ids import BrokerId, TopicPartition
from controller.events import controlled_shutdown, partition_reassignment
from controller.inference.hypotheses.observed_write import Hypothesis, ObservedWrite
from controller.model.event import Event
from controller.model.leadership import BumpLeaderEpoch
from controller.transaction.transaction import Transaction


def propose(tx: Transaction, write: ObservedWrite) -> Iterator[Hypothesis]:
    """Propose that the leader sent ControlledShutdown when no other replica could lead, and was then not re-elected."""
    before = write.before
    if before is None or not write.is_next or not write.moves_leader or write.left_isr:
        return
    event = _completion(tx, write.tp) if before.leader in tx.header.brokers else None
    if event is not None:
        yield lambda trial: _complete_without(trial, trial.events.open_event(event.id), write.tp, before.leader)


def _completion(tx: Transaction, tp: TopicPartition) -> Event | None:
    """Return the event in which the partition's reassignment is expected to complete with its present leader."""
    partition = tx.state.partition(tp)
    bumps = [action for action in partition.queue if isinstance(action, BumpLeaderEpoch)] if partition else []
    if partition is None or partition.zk_assignment is None or partition.reassigning or len(bumps) != 1:
        return None
    event = tx.events.open_event(bumps[0].event)
    return None if event.begun else event


def _complete_without(tx: Transaction, event: Event, tp: TopicPartition, leaving: BrokerId) -> None:
    tx.requests.undo(event.id)
    partition = tx.state.partition(tp)
    assert partition is not None, f"{tp} was reassigned, and is not known"
    assert partition.zk_assignment is not None, f"{tp} was reassigned, and its topic's znode does not differ"
    before = partition.with_assignment(partition.zk_assignment)
    tx.state.put_partition(
        tp, replace(before, zk_assignment=None, pending_assignments=partition.pending_assignments[:-1])
    )
    controlled_shutdown.ask_in_vain(tx, leaving)
    tx.events.begin(event.kind, event.cause)
    partition_reassignment.complete(tx, tp)
