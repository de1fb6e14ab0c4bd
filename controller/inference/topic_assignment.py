"""Replica assignments in topic znodes, compared with the assignments that the controller was expected to write.

A written assignment is expected, follows from a reassignment requested by the API, or is an edit by hand.
"""

from __future__ import annotations

from typing import Final

from msgspec.structs import replace

from controller.alerts import occurrences
from controller.contract.ids import TopicPartition
from controller.contract.leader_and_isr import LeaderAndIsr
from controller.contract.znodes import TopicZnode
from controller.events import (
    controller_failover,
    fenced_controller,
    migration,
    partition_reassignment,
    unfenced_controller,
)
from controller.inference import deferral
from controller.model.context import Header
from controller.model.event import EventKind
from controller.model.leadership import Create
from controller.model.mutable_state import MutableState
from controller.model.topics import Partition, Topic
from controller.rules.assignment import ReplicaAssignment, assignment_in
from controller.says.alert_kinds import kinds
from controller.says.alert_kinds.divergences import Disagreement
from controller.transaction.transaction import Transaction
from wording.sentences import in_order

_COMPLETIONS: Final = (EventKind.PARTITION_REASSIGNMENT_ISR_CHANGE, EventKind.ALTER_PARTITION_RECEIVED)
COMPLETED_UNREAD: Final = "reassignment-completed-unread"  # the rule of inference for an ISR that was not read


def topic_written(tx: Transaction, name: str, before: Topic | None, znode: TopicZnode) -> None:
    """Compare the assignments in a topic's znode with the expected assignments."""
    unfenced_controller.resume_author(tx)
    is_read = unfenced_controller.goes_on(tx) or controller_failover.was_before_load(tx.state)
    loads = is_read and controller_failover.load_in_flight(tx) is not None
    for number in tx.state.topics[name].partitions:
        tp, written = TopicPartition(name, number), assignment_in(znode, number)
        partition = tx.state.partition(tp)
        if loads and partition is not None and written != partition.assignment:
            found = replace(partition, zk_assignment=None, pending_assignments=()).with_assignment(written)
            tx.state.put_partition(tp, found)
            controller_failover.load_again(tx, tp)
        else:
            assignment_written(tx, tp, written)
    if before is not None and before.exists and before.topic_id is None and znode.topic_id:
        _mark_creation_begun(tx, name)


def _mark_creation_begun(tx: Transaction, name: str) -> None:
    """Mark a topic's creation as begun, because its znode, written without an id, got an id.

    The controller writes the id first.
    """
    for event in tx.events.open_events():
        if (
            event.kind is EventKind.TOPIC_CHANGE
            and name in event.topics
            and not controller_failover.may_have_read(tx.header, event)
        ):
            tx.events.mark_begun(event.id)


def assignment_written(tx: Transaction, tp: TopicPartition, written: ReplicaAssignment) -> None:
    """Judge a partition's written assignment as the controller's own write, or an edit by hand."""
    partition = tx.state.partition(tp)
    if partition is None or written == (partition.zk_assignment or partition.assignment):
        return
    if tx.header.led_by_kraft:
        migration.show(tx, tp, partition.with_assignment(written))
        return
    if written == partition.assignment and not partition.pending_assignments:
        tx.state.put_partition(tp, replace(partition, zk_assignment=None))  # the controller has overwritten an edit
        return
    at = next((at for at, due in enumerate(partition.pending_assignments) if _same(tx.header, due, written)), None)
    if at is not None:
        left = partition.pending_assignments[at + 1 :]
        zk_assignment = None if written == partition.assignment else written
        first = next((action for action in partition.queue if action.writes), None)
        if first is not None and not left and tx.events.open_event(first.event).kind in _COMPLETIONS:
            tx.events.mark_begun(first.event)  # the state was written before
        tx.state.put_partition(tp, replace(partition, zk_assignment=zk_assignment, pending_assignments=left))
    elif (tx.state.record.resync or not partition.is_named) and not written.is_being_reassigned:
        partition_reassignment.adopt_shown(tx, tp, partition, written)
    elif _is_completed(tx.state, partition, written):
        # The reassignment is complete, but the ISR that let the controller complete it was not read.
        with tx.events.inferring(COMPLETED_UNREAD):
            tx.events.begin(EventKind.ALTER_PARTITION_RECEIVED, f"the new replicas of partition {tp} are in sync")
            partition_reassignment.complete(tx, tp)
        assignment_written(tx, tp, written)
    elif written.is_being_reassigned or partition.reassigning or _is_by_api(tx.state, partition, written):
        _reassigned(tx, tp, partition, written)
    elif partition.zk_state is not None and _was_reassigned(tx.header, tp, partition.zk_state, partition, written):
        adopt_zk_assignment(tx, tp, replace(partition, zk_assignment=written), partition.zk_state)
    else:
        tx.state.put_partition(tp, replace(partition, zk_assignment=written))
        edit = f"from {in_order(partition.replicas)} to {in_order(written.replicas)}"
        cause = f"the assignment of {tp} was edited by hand {edit}: it has no effect until the next failover"
        occurrences.note(tx.state, kinds.ASSIGNMENT_EDITED, cause, about=str(tp))


def _is_completed(state: MutableState, partition: Partition, written: ReplicaAssignment) -> bool:
    is_target = partition.reassigning and written == ReplicaAssignment(partition.assignment.target)
    return is_target and fenced_controller.acts(state)


def _was_reassigned(
    header: Header, tp: TopicPartition, state: LeaderAndIsr, partition: Partition, written: ReplicaAssignment
) -> bool:
    """Return whether a reassignment ended whose course was not seen.

    Such a partition has a replica in sync that was never assigned, or its znode is as requested. If no request was
    read, a live replica has left both ISR and znode.
    """
    asked = {(entry.topic, entry.partition, tuple(entry.replicas)) for entry in header.triggers.reassign or ()}
    dropped = set(partition.replicas) - set(written.replicas)
    is_asked = (tp.topic, tp.partition, written.replicas) in asked
    left = not dropped.isdisjoint(header.brokers) and set(state.isr) == set(written.replicas)
    return is_asked or left or not set(state.isr) <= set(partition.replicas)


def _is_by_api(state: MutableState, partition: Partition, written: ReplicaAssignment) -> bool:
    """Return whether the controller puts the replicas in order, or cancels a reassignment that seemed complete.

    A live watch does not show the author of a write. The controller is the likelier author, because tools often request
    these changes.
    """
    header = state.header
    by_api = header.profile.reassigns_in_topic_znode and header.acting and partition.zk_state is not None
    by_controller = state.record.author in (0, header.term.session)
    expected = partition.pending_assignments or sorted(partition.replicas) == sorted(written.replicas)
    return by_api and by_controller and bool(expected)


def _same(header: Header, due: ReplicaAssignment, written: ReplicaAssignment) -> bool:
    if header.profile.reassigns_in_topic_znode or not due.is_being_reassigned:
        return written == due
    # Up to 2.3 the znode holds only the list of old and new replicas together, in the order of a hash set.
    return set(written.replicas) == set(due.replicas)


def _take_back_completion(tx: Transaction, tp: TopicPartition) -> None:
    """Take back a completion that the controller had not begun when the API cancelled or changed the reassignment."""
    for event in tx.events.open_events():
        if event.kind in _COMPLETIONS and not event.begun and tp in tx.certainty.waiting(event):
            partition_reassignment.resume_completed_by(tx, event)
            tx.requests.undo(event.id)


def _reassigned(tx: Transaction, tp: TopicPartition, partition: Partition, written: ReplicaAssignment) -> None:
    if partition.pending_assignments:
        _take_back_completion(tx, tp)
        partition = tx.state.partition(tp) or partition
    if fenced_controller.acts(tx.state):
        creations = {action.event for action in partition.queue if isinstance(action, Create)}
        with deferral.deferring(tx, [event for event in deferral.deferrable(tx) if event not in creations]):
            tx.events.begin(EventKind.API_PARTITION_REASSIGNMENT, f"partition {tp} moves to {list(written.target)}")
            partition_reassignment.run(tx, tp, written)
        tx.header.term.note_act(tx.header.time_ms)  # only the controller's write shows the request
    else:
        tx.state.put_partition(tp, partition.with_assignment(written))
    reassigned = tx.state.partition(tp)
    assert reassigned is not None, f"{tp} is being reassigned, and is not known"
    pending = reassigned.pending_assignments
    left = pending[pending.index(written) + 1 :] if written in pending else ()
    tx.state.put_partition(tp, replace(reassigned, zk_assignment=written if left else None, pending_assignments=left))


def adopt_zk_assignment(tx: Transaction, tp: TopicPartition, partition: Partition, written: LeaderAndIsr) -> None:
    """Adopt the assignment in the topic's znode after an unseen reassignment."""
    assert partition.zk_assignment is not None
    cause = (
        f"{tp} was reassigned to {in_order(partition.zk_assignment.replicas)}, but Kontrast did not see the beginning"
    )
    occurrences.note(tx.state, Disagreement.UNEXPLAINED_WRITE, cause, about=str(tp))
    partition_reassignment.adopt_shown(tx, tp, replace(partition, zk_state=written), partition.zk_assignment)
