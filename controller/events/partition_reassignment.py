"""Reassignment: a partition's way from one set of replicas to another.

Here belongs what Kafka 3.9's `onPartitionReassignment` does (KIP-455, from 2.4 on). A reassignment that a znode asks
for is predicted; one that the API asked for shows first in what the controller writes into the topic's znode.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from controller.contract.znodes import ReassignmentEntry
from controller.machines import partition_machine, replica_machine
from controller.machines.replica_machine import Replica
from controller.model.context import Unfinished
from controller.model.leadership import Bump, LeaderAndIsr, Write
from controller.model.topics import Partition, TopicPartition
from controller.rules.assignment import ReplicaAssignment
from controller.rules.election import Strategy
from controller.rules.states import ReplicaState
from controller.transaction.request_batch import RequestBatch
from controller.transaction.transaction import Turn, replace

_ON_THE_WAY_OUT = (
    ReplicaState.OFFLINE,
    ReplicaState.DELETION_STARTED,
    ReplicaState.DELETION_SUCCESSFUL,
    ReplicaState.NON_EXISTENT,
)


def znode_written(turn: Turn, entries: Sequence[ReassignmentEntry], *, is_new: bool) -> None:
    """/admin/reassign_partitions has this content; from 1.1 on only its creation counts, later edits are ignored."""
    header = turn.header
    last = {(entry.topic, entry.partition): entry for entry in entries}
    known = set() if is_new else {(entry.topic, entry.partition) for entry in header.reassign_znode or ()}
    header.reassign_znode = tuple(last.values())
    if header.acting and not header.reassign_blind and (is_new or header.profile.hears_edits_of_triggers):
        _run_entries(turn, [entry for key, entry in last.items() if key not in known])


def znode_removed(turn: Turn) -> None:
    """/admin/reassign_partitions vanished: the controller is done with it, or somebody took it away.

    From 2.4 on the controller does not watch for the next one unless it removed this one itself.
    """
    header = turn.header
    entries = header.reassign_znode
    header.reassign_znode = None
    if header.acting and entries is not None and header.profile.reassigns_in_topic_znode:
        unfinished = [entry for entry in entries if _is_reassigning(turn, entry)]
        header.reassign_blind = header.reassign_blind or not entries or bool(unfinished)


def take_up(turn: Turn) -> None:
    """A new controller takes up what /admin/reassign_partitions asks for, then every other reassignment it finds."""
    entries = _with_remembered(turn, turn.header.reassign_znode or ())
    _run_entries(turn, entries, "ControllerFailover")
    asked = {TopicPartition(entry.topic, entry.partition) for entry in entries}
    for tp in reassigning(turn):
        partition = turn.partition(tp)
        if partition is not None and tp not in asked:
            run(turn, tp, partition.assignment)


def remember(turn: Turn) -> None:
    """A controller resigns: up to 0.10 its process goes on with its reassignments once it is elected again."""
    header = turn.header
    registered = header.brokers.get(header.controller)
    if registered is not None and not header.profile.forgets_reassignments:
        moving = [(tp, partition) for tp in reassigning(turn) if (partition := turn.partition(tp)) is not None]
        entries = tuple(ReassignmentEntry(tp.topic, tp.partition, moved.assignment.target) for tp, moved in moving)
        header.unfinished = {**header.unfinished, header.controller: Unfinished(registered.epoch, entries)}


def _with_remembered(turn: Turn, asked: Sequence[ReassignmentEntry]) -> Sequence[ReassignmentEntry]:
    registered = turn.header.brokers.get(turn.header.controller)
    unfinished = turn.header.unfinished.get(turn.header.controller)
    if registered is None or unfinished is None or unfinished.epoch != registered.epoch:
        return asked
    known = {(entry.topic, entry.partition): entry for entry in (*unfinished.entries, *asked)}
    return tuple(known.values())


def _is_reassigning(turn: Turn, entry: ReassignmentEntry) -> bool:
    partition = turn.partition(TopicPartition(entry.topic, entry.partition))
    return partition is not None and partition.reassigning


def _run_entries(turn: Turn, entries: Sequence[ReassignmentEntry], kind: str = "ZkPartitionReassignment") -> None:
    by_failover = kind == "ControllerFailover"
    drops_queued = turn.header.profile.failover_drops_reassignments_of_queued_topics or not by_failover
    for entry in entries:
        tp = TopicPartition(entry.topic, entry.partition)
        topic, partition = turn.topic(tp.topic), turn.partition(tp)
        if topic is None or partition is None or (topic.queued and drops_queued):
            continue
        if turn.header.profile.reassigns_in_topic_znode or partition.replicas != entry.replicas:
            # One event each: in which order the controller takes them is known only to its hash maps.
            turn.begin(kind, f"partition {tp} was asked to move to {list(entry.replicas)} by znode")
            run(turn, tp, partition.assignment.reassign_to(entry.replicas))


def resume_on(turn: Turn, broker: int) -> None:
    """A broker is back: reassignments that it is a target of run again, at the cost of a leader epoch each."""
    for tp in reassigning(turn):
        partition = turn.partition(tp)
        if partition is not None and broker in partition.assignment.target:
            run(turn, tp, partition.assignment)


def reassigning(turn: Turn) -> list[TopicPartition]:
    """The partitions that are being reassigned."""
    return turn.unsettled(lambda partition: partition.reassigning)


def run(turn: Turn, tp: TopicPartition, assignment: ReplicaAssignment) -> None:
    """Take a partition to an assignment: wait for its new replicas, or complete it if they are in sync."""
    partition = turn.partition(tp)
    assert partition is not None, f"{tp} is to move, and is not known"
    if partition.assignment != assignment:
        dropped = [broker for broker in partition.replicas if broker not in assignment.replicas]
        _remember(turn, tp, partition, assignment)
        _stop(turn, tp, dropped)
    partition = turn.partition(tp)
    value = partition.value(turn.header.controller_epoch) if partition else None
    if partition is None or value is None:
        return
    if assignment.is_being_reassigned and not set(assignment.target) <= set(value.isr):
        _wait_for_new_replicas(turn, tp, assignment)
    else:
        complete(turn, tp)


def _remember(turn: Turn, tp: TopicPartition, partition: Partition, assignment: ReplicaAssignment) -> None:
    """Change the assignment in the controller's memory; the topic's znode says the old one until it is written."""
    announced = partition.announced or partition.assignment
    expected = (*partition.expected, assignment)
    turn.put_partition(tp, replace(partition.with_assignment(assignment), announced=announced, expected=expected))


def _wait_for_new_replicas(turn: Turn, tp: TopicPartition, assignment: ReplicaAssignment) -> None:
    partition_machine.bump(turn, tp)
    batch = RequestBatch(turn)
    batch.leader_and_isr(assignment.origin, tp, is_new=False, read=True)
    batch.leader_and_isr(assignment.adding, tp, is_new=turn.header.profile.adding_replicas_are_new, read=True)
    batch.send()
    _enter(turn, tp, assignment.adding, ReplicaState.NEW)


def take_back_waiting(turn: Turn, tp: TopicPartition) -> None:
    """The new replicas got in sync before the controller had begun to wait for them: when it reads the ISR they are."""
    partition = turn.partition(tp)
    first = next((step for step in partition.queue if isinstance(step, Write)), None) if partition else None
    if partition is None or not isinstance(first, Bump):
        return
    turn.take_back(tp, lambda step: step.event == first.event and step.at_pass >= first.at_pass)


def complete(turn: Turn, tp: TopicPartition) -> None:
    """The target is in sync: make it the assignment, move the leader into it, drop the other replicas."""
    partition = turn.partition(tp)
    assert partition is not None, f"{tp} has moved, and is not known"
    assignment = partition.assignment
    by_topic_znode = turn.header.profile.reassigns_in_topic_znode
    _enter(turn, tp, assignment.adding if by_topic_znode else assignment.target, ReplicaState.ONLINE)
    partition = turn.partition(tp) or partition
    _remember(turn, tp, partition, ReplicaAssignment(assignment.target))
    told = assignment.target if by_topic_znode else assignment.replicas
    _move_leader(turn, tp, assignment.target, told)
    _stop(turn, tp, assignment.removing)


def _move_leader(turn: Turn, tp: TopicPartition, target: tuple[int, ...], told: tuple[int, ...]) -> None:
    partition = turn.partition(tp)
    value = partition.value(turn.header.controller_epoch) if partition else None
    if partition is None or value is None:
        return
    if value.leader in target and turn.is_online(value.leader, partition):
        partition_machine.bump(turn, tp)
        batch = RequestBatch(turn)
        batch.leader_and_isr(told, tp, is_new=False, read=True)
        batch.send()
    else:
        partition_machine.elect(turn, [tp], Strategy.REASSIGN)


def _stop(turn: Turn, tp: TopicPartition, brokers: Iterable[int]) -> None:
    leaving = list(brokers)
    for state in _ON_THE_WAY_OUT if leaving else ():
        _enter(turn, tp, leaving, state)


def _enter(turn: Turn, tp: TopicPartition, brokers: Iterable[int], state: ReplicaState) -> None:
    replicas = [Replica(tp, broker) for broker in brokers]
    if replicas:
        replica_machine.enter_state(turn, replicas, state)


def isr_reaches_target(partition: Partition, value: LeaderAndIsr) -> bool:
    """Whether an ISR change lets the reassignment complete."""
    return partition.reassigning and set(partition.assignment.target) <= set(value.isr)
