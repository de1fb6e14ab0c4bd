"""Partition states as ZooKeeper shows them, held against what the controller was expected to write.

Here belongs the comparison: a write confirms steps that were expected, is a leader's change of the ISR, or is left to
`explanation`. The observed value always wins.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

import msgspec

from controller import alert_kinds, deposed, explanation, happenings, reassignment, suspicion, topic_deletion
from controller.confirmation import confirm, count_isr_change, goes_offline, prune
from controller.context import FOLLOWING, IsrNotification
from controller.leadership import AnyStep, LeaderAndIsr, Move, Write, speaking_of_copy
from controller.states import ReplicaState
from controller.topics import Partition, TopicPartition
from controller.turn import Turn, replace
from controller.znodes import StateZnode

# So many are remembered: more wait only for a controller that reads none.
_NOTIFICATIONS_KEPT: Final = 1_000


def state_written(turn: Turn, tp: TopicPartition, znode: StateZnode, version: int) -> None:
    """A partition's state znode has this value."""
    partition = turn.partition(tp)
    if partition is None:
        cause = f"{tp} has a state but is not in its topic's assignment: the topic may be half deleted, or was edited"
        happenings.note(turn, alert_kinds.ORPHAN_STATE, cause, about=str(tp))
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
    suspicion.suspect(turn, tp, partition, written)
    if deposed.goes_on(turn, before, written):
        deposed.go_on(turn)
        partition = turn.partition(tp) or partition
    if _was_reassigned_unseen(partition, written):
        adopt_announced(turn, tp, partition, written)
    elif not turn.is_idle and (explanation.read_together(turn, tp, written) or confirm(turn, tp, written)):
        topic_deletion.written_before_asking(turn, tp.topic)
    elif before is not None and before.leader_epoch == written.leader_epoch and before.leader == written.leader:
        _change_isr(turn, tp, partition, written)
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


def adopt_announced(turn: Turn, tp: TopicPartition, partition: Partition, written: LeaderAndIsr) -> None:
    """Take what the topic's znode says for the assignment: how the controller got there was not seen."""
    assert partition.announced is not None
    cause = f"{tp} was reassigned to {list(partition.announced.replicas)}: Kontrast did not see the beginning"
    happenings.note(turn, alert_kinds.UNEXPLAINED_WRITE, cause, about=str(tp))
    for step in partition.queue:
        turn.withdraw(tp, step)
    moved = replace(partition, queue=(), announced=None, confirmed=written).with_assignment(partition.announced)
    states = {
        replica: ReplicaState.ONLINE if turn.is_online(replica, moved) else ReplicaState.OFFLINE
        for replica in moved.replicas
    }
    turn.put_partition(tp, replace(moved, replica_states=states))


def lost_isr_changes(before: LeaderAndIsr, written: LeaderAndIsr) -> int:
    """How many ISR changes of the leader were overwritten before they were read.

    Each write makes the znode's version grow, but only the controller's make the leader epoch grow.
    """
    versions = written.partition_epoch - before.partition_epoch
    return versions - (written.leader_epoch - before.leader_epoch)


def confirm_across_lost(turn: Turn, tp: TopicPartition, before: LeaderAndIsr, written: LeaderAndIsr) -> bool:
    """Follow an ISR change that nobody read, with all that it lets the controller do, if that leads to the value."""
    if lost_isr_changes(before, written) <= 0:
        return False
    for isr in _lost_in_front(before, written):
        trial = turn.fork()
        partition = trial.partition(tp)
        assert partition is not None
        between = msgspec.structs.replace(before, isr=isr, partition_epoch=before.partition_epoch + 1)
        _change_isr(trial, tp, partition, between)
        if confirm(trial, tp, written):
            turn.adopt(trial)
            return True
    return False


def _lost_in_front(before: LeaderAndIsr, written: LeaderAndIsr) -> list[tuple[int, ...]]:
    """The ISRs that may have been there before the controller's writes."""
    joined = tuple(member for member in written.isr if member not in before.isr)
    return list(dict.fromkeys([written.isr, (*before.isr, *joined)]))


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


def _change_isr(turn: Turn, tp: TopicPartition, partition: Partition, written: LeaderAndIsr) -> None:
    """The leader changed the ISR; what the controller is still to write is folded over the new one."""
    before = partition.confirmed
    assert before is not None, "an ISR change of a partition without a state"
    count_isr_change(turn, before.isr, written.isr)
    header = turn.header
    hears_at_once = header.profile.hears_isr_changes_at_once
    known = partition.known if hears_at_once else partition.known or before
    changed = replace(partition, confirmed=written, known=known)
    if partition.queue:
        queue = turn.frozen(partition)
        if known is not None:
            queue, known = _until_read(queue, known)
        turn.put_partition(tp, replace(changed, known=known, queue=queue))
        # A leader that writes itself may do so between what the controller hears of and what it then reads.
        prune(turn, tp, joined=() if hears_at_once else set(written.isr) - set(before.isr))
        changed = turn.partition(tp) or changed
    else:
        turn.put_partition(tp, changed)
    if not header.acting:
        return
    if hears_at_once and header.brokers:
        turn.announce("AlterPartitionReceived", f"the leader of partition {tp} changed its ISR", tp)
    if reassignment.isr_reaches_target(changed, written):
        kind = "AlterPartitionReceived" if hears_at_once else "PartitionReassignmentIsrChange"
        reassignment.take_back_waiting(turn, tp)
        turn.begin(kind, f"the new replicas of partition {tp} are in sync")
        reassignment.complete(turn, tp)


def _until_read(queue: tuple[AnyStep, ...], copy: LeaderAndIsr) -> tuple[tuple[AnyStep, ...], LeaderAndIsr | None]:
    """A replica is still to go offline, for which the controller reads the state: only until then it tells its copy."""
    at = next((at for at, step in enumerate(queue) if isinstance(step, Move) and goes_offline(step)), None)
    if at is None:
        return queue, copy
    return (*speaking_of_copy(queue[:at], copy), *queue[at:]), None


def isr_changes_notified(turn: Turn, name: str, tps: tuple[TopicPartition, ...]) -> None:
    """Leaders tell the controller of ISR changes that they wrote, by a znode of this name: it will read the states."""
    header = turn.header
    header.witness(notifies_isr_changes=1)
    if len(header.isr_notifications) < _NOTIFICATIONS_KEPT:
        header.isr_notifications = {**header.isr_notifications, name: IsrNotification(header.time_ms, tps)}


def isr_notification_removed(turn: Turn, name: str) -> None:
    """The controller removed a notification: it has just read the states that it names, behind all it wrote before."""
    waiting = turn.header.isr_notifications
    if name in waiting:
        isr_changes_read(turn, waiting[name].partitions)
        turn.header.isr_notifications = {key: told for key, told in waiting.items() if key != name}


def isr_changes_read(turn: Turn, tps: Iterable[TopicPartition]) -> None:
    """The controller read these states again, of which leaders had told it."""
    turn.header.witness(notifies_isr_changes=1)
    for tp in tps:
        partition = turn.partition(tp)
        if partition is not None and partition.known is not None:
            turn.put_partition(tp, replace(partition, known=None))
