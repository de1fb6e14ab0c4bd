"""Replica assignments as topics' znodes show them, held against what the controller was expected to write.

A written assignment is one that was expected, one of a reassignment that the API asked for, or an edit by hand.
"""

from __future__ import annotations

from controller.alerts import kinds, occurrences
from controller.contract.znodes import TopicZnode
from controller.events import controller_failover, partition_reassignment
from controller.events.topic_change import assignment_in
from controller.inference import deferral
from controller.model.leadership import LeaderAndIsr
from controller.model.topics import Partition, Topic, TopicPartition
from controller.rules.assignment import ReplicaAssignment
from controller.rules.states import ReplicaState
from controller.transaction.transaction import Turn, replace


def topic_written(turn: Turn, name: str, known: Topic, znode: TopicZnode) -> None:
    """Compare what a topic's znode says now with what was expected for the partitions that were known."""
    for number in known.partitions:
        assignment_written(turn, TopicPartition(name, number), assignment_in(znode, number))
    if known.exists and known.topic_id is None and znode.topic_id is not None:
        _show_creation_begun(turn, name)


def _show_creation_begun(turn: Turn, name: str) -> None:
    """A topic that a hand made without an id got one: before all else, the controller that creates it gives it one."""
    for event in turn.open_events():
        if event.kind == "TopicChange" and name in event.topics and not controller_failover.may_have_read(turn, event):
            turn.show_begun(turn.open_event(event.id))


def assignment_written(turn: Turn, tp: TopicPartition, written: ReplicaAssignment) -> None:
    """The topic's znode says this of a partition that was known: the controller's own write, or an edit by hand."""
    partition = turn.partition(tp)
    if partition is None or written == (partition.announced or partition.assignment):
        return
    if written == partition.assignment and not partition.expected:
        turn.put_partition(tp, replace(partition, announced=None))  # memory wins: an edit was written over
        return
    at = next((at for at, due in enumerate(partition.expected) if _same(turn, due, written)), None)
    if at is not None:
        left = partition.expected[at + 1 :]
        announced = None if written == partition.assignment else written
        turn.put_partition(tp, replace(partition, announced=announced, expected=left))
    elif partition.reassigning and written == ReplicaAssignment(partition.assignment.target):
        # It is complete: nobody read the ISR that let the controller complete it.
        turn.begin("AlterPartitionReceived", f"the new replicas of partition {tp} are in sync")
        partition_reassignment.complete(turn, tp)
        assignment_written(turn, tp, written)
    elif written.is_being_reassigned or partition.reassigning or _is_put_in_order(turn, partition, written):
        _reassigned(turn, tp, partition, written)
    elif partition.confirmed is not None and set(partition.confirmed.isr) - set(partition.replicas):
        # A replica that was never assigned is in sync: a reassignment that was done before its beginning was read.
        adopt_announced(turn, tp, replace(partition, announced=written), partition.confirmed)
    else:
        turn.put_partition(tp, replace(partition, announced=written))
        edit = f"from {list(partition.replicas)} to {list(written.replicas)}"
        cause = f"the assignment of {tp} was edited by hand {edit}: it is without effect until the next failover"
        occurrences.note(turn, kinds.ASSIGNMENT_EDITED, cause, about=str(tp))


def _is_put_in_order(turn: Turn, partition: Partition, written: ReplicaAssignment) -> bool:
    """Whether the controller reassigns the partition to the replicas that it has, in another order; else it was a hand.

    A live watch does not tell whose write it is. The controller's is the likelier one: tools ask for that often.
    """
    header = turn.header
    by_api = header.profile.reassigns_in_topic_znode and header.acting and partition.confirmed is not None
    by_controller = turn.record.author in (0, header.controller_session)
    return by_api and by_controller and sorted(partition.replicas) == sorted(written.replicas)


def _same(turn: Turn, due: ReplicaAssignment, written: ReplicaAssignment) -> bool:
    if turn.header.profile.reassigns_in_topic_znode:
        return written == due
    # Up to 2.3 the znode holds the inflated list alone, in an order that a hash set gave it.
    return set(written.replicas) == set(due.replicas)


def _reassigned(turn: Turn, tp: TopicPartition, partition: Partition, written: ReplicaAssignment) -> None:
    if turn.header.acting:
        with deferral.behind(turn, deferral.overtaken(turn)):
            turn.begin("ApiPartitionReassignment", f"partition {tp} moves to {list(written.target)}")
            partition_reassignment.run(turn, tp, written)
    else:
        turn.put_partition(tp, partition.with_assignment(written))
    moved = turn.partition(tp)
    assert moved is not None, f"{tp} is moving, and is not known"
    left = moved.expected[moved.expected.index(written) + 1 :] if written in moved.expected else ()
    turn.put_partition(tp, replace(moved, announced=written if left else None, expected=left))


def adopt_announced(turn: Turn, tp: TopicPartition, partition: Partition, written: LeaderAndIsr) -> None:
    """Take what the topic's znode says for the assignment: how the controller got there was not seen."""
    assert partition.announced is not None
    cause = f"{tp} was reassigned to {list(partition.announced.replicas)}: Kontrast did not see the beginning"
    occurrences.note(turn, kinds.UNEXPLAINED_WRITE, cause, about=str(tp))
    for step in partition.queue:
        turn.withdraw(tp, step)
    moved = replace(partition, queue=(), announced=None, confirmed=written).with_assignment(partition.announced)
    states = {
        replica: ReplicaState.ONLINE if turn.is_online(replica, moved) else ReplicaState.OFFLINE
        for replica in moved.replicas
    }
    turn.put_partition(tp, replace(moved, replica_states=states))
