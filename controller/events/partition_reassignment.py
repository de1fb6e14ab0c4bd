"""Partition reassignment, from one set of replicas to another (Kafka 3.9 `onPartitionReassignment`, KIP-455).

Kontrast predicts a reassignment requested by znode. A request by the API shows first in the controller's write of the
topic's znode.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final

from msgspec.structs import replace

from controller.contract.ids import BrokerId, TopicPartition
from controller.contract.leader_and_isr import LeaderAndIsr
from controller.contract.znodes import ReassignmentEntry, ReassignmentZnode, ZnodeContent, decode
from controller.machines import partition_machine, replica_machine
from controller.machines.replica_machine import Replica
from controller.model.context import Header
from controller.model.controllership import Unfinished
from controller.model.event import Event, EventKind
from controller.model.leadership import AnyAction, BumpLeaderEpoch, Elect, Write
from controller.model.mutable_state import MutableState
from controller.model.topics import Partition
from controller.rules.assignment import ReplicaAssignment
from controller.rules.election import Strategy
from controller.rules.states import ReplicaState
from controller.transaction.transaction import RequestBatch, Transaction

_KIND: Final = EventKind.ZK_PARTITION_REASSIGNMENT
_ON_THE_WAY_OUT = (
    ReplicaState.OFFLINE,
    ReplicaState.DELETION_STARTED,
    ReplicaState.DELETION_SUCCESSFUL,
    ReplicaState.NON_EXISTENT,
)
_REFUSES_FURTHER_FIELDS: Final = (2, 0)  # the first release that does, by Jackson's data binding


class _OldEntry(ReassignmentEntry, frozen=True, forbid_unknown_fields=False):
    """Partition with its target replicas, and perhaps with fields that Kafka does not read."""


class _OldZnode(ZnodeContent, frozen=True):
    """Request in /admin/reassign_partitions, as Kafka reads it up to 1.1."""

    partitions: tuple[_OldEntry, ...]


def requested(data: bytes | str | None, release: tuple[int, int]) -> tuple[ReassignmentEntry, ...]:
    """Return the partitions and target replicas in a request, as this release reads it. Raise ZnodeError."""
    if release >= _REFUSES_FURTHER_FIELDS:
        return decode(data, ReassignmentZnode).partitions
    old = decode(data, _OldZnode).partitions
    return tuple(ReassignmentEntry(each.topic, each.partition, each.replicas) for each in old)


def znode_written(tx: Transaction, entries: Sequence[ReassignmentEntry], *, is_new: bool) -> None:
    """Handle the content of /admin/reassign_partitions. From 1.1 on the controller ignores edits after its creation."""
    header = tx.header
    last = {(entry.topic, entry.partition): entry for entry in entries}
    before = set() if is_new else {(entry.topic, entry.partition) for entry in header.triggers.reassign or ()}
    header.triggers.reassign = tuple(last.values())
    if header.acting and not header.triggers.reassign_unwatched and (is_new or header.profile.hears_edits_of_triggers):
        _run_entries(tx, [entry for key, entry in last.items() if key not in before])


def znode_removed(tx: Transaction) -> None:
    """Handle the removal of /admin/reassign_partitions by the controller, which has finished, or by hand.

    From 2.4 on the controller watches for the next request only if it removed this request itself.
    """
    header = tx.header
    entries = header.triggers.reassign
    header.triggers.reassign = None
    header.term.note_act(header.time_ms)
    if header.acting and not header.profile.reassigns_in_topic_znode and tx.state.record.author == header.term.session:
        _drop_asked_twice(tx, entries or ())
    if header.acting and entries is not None and header.profile.reassigns_in_topic_znode:
        unfinished = [entry for entry in entries if _is_reassigning(tx.state, entry)]
        header.triggers.reassign_unwatched = header.triggers.reassign_unwatched or not entries or bool(unfinished)
    if header.acting and tx.state.record.author in (0, header.term.session):
        _forget_unread(tx, [TopicPartition(entry.topic, entry.partition) for entry in entries or ()])


def judge_unseen(tx: Transaction) -> None:
    """Judge the reassignments after a gap, which may hide that their new replicas got in sync, or their end.

    Up to 2.3 only requests show what is under way, and the controller removes them at the end. From 2.4 on the topic's
    znode shows it, so a plan that neither shows was of a request that no controller read.
    """
    by_topic_znode = tx.header.profile.reassigns_in_topic_znode
    asked = {TopicPartition(entry.topic, entry.partition) for entry in tx.header.triggers.reassign or ()}
    planned = tx.state.every(lambda partition: partition.reassigning or bool(partition.pending_assignments))
    for tp in [tp for tp in planned if tp not in asked]:
        partition = tx.state.topics[tp.topic].partitions[tp.partition]
        shown = partition.zk_assignment or partition.assignment
        if not (by_topic_znode and shown.is_being_reassigned):
            adopt_shown(tx, tp, partition, ReplicaAssignment(shown.replicas))
    _complete_in_sync(tx, reassigning(tx.state))


def _complete_in_sync(tx: Transaction, tps: Iterable[TopicPartition]) -> None:
    for tp in tps:
        found = tx.state.topics[tp.topic].partitions[tp.partition]
        if found.zk_state is not None and isr_reaches_target(found, found.zk_state):
            take_back_waiting(tx, tp)
            tx.events.begin(
                EventKind.PARTITION_REASSIGNMENT_ISR_CHANGE, f"the new replicas of partition {tp} are in sync"
            )
            complete(tx, tp)


def adopt_shown(tx: Transaction, tp: TopicPartition, partition: Partition, shown: ReplicaAssignment) -> None:
    """Adopt the assignment that the topic's znode shows after an unseen reassignment, with no action in flight."""
    for action in partition.queue:
        tx.events.withdraw(tp, action)
    adopted = replace(partition, queue=(), zk_assignment=None, pending_assignments=()).with_assignment(shown)
    tx.state.put_partition(tp, adopted.with_replica_states(tx.state.states_by_brokers(adopted)))


def _forget_unread(tx: Transaction, asked: Sequence[TopicPartition]) -> None:
    """Forget reassignments that the topics' znodes do not show, because the controller never read their requests.

    The API replaced them before, or the controller rewrote the requests' znode from memory. It reads a request as a
    whole, so it goes on with the request's other partitions. A failover has read them, but drops those of topics under
    deletion.
    """
    unread = [event.id for event in tx.events.open_events() if event.kind is _KIND and not event.begun]
    planned = [tp for key in unread for tp in tx.certainty.waiting(tx.events.open_event(key))]
    is_read = any(_is_shown(tx.state.partition(tp)) for tp in asked)
    for tp in dict.fromkeys([*reassigning(tx.state), *planned]):
        topic = tx.state.topics[tp.topic]
        partition = topic.partitions[tp.partition]
        events = [tx.events.open_event(action.event) for action in partition.queue]
        is_loaded = any(event.kind is EventKind.CONTROLLER_FAILOVER for event in events)
        is_dropped = partition.reassigning and (topic.queued_for_deletion or not is_loaded)
        goes_on = is_read and tp in asked and not topic.queued_for_deletion
        if not goes_on and (is_dropped or any(event.id in unread for event in events)):
            _forget(tx, tp, unread)


def _is_shown(partition: Partition | None) -> bool:
    """Return whether the topic's znode shows that the partition's reassignment goes on."""
    return partition is not None and partition.reassigning and not partition.pending_assignments


def forget_unloaded(tx: Transaction) -> None:
    """Forget reassignments of a request that was removed before the new controller loaded it.

    Time shows it, or a later event's write, because a failover takes up requests before any other event.
    """
    header = tx.header
    if header.acting and header.triggers.reassign is None:
        loads = [event for event in header.events.values() if event.kind is EventKind.CONTROLLER_FAILOVER]
        late = [each for each in loads if each.id < header.last_written_event or tx.certainty.has_written_all(each)]
        unread = [each.id for each in late if each.writes_due]
        moving = reassigning(tx.state) if unread else []
        queues = {tp: tx.state.topics[tp.topic].partitions[tp.partition].queue for tp in moving}
        for tp in [tp for tp, queue in queues.items() if any(action.event in unread for action in queue)]:
            _forget(tx, tp, unread)


def _forget(tx: Transaction, tp: TopicPartition, unread: Sequence[int]) -> None:
    """Forget the partition's reassignment in these events if the topic's znode does not show it."""
    if not tx.state.topics[tp.topic].partitions[tp.partition].pending_assignments:
        return
    tx.events.take_back(tp, lambda action: action.event in unread)
    partition = tx.state.topics[tp.topic].partitions[tp.partition]
    shown = partition.zk_assignment or partition.assignment
    kept = replace(partition.with_assignment(shown), zk_assignment=None, pending_assignments=())
    for broker in partition.adding:
        kept = kept.with_replica_state(broker, ReplicaState.NON_EXISTENT)
    tx.state.put_partition(tp, kept)


def _drop_asked_twice(tx: Transaction, entries: Sequence[ReassignmentEntry]) -> None:
    """Drop reassignments that the controller removes from the znode unfinished, because it has their target already.

    A failover took them up, and then the controller's watch. Up to 2.3 the second request ends the first.
    """
    for entry in entries:
        tp = TopicPartition(entry.topic, entry.partition)
        partition = tx.state.partition(tp)
        if partition is not None and partition.reassigning and partition.replicas == partition.assignment.target:
            take_back_waiting(tx, tp)
            partition = tx.state.partition(tp) or partition
            tx.state.put_partition(tp, partition.with_assignment(ReplicaAssignment(partition.replicas)))


def take_up(tx: Transaction) -> None:
    """Take up the entries of /admin/reassign_partitions, then every other reassignment, in a new controller."""
    entries = _with_remembered(tx.header, tx.header.triggers.reassign or ())
    _run_entries(tx, entries, EventKind.CONTROLLER_FAILOVER)
    requested = {TopicPartition(entry.topic, entry.partition) for entry in entries}
    for tp in reassigning(tx.state):
        partition = tx.state.partition(tp)
        if partition is not None and tp not in requested:
            run(tx, tp, partition.assignment)


def adopt(tx: Transaction) -> None:
    """Take over the reassignments that a complete read found, which complete if their new replicas are in sync.

    Up to 2.3 only the request's znode shows them. More replicas in the topic's znode than in the target show that the
    reassignment has begun.
    """
    header = tx.header
    if not header.acting:
        return
    if header.profile.reassigns_in_topic_znode:
        _complete_in_sync(tx, tx.state.amid_touched(lambda partition: partition.reassigning))
        return
    for entry in header.triggers.reassign or ():
        tp = TopicPartition(entry.topic, entry.partition)
        topic, partition = tx.state.topic(tp.topic), tx.state.partition(tp)
        if topic is None or partition is None or topic.queued_for_deletion or partition.replicas == entry.replicas:
            continue
        assignment = partition.assignment.reassign_to(entry.replicas)
        value = partition.zk_state
        if set(entry.replicas) < set(partition.replicas) and value and not set(entry.replicas) <= set(value.isr):
            shown = replace(partition, zk_assignment=partition.assignment)
            tx.state.put_partition(tp, shown.with_assignment(assignment))
        else:
            tx.events.begin(_KIND, f"partition {tp} moves to {list(entry.replicas)} by znode")
            run(tx, tp, assignment)


def remember(state: MutableState) -> None:
    """Remember the reassignments of a controller that resigns. Up to 0.10 it resumes them once it is elected again."""
    header = state.header
    registered = header.brokers.get(header.controller)
    if registered is not None and not header.profile.forgets_reassignments:
        found = [(tp, partition) for tp in reassigning(state) if (partition := state.partition(tp)) is not None]
        entries = tuple(ReassignmentEntry(tp.topic, tp.partition, each.assignment.target) for tp, each in found)
        header.former.remember(header.controller, Unfinished(registered.epoch, entries))


def _with_remembered(header: Header, requested: Sequence[ReassignmentEntry]) -> Sequence[ReassignmentEntry]:
    registered = header.brokers.get(header.controller)
    unfinished = header.former.unfinished.get(header.controller)
    if registered is None or unfinished is None or unfinished.epoch != registered.epoch:
        return requested
    entries = {(entry.topic, entry.partition): entry for entry in (*unfinished.entries, *requested)}
    return tuple(entries.values())


def _is_reassigning(state: MutableState, entry: ReassignmentEntry) -> bool:
    partition = state.partition(TopicPartition(entry.topic, entry.partition))
    return partition is not None and partition.reassigning


def _run_entries(tx: Transaction, entries: Sequence[ReassignmentEntry], kind: EventKind = _KIND) -> None:
    by_failover = kind is EventKind.CONTROLLER_FAILOVER
    drops_queued = tx.header.profile.failover_drops_reassignments_of_queued_topics or not by_failover
    for entry in entries:
        tp = TopicPartition(entry.topic, entry.partition)
        topic, partition = tx.state.topic(tp.topic), tx.state.partition(tp)
        if topic is None or partition is None or (topic.queued_for_deletion and drops_queued):
            continue
        if tx.header.profile.reassigns_in_topic_znode or partition.replicas != entry.replicas:
            # One event per partition. The controller handles them in the unknown order of its hash maps.
            tx.events.begin(kind, f"partition {tp} was asked to move to {list(entry.replicas)} by znode")
            run(tx, tp, partition.assignment.reassign_to(entry.replicas))


def resume_on(tx: Transaction, broker: BrokerId) -> None:
    """Resume reassignments to a broker that started, each with an increment of its leader epoch."""
    for tp in reassigning(tx.state):
        partition = tx.state.partition(tp)
        if partition is not None and broker in partition.assignment.target:
            run(tx, tp, partition.assignment)


def reassigning(state: MutableState) -> list[TopicPartition]:
    """Return the partitions that are being reassigned."""
    return state.unsettled(lambda partition: partition.reassigning)


def run(tx: Transaction, tp: TopicPartition, assignment: ReplicaAssignment) -> None:
    """Reassign a partition.

    Wait for its new replicas, or complete the reassignment if they are in sync.
    """
    partition = tx.state.partition(tp)
    assert partition is not None, f"{tp} is to be reassigned, and is not known"
    if partition.assignment != assignment:
        dropped = [broker for broker in partition.replicas if broker not in assignment.replicas]
        _remember(tx.state, tp, partition, assignment)
        _stop(tx, tp, dropped)
    partition = tx.state.partition(tp)
    value = partition.value(tx.header.controller_epoch) if partition else None
    if partition is None or value is None:
        return
    if assignment.is_being_reassigned and not set(assignment.target) <= set(value.isr):
        _wait_for_new_replicas(tx, tp, assignment)
    else:
        complete(tx, tp)


def _remember(state: MutableState, tp: TopicPartition, partition: Partition, assignment: ReplicaAssignment) -> None:
    """Change the assignment in the controller's memory. The topic's znode keeps the old assignment until a write."""
    zk_assignment = partition.zk_assignment or partition.assignment
    pending = (*partition.pending_assignments, assignment)
    state.put_partition(
        tp, replace(partition.with_assignment(assignment), zk_assignment=zk_assignment, pending_assignments=pending)
    )


def _wait_for_new_replicas(tx: Transaction, tp: TopicPartition, assignment: ReplicaAssignment) -> None:
    partition_machine.bump(tx, tp)
    batch = RequestBatch(tx)
    batch.leader_and_isr(assignment.origin, tp, is_new=False, read=True)
    batch.leader_and_isr(assignment.adding, tp, is_new=tx.header.profile.adding_replicas_are_new, read=True)
    batch.send()
    _enter(tx, tp, assignment.adding, ReplicaState.NEW)


def take_back_waiting(tx: Transaction, tp: TopicPartition) -> None:
    """End the wait for new replicas that were in sync before the wait began, because the controller reads that ISR."""
    partition = tx.state.partition(tp)
    first = next((action for action in partition.queue if isinstance(action, Write)), None) if partition else None
    if partition is None or not isinstance(first, BumpLeaderEpoch):
        return
    tx.events.take_back(tp, lambda action: action.event == first.event and action.at_batch >= first.at_batch)


def resume_completed_by(tx: Transaction, event: Event) -> None:
    """Let reassignments go on that `event` would complete, because the event is about to be taken back."""
    for tp in tx.certainty.waiting(event):
        partition = tx.state.topics[tp.topic].partitions[tp.partition]
        if partition.pending_assignments and any(_completes(partition, event, action) for action in partition.queue):
            *pending, target = partition.pending_assignments
            before = pending[-1] if pending else partition.zk_assignment or partition.assignment
            is_told = before.is_being_reassigned or target == before
            goes_on = partition.with_assignment(before if is_told else before.reassign_to(target.replicas))
            shown = partition.zk_assignment if goes_on.assignment != partition.zk_assignment else None
            tx.state.put_partition(tp, replace(goes_on, zk_assignment=shown, pending_assignments=tuple(pending)))


def _completes(partition: Partition, event: Event, action: AnyAction) -> bool:
    moves_leader = isinstance(action, BumpLeaderEpoch) or (
        isinstance(action, Elect) and action.strategy is Strategy.REASSIGN
    )
    return action.event == event.id and moves_leader and not partition.reassigning


def complete(tx: Transaction, tp: TopicPartition) -> None:
    """Complete a reassignment whose target is in sync.

    Elect a leader in the target, and drop the other replicas.
    """
    partition = tx.state.partition(tp)
    assert partition is not None, f"{tp} was reassigned, and is not known"
    assignment = partition.assignment
    by_topic_znode = tx.header.profile.reassigns_in_topic_znode
    _enter(tx, tp, assignment.adding if by_topic_znode else assignment.target, ReplicaState.ONLINE)
    partition = tx.state.partition(tp) or partition
    _remember(tx.state, tp, partition, ReplicaAssignment(assignment.target))
    receivers = assignment.target if by_topic_znode else assignment.replicas
    _move_leader(tx, tp, assignment.target, receivers)
    _stop(tx, tp, assignment.removing)


def _move_leader(
    tx: Transaction, tp: TopicPartition, target: tuple[BrokerId, ...], receivers: tuple[BrokerId, ...]
) -> None:
    partition = tx.state.partition(tp)
    value = partition.value(tx.header.controller_epoch) if partition else None
    if partition is None or value is None:
        return
    if value.leader in target and tx.state.is_online(value.leader, partition):
        partition_machine.bump(tx, tp)
        batch = RequestBatch(tx)
        batch.leader_and_isr(receivers, tp, is_new=False, read=True)
        batch.send()
    else:
        partition_machine.elect(tx, [tp], Strategy.REASSIGN)


def _stop(tx: Transaction, tp: TopicPartition, brokers: Iterable[BrokerId]) -> None:
    leaving = list(brokers)
    for state in _ON_THE_WAY_OUT if leaving else ():
        _enter(tx, tp, leaving, state)


def _enter(tx: Transaction, tp: TopicPartition, brokers: Iterable[BrokerId], state: ReplicaState) -> None:
    replicas = [Replica(tp, broker) for broker in brokers]
    if replicas:
        replica_machine.enter_state(tx, replicas, state)


def isr_reaches_target(partition: Partition, value: LeaderAndIsr) -> bool:
    """Return whether the reassignment can complete with this ISR."""
    return partition.reassigning and set(partition.assignment.target) <= set(value.isr)
