"""Explanation of written states that no expected write gives, by rules of inference, tried in order.

Each hypothesis runs the controller's own handlers on a trial of the transaction. Kontrast takes it only if they write
exactly the written state. Otherwise the write stays unexplained, without a guess.
"""

from __future__ import annotations

from msgspec.structs import replace

from controller.contract.ids import TopicPartition
from controller.contract.leader_and_isr import LeaderAndIsr
from controller.events import fenced_controller
from controller.inference import deferral, divergences, expected_writes, isr_change
from controller.inference.hypotheses.observed_write import Hypothesis, ObservedWrite
from controller.inference.hypotheses.table import RULES, Rule
from controller.model.event import EventKind
from controller.model.leadership import StateChange
from controller.model.mutable_state import MutableState
from controller.model.topics import Partition
from controller.rules.states import PartitionState
from controller.transaction.pending_events import before_state_change
from controller.transaction.transaction import Transaction


def explain(tx: Transaction, tp: TopicPartition, written: LeaderAndIsr) -> None:
    """Take the first hypothesis that reproduces the write.

    Otherwise accept the observed state, and count a divergence.
    """
    partition = tx.state.partition(tp)
    assert partition is not None, f"{tp} was written, and is not known"
    write = ObservedWrite(tp, partition, partition.zk_state, written)
    if not (fenced_controller.acts(tx.state) and _is_explained(tx, write)):
        _accept(tx, tp, partition, written)


def _is_explained(tx: Transaction, write: ObservedWrite) -> bool:
    deferrable = deferral.deferrable(tx)
    asks = tx.header.settings.controlled_shutdown_enable
    for rule in (rule for rule in RULES if asks or not rule.assumes_controlled_shutdown):
        for hypothesis in rule.propose(tx, write):
            for deferred in [deferrable, []] if deferrable else [[]]:
                trial = tx.fork()
                if _explains(trial, rule, hypothesis, write, deferred):
                    tx.adopt(trial)
                    tx.state.count_write(inferred_by=rule.name)
                    return True
    return False


def _explains(tx: Transaction, rule: Rule, hypothesis: Hypothesis, write: ObservedWrite, deferred: list[int]) -> bool:
    """Return whether under the hypothesis the controller writes this state, before it handles the deferred events."""
    tp, before, written = write.tp, write.before, write.written
    # Up to 2.0 a deposed controller is not fenced, so its writes belong to its own term.
    epoch = written.controller_epoch
    with deferral.deferring(tx, deferred), tx.header.in_epoch(epoch), tx.events.inferring(rule.name):
        hypothesis(tx)
    if expected_writes.match_expected_write(tx, tp, written):
        return True
    return before is not None and isr_change.match_across_unread_isr_change(tx, tp, before, written)


def _accept(tx: Transaction, tp: TopicPartition, partition: Partition, written: LeaderAndIsr) -> None:
    divergences.note_unexplained(tx.state, tp, partition, written)
    tx.state.count_write(explained=False)
    tx.events.begin(
        EventKind.UNEXPLAINED, f"partition {tp} was written, but no rule of the controller explains the write"
    )
    for action in reversed(partition.queue):
        tx.events.withdraw(tp, action)
        if isinstance(action, StateChange) and action.replica is None:
            partition = before_state_change(partition, action)
    partition = replace(partition, queue=())
    before = partition.zk_state
    if (
        before is None
        or before.leader != written.leader
        or _state_shown(tx.state, partition, written) != partition.state
    ):
        partition = _in_shown_state(tx, tp, partition, written)
    tx.state.put_partition(tp, replace(partition, zk_state=written))


def _state_shown(state: MutableState, partition: Partition, written: LeaderAndIsr) -> PartitionState:
    return PartitionState.ONLINE if state.is_online(written.leader, partition) else PartitionState.OFFLINE


def _in_shown_state(tx: Transaction, tp: TopicPartition, partition: Partition, written: LeaderAndIsr) -> Partition:
    """Return the partition in its znode's state, by legal state changes. A partition under deletion stays as it is.

    A written state does not restore a partition that the controller has deleted.
    """
    topic = tx.state.topic(tp.topic)
    if partition.state is PartitionState.NON_EXISTENT and (topic is None or topic.queued_for_deletion):
        return partition
    shown = _state_shown(tx.state, partition, written)
    by_way_of = [PartitionState.NEW] if partition.state is PartitionState.NON_EXISTENT else []
    for state in (*by_way_of, shown):
        tx.events.begin_batch()
        change = StateChange(
            *tx.events.place(), replica=None, from_state=partition.state, to_state=state, written=True, value=written
        )
        partition = tx.events.queue(tp, replace(partition, state=state), change)
    return partition
