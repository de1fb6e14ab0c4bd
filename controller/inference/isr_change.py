"""ISR changes by leaders, and the reassignments that they let the controller complete.

Up to 2.6 the leader writes the change itself, from 2.7 on the controller does at its request (AlterPartition). A change
that was overwritten before it was read shows in the znode's version. Each write increments the version, but only the
controller's own writes increment the leader epoch.
"""

from __future__ import annotations

from typing import Final

import msgspec
from msgspec.structs import replace

from controller.contract.ids import BrokerId, TopicPartition
from controller.contract.leader_and_isr import LeaderAndIsr
from controller.events import partition_reassignment
from controller.inference.expected_writes import count_isr_change, match_expected_write, prune
from controller.model.event import EventKind
from controller.model.leadership import AnyAction, StateChange, with_cached_state
from controller.model.mutable_state import MutableState
from controller.model.topics import Partition
from controller.transaction.transaction import Transaction, send_update_metadata

# Every ISR change needs this member, and Python 3.11 takes 0.2 µs to find a member in its enum.
_ALTER_PARTITION_RECEIVED: Final = EventKind.ALTER_PARTITION_RECEIVED


def change_isr(tx: Transaction, tp: TopicPartition, partition: Partition, written: LeaderAndIsr) -> None:
    """Apply an ISR change of the leader. The controller's pending writes are folded over it."""
    before = partition.zk_state
    assert before is not None, "an ISR change of a partition without a state"
    joined = count_isr_change(tx.state, before.isr, written.isr)
    tx.state.note_at_work(before.leader, *joined)
    header = tx.header
    hears_at_once = header.profile.hears_isr_changes_at_once
    cached = partition.cached if hears_at_once else partition.cached or before
    changed = replace(partition, zk_state=written, cached=cached)
    if partition.queue:
        queue = tx.certainty.frozen(partition)
        if cached is not None:
            queue, cached = _cached_until_read(queue, cached)
        tx.state.put_partition(tp, replace(changed, cached=cached, queue=queue))
        # A leader that writes itself may write between the controller's notification and its read of the state.
        if hears_at_once:
            prune(tx, tp)
        else:
            prune(tx, tp, joined, keeps_elections=before.leader in header.brokers)
        changed = tx.state.partition(tp) or changed
    else:
        tx.state.put_partition(tp, changed)
    if not header.acting:
        return
    if hears_at_once and _is_controllers_own(tx.state, written):
        header.term.note_isr_change(header.time_ms)
    if hears_at_once and header.brokers:
        send_update_metadata(tx, _ALTER_PARTITION_RECEIVED, f"the leader of partition {tp} changed its ISR", (tp,))
    if partition_reassignment.isr_reaches_target(changed, written):
        kind = _ALTER_PARTITION_RECEIVED if hears_at_once else EventKind.PARTITION_REASSIGNMENT_ISR_CHANGE
        partition_reassignment.take_back_waiting(tx, tp)
        tx.events.begin(kind, f"the new replicas of partition {tp} are in sync")
        partition_reassignment.complete(tx, tp)


def _is_controllers_own(state: MutableState, written: LeaderAndIsr) -> bool:
    """Return whether the controller itself wrote an ISR change, at the leader's request, as far as the record shows."""
    term, evidence = state.header.term, state.header.configuration.evidence
    leaders_write = evidence.notifies_isr_changes  # because brokers use an older protocol than the release's
    return written.controller_epoch == term.epoch and not leaders_write and state.record.author in (0, term.session)


def _cached_until_read(
    queue: tuple[AnyAction, ...], cached: LeaderAndIsr
) -> tuple[tuple[AnyAction, ...], LeaderAndIsr | None]:
    """Give entries the cached state up to the next replica that goes offline, for which the state is read again."""
    at = next(
        (at for at, action in enumerate(queue) if isinstance(action, StateChange) and action.takes_replica_offline),
        None,
    )
    if at is None:
        return queue, cached
    return (*with_cached_state(queue[:at], cached), *queue[at:]), None


def match_across_unread_isr_change(
    tx: Transaction, tp: TopicPartition, before: LeaderAndIsr, written: LeaderAndIsr
) -> bool:
    """Apply an unread ISR change, with the reassignment that it completes, if this gives the written state."""
    if lost_isr_changes(before, written) <= 0:
        return False
    for isr in _isrs_before(before, written):
        trial = tx.fork()
        partition = trial.state.partition(tp)
        assert partition is not None
        between = msgspec.structs.replace(before, isr=isr, partition_epoch=before.partition_epoch + 1)
        change_isr(trial, tp, partition, between)
        if match_expected_write(trial, tp, written):
            tx.adopt(trial)
            return True
    return False


def lost_isr_changes(before: LeaderAndIsr, written: LeaderAndIsr) -> int:
    """Return the number of the leader's ISR changes that were overwritten before they were read.

    Each write increments the znode's version, but only the controller's own writes increment the leader epoch.
    """
    versions = written.partition_epoch - before.partition_epoch
    return versions - (written.leader_epoch - before.leader_epoch)


def _isrs_before(before: LeaderAndIsr, written: LeaderAndIsr) -> list[tuple[BrokerId, ...]]:
    """Return the ISRs that may have been there before the controller's writes."""
    joined = tuple(member for member in written.isr if member not in before.isr)
    return list(dict.fromkeys([written.isr, (*before.isr, *joined)]))
