"""Partition states as ZooKeeper shows them, held against what the controller was expected to write.

Here belongs the comparison: a write confirms steps that were expected, is a leader's change of the ISR, or is left to
`explanation`. The observed value always wins.
"""

from __future__ import annotations

from controller.alerts import kinds, occurrences
from controller.contract.znodes import StateZnode
from controller.events import topic_deletion, unfenced_controller
from controller.inference import divergences, explanation, topic_assignment
from controller.inference.expected_writes import confirm
from controller.inference.isr_change import change_isr, confirm_across_lost
from controller.inference.read_together import shows_both_read
from controller.model.context import FOLLOWING
from controller.model.leadership import LeaderAndIsr, Write
from controller.model.topics import Partition, TopicPartition
from controller.transaction.transaction import Turn, replace


def state_written(turn: Turn, tp: TopicPartition, znode: StateZnode, version: int) -> None:
    """A partition's state znode has this value."""
    partition = turn.partition(tp)
    if partition is None:
        cause = f"{tp} has a state but is not in its topic's assignment: the topic may be half deleted, or was edited"
        occurrences.note(turn, kinds.ORPHAN_STATE, cause, about=str(tp))
        return
    written = LeaderAndIsr(
        znode.leader, znode.leader_epoch, znode.isr, znode.controller_epoch, version, znode.leader_recovery_state == 1
    )
    before = partition.confirmed
    if before == written:
        return
    if written.leader in turn.header.shutting_down and (before is None or before.leader != written.leader):
        # The controller never makes a broker leader that is shutting down: this one no longer is.
        staying = (broker for broker in turn.header.shutting_down if broker != written.leader)
        turn.header.shutting_down = tuple(staying)
    if turn.header.phase is not FOLLOWING:
        turn.put_partition(tp, replace(partition, confirmed=written))
        return
    divergences.suspect(turn, tp, partition, written)
    if unfenced_controller.goes_on(turn, before, written):
        unfenced_controller.go_on(turn)
        partition = turn.partition(tp) or partition
    if _was_reassigned_unseen(partition, written):
        topic_assignment.adopt_announced(turn, tp, partition, written)
    elif not turn.is_idle and (shows_both_read(turn, tp, written) or confirm(turn, tp, written)):
        topic_deletion.written_before_asking(turn, tp.topic)
    elif before is not None and before.leader_epoch == written.leader_epoch and before.leader == written.leader:
        change_isr(turn, tp, partition, written)
    elif before is None or not confirm_across_lost(turn, tp, before, written):
        explanation.explain(turn, tp, written)


def _was_reassigned_unseen(partition: Partition, written: LeaderAndIsr) -> bool:
    """Whether the topic's znode told of a reassignment that was done before its beginning was read, not of an edit.

    Only then the ISR has come to be what the znode says.
    """
    before, told = partition.confirmed, partition.announced
    if before is None or told is None or partition.reassigning or partition.expected or told.is_being_reassigned:
        return False
    changed = set(told.replicas) != set(partition.replicas)
    return changed and written.leader_epoch > before.leader_epoch and set(written.isr) == set(told.replicas)


def state_removed(turn: Turn, tp: TopicPartition) -> None:
    """A partition's state znode vanished; a topic's deletion removes its states first."""
    topic, partition = turn.topic(tp.topic), turn.partition(tp)
    if topic is None or partition is None or partition.confirmed is None:
        return
    if topic.queued and turn.header.phase is FOLLOWING and turn.header.acting:
        topic_deletion.completed(turn, tp.topic)
        partition = turn.partition(tp) or partition
    for step in partition.queue:
        if isinstance(step, Write):
            turn.settle(step, seen=False)
    kept = tuple(step for step in partition.queue if not isinstance(step, Write))
    turn.put_partition(tp, replace(partition, confirmed=None, queue=kept))
