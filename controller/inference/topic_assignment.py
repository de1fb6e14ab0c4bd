"""Replica assignments as topics' znodes show them, held against what the controller was expected to write.

A written assignment is one that was expected, one of a reassignment that the API asked for, or an edit by hand.
"""

from __future__ import annotations

from controller.alerts import kinds, occurrences
from controller.contract.znodes import TopicZnode
from controller.events import controller_failover, partition_reassignment
from controller.events.topic_change import assignment_in
from controller.inference import deferral
from controller.model.event import EventKind
from controller.model.leadership import LeaderAndIsr
from controller.model.topics import Partition, Topic, TopicPartition
from controller.rules.assignment import ReplicaAssignment
from controller.rules.states import ReplicaState
from controller.transaction.transaction import Transaction, replace


def topic_written(tx: Transaction, name: str, known: Topic, znode: TopicZnode) -> None:
    """Compare what a topic's znode says now with what was expected for the partitions that were known."""
    for number in known.partitions:
        assignment_written(tx, TopicPartition(name, number), assignment_in(znode, number))
    if known.exists and known.topic_id is None and znode.topic_id is not None:
        _show_creation_begun(tx, name)


def _show_creation_begun(tx: Transaction, name: str) -> None:
    """A topic that a hand made without an id got one: before all else, the controller that creates it gives it one."""
    for event in tx.open_events():
        if (
            event.kind is EventKind.TOPIC_CHANGE
            and name in event.topics
            and not controller_failover.may_have_read(tx, event)
        ):
            tx.show_begun(tx.open_event(event.id))


def assignment_written(tx: Transaction, tp: TopicPartition, written: ReplicaAssignment) -> None:
    """The topic's znode says this of a partition that was known: the controller's own write, or an edit by hand."""
    partition = tx.partition(tp)
    if partition is None or written == (partition.zk_assignment or partition.assignment):
        return
    if written == partition.assignment and not partition.pending_assignments:
        tx.put_partition(tp, replace(partition, zk_assignment=None))  # memory wins: an edit was written over
        return
    at = next((at for at, due in enumerate(partition.pending_assignments) if _same(tx, due, written)), None)
    if at is not None:
        left = partition.pending_assignments[at + 1 :]
        zk_assignment = None if written == partition.assignment else written
        tx.put_partition(tp, replace(partition, zk_assignment=zk_assignment, pending_assignments=left))
    elif partition.reassigning and written == ReplicaAssignment(partition.assignment.target):
        # It is complete: nobody read the ISR that let the controller complete it.
        tx.begin(EventKind.ALTER_PARTITION_RECEIVED, f"the new replicas of partition {tp} are in sync")
        partition_reassignment.complete(tx, tp)
        assignment_written(tx, tp, written)
    elif written.is_being_reassigned or partition.reassigning or _is_put_in_order(tx, partition, written):
        _reassigned(tx, tp, partition, written)
    elif partition.zk_state is not None and set(partition.zk_state.isr) - set(partition.replicas):
        # A replica that was never assigned is in sync: a reassignment that was done before its beginning was read.
        adopt_announced(tx, tp, replace(partition, zk_assignment=written), partition.zk_state)
    else:
        tx.put_partition(tp, replace(partition, zk_assignment=written))
        edit = f"from {list(partition.replicas)} to {list(written.replicas)}"
        cause = f"the assignment of {tp} was edited by hand {edit}: it is without effect until the next failover"
        occurrences.note(tx, kinds.ASSIGNMENT_EDITED, cause, about=str(tp))


def _is_put_in_order(tx: Transaction, partition: Partition, written: ReplicaAssignment) -> bool:
    """Whether the controller reassigns the partition to the replicas that it has, in another order; else it was a hand.

    A live watch does not tell whose write it is. The controller's is the likelier one: tools ask for that often.
    """
    header = tx.header
    by_api = header.profile.reassigns_in_topic_znode and header.acting and partition.zk_state is not None
    by_controller = tx.record.author in (0, header.term.session)
    return by_api and by_controller and sorted(partition.replicas) == sorted(written.replicas)


def _same(tx: Transaction, due: ReplicaAssignment, written: ReplicaAssignment) -> bool:
    if tx.header.profile.reassigns_in_topic_znode:
        return written == due
    # Up to 2.3 the znode holds the inflated list alone, in an order that a hash set gave it.
    return set(written.replicas) == set(due.replicas)


def _reassigned(tx: Transaction, tp: TopicPartition, partition: Partition, written: ReplicaAssignment) -> None:
    if tx.header.acting:
        with deferral.behind(tx, deferral.overtaken(tx)):
            tx.begin(EventKind.API_PARTITION_REASSIGNMENT, f"partition {tp} moves to {list(written.target)}")
            partition_reassignment.run(tx, tp, written)
    else:
        tx.put_partition(tp, partition.with_assignment(written))
    moved = tx.partition(tp)
    assert moved is not None, f"{tp} is moving, and is not known"
    left = (
        moved.pending_assignments[moved.pending_assignments.index(written) + 1 :]
        if written in moved.pending_assignments
        else ()
    )
    tx.put_partition(tp, replace(moved, zk_assignment=written if left else None, pending_assignments=left))


def adopt_announced(tx: Transaction, tp: TopicPartition, partition: Partition, written: LeaderAndIsr) -> None:
    """Take what the topic's znode says for the assignment: how the controller got there was not seen."""
    assert partition.zk_assignment is not None
    cause = f"{tp} was reassigned to {list(partition.zk_assignment.replicas)}: Kontrast did not see the beginning"
    occurrences.note(tx, kinds.UNEXPLAINED_WRITE, cause, about=str(tp))
    for step in partition.queue:
        tx.withdraw(tp, step)
    moved = replace(partition, queue=(), zk_assignment=None, zk_state=written).with_assignment(partition.zk_assignment)
    states = {
        replica: ReplicaState.ONLINE if tx.is_online(replica, moved) else ReplicaState.OFFLINE
        for replica in moved.replicas
    }
    tx.put_partition(tp, replace(moved, replica_states=states))
