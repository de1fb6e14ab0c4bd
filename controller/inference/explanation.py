"""Writes that no expected write gives: the rules of inference are tried in order, until one reproduces the value.

Each hypothesis runs the controller's own handlers on a trial of the step and is taken only if the written value is
exactly what they would write; else the write is unexplained, never guessed.
"""

from __future__ import annotations

from controller.inference import deferral, divergences, expected_writes, isr_change
from controller.inference.hypotheses.observed_write import Hypothesis, ObservedWrite
from controller.inference.hypotheses.table import RULES
from controller.model.event import EventKind
from controller.model.leadership import LeaderAndIsr, StateChange
from controller.model.topics import Partition, TopicPartition
from controller.rules.states import PartitionState
from controller.transaction.pending_events import before_state_change
from controller.transaction.transaction import Transaction, replace


def explain(tx: Transaction, tp: TopicPartition, written: LeaderAndIsr) -> None:
    """Take the first hypothesis that reproduces the write; else let the observed value win and count it."""
    partition = tx.partition(tp)
    assert partition is not None, f"{tp} was written, and is not known"
    if not (tx.header.acting and _is_explained(tx, ObservedWrite(tp, partition, partition.zk_state, written))):
        _accept(tx, tp, partition, written)


def _is_explained(tx: Transaction, write: ObservedWrite) -> bool:
    overtaken = deferral.overtaken(tx)
    for rule in RULES:
        for hypothesis in rule.propose(tx, write):
            for behind in [overtaken, []] if overtaken else [[]]:
                trial = tx.fork()
                if _explains(trial, hypothesis, write, behind):
                    tx.adopt(trial)
                    tx.count(f"inferred/{rule.name}")
                    return True
    return False


def _explains(tx: Transaction, hypothesis: Hypothesis, write: ObservedWrite, behind: list[int]) -> bool:
    """Whether the hypothesis makes the controller write this, before it takes up the events behind."""
    tp, before, written, epoch = write.tp, write.before, write.written, tx.header.controller_epoch
    with deferral.behind(tx, behind):
        # Up to 2.0 nothing keeps a deposed controller from writing on: what it does counts to its own term.
        tx.header.controller_epoch = written.controller_epoch
        hypothesis(tx)
        tx.header.controller_epoch = epoch
    if expected_writes.match_expected_write(tx, tp, written):
        return True
    return before is not None and isr_change.match_across_unread_isr_change(tx, tp, before, written)


def _accept(tx: Transaction, tp: TopicPartition, partition: Partition, written: LeaderAndIsr) -> None:
    divergences.unforeseen(tx, tp, partition, written)
    tx.begin(EventKind.UNEXPLAINED, f"partition {tp} was written as nothing foretold")
    for step in reversed(partition.queue):
        tx.withdraw(tp, step)
        if isinstance(step, StateChange) and step.replica is None:
            partition = before_state_change(partition, step)
    partition = replace(partition, queue=())
    before = partition.zk_state
    if before is None or before.leader != written.leader or _state_shown(tx, partition, written) != partition.state:
        partition = _moved_to_shown(tx, tp, partition, written)
    tx.put_partition(tp, replace(partition, zk_state=written))


def _state_shown(tx: Transaction, partition: Partition, written: LeaderAndIsr) -> PartitionState:
    return PartitionState.ONLINE if tx.is_online(written.leader, partition) else PartitionState.OFFLINE


def _moved_to_shown(tx: Transaction, tp: TopicPartition, partition: Partition, written: LeaderAndIsr) -> Partition:
    """The partition in the state that the value shows, by legal transitions; one that is deleted stays as it is.

    Whoever wrote the state of a partition that does not exist for the controller has not made it exist.
    """
    topic = tx.topic(tp.topic)
    if partition.state is PartitionState.NON_EXISTENT and (topic is None or topic.queued_for_deletion):
        return partition
    shown = _state_shown(tx, partition, written)
    by_way_of = [PartitionState.NEW] if partition.state is PartitionState.NON_EXISTENT else []
    for state in (*by_way_of, shown):
        tx.begin_batch()
        move = StateChange(
            *tx.place(), replica=None, from_state=partition.state, to_state=state, written=True, value=written
        )
        partition = tx.queue(tp, replace(partition, state=state), move)
    return partition
