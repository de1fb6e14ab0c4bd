"""Live brokers that leave an ISR or a leadership, by ControlledShutdown or by a failed log directory."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

from msgspec.structs import replace

from controller.contract.ids import NO_BROKER, BrokerId, TopicPartition
from controller.events import controlled_shutdown, partition_reassignment
from controller.events.controlled_shutdown import ask, is_under_way, reach_late
from controller.events.log_dir_event_notification import failed, named, reported_lately
from controller.inference.hypotheses.observed_write import Hypothesis, ObservedWrite, WideHypothesis
from controller.model.event import Event
from controller.model.leadership import BumpLeaderEpoch
from controller.transaction.transaction import Transaction


def shutdown_asked(tx: Transaction, write: ObservedWrite) -> Iterator[Hypothesis]:
    """Propose that a broker that left the ISR, or is offline as its last member, sent ControlledShutdown.

    It explains a live broker that leaves an ISR, because it sent ControlledShutdown, for the first time or again.
    ZooKeeper never shows the request itself, only its first write. The last member of an ISR stays in it. If the
    partition has no leader, as in a topic under deletion, the write repeats the state (`removeReplicasFromIsr`, all
    releases).
    """
    offline = write.left_isr | write.kept_as_last_in_isr if write.is_next else set()
    for broker in sorted(offline.intersection(tx.header.brokers)):
        yield WideHypothesis(alone=partial(ask, broker=broker, only=write.tp), whole=partial(ask, broker=broker))


def shutdown_reached_late(tx: Transaction, write: ObservedWrite) -> Iterator[Hypothesis]:
    """Propose that the shutdown attempt of a broker that left the ISR reaches the partition.

    It explains a live broker that leaves an ISR, because its current controlled shutdown reaches the partition only
    now. The shutdown had passed the partition over while no other replica was in sync.
    """
    for broker in write.live_that_left_isr(tx.header.brokers) if write.is_next else ():
        if is_under_way(tx.header, broker):
            yield partial(reach_late, broker=broker, tp=write.tp)


def completed_without_leader(tx: Transaction, write: ObservedWrite) -> Iterator[Hypothesis]:
    """Propose that the leader sent ControlledShutdown when no other replica could lead, and was then not re-elected.

    It explains a reassignment that completes with another leader than the live one, which had sent
    ControlledShutdown before.
    """
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
    controlled_shutdown.ask_unsuccessfully(tx, leaving)
    tx.events.begin(event.kind, event.cause)
    partition_reassignment.complete(tx, tp)


def log_dir_failed(tx: Transaction, write: ObservedWrite) -> Iterator[Hypothesis]:
    """Propose that the lost replica is in the failed directory of its broker.

    It explains a live broker that loses a replica to a failed log directory, which it or an unknown broker reported
    shortly before. The report names no replicas. The broker's LeaderAndIsr response does, and is never seen
    (KIP-112).
    """
    if not write.is_next:
        return
    for broker in write.departed(tx.header.brokers):
        if reported_lately(tx.header, broker):
            yield partial(failed, broker=broker, tp=write.tp)
        elif reported_lately(tx.header, NO_BROKER):
            yield partial(_failed_unnamed, broker=broker, tp=write.tp)


def _failed_unnamed(tx: Transaction, broker: BrokerId, tp: TopicPartition) -> None:
    """Run the failure of a broker whose report vanished before it could be read. This write shows the broker."""
    named(tx, broker)
    failed(tx, broker, tp)
