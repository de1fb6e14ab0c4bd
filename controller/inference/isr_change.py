"""A leader's change of its partition's ISR, and what it lets the controller do.

Up to 2.6 the leader writes it itself, from 2.7 on it asks the controller to (AlterPartition). One that was overwritten
before it was read shows in the znode's version: each write makes that grow, but only the controller's make the leader
epoch grow.
"""

from __future__ import annotations

from typing import Final

import msgspec

from controller.events import partition_reassignment
from controller.inference.expected_writes import count_isr_change, match_expected_write, prune
from controller.model.event import EventKind
from controller.model.leadership import AnyAction, LeaderAndIsr, StateChange, with_cached_state
from controller.model.topics import Partition, TopicPartition
from controller.transaction.transaction import Transaction, replace

# Each ISR change asks for it, and to find a member in its enum takes Python 3.11 0.2 µs.
_ALTER_PARTITION_RECEIVED: Final = EventKind.ALTER_PARTITION_RECEIVED


def change_isr(tx: Transaction, tp: TopicPartition, partition: Partition, written: LeaderAndIsr) -> None:
    """The leader changed the ISR; what the controller is still to write is folded over the new one."""
    before = partition.zk_state
    assert before is not None, "an ISR change of a partition without a state"
    count_isr_change(tx, before.isr, written.isr)
    header = tx.header
    hears_at_once = header.profile.hears_isr_changes_at_once
    known = partition.cached if hears_at_once else partition.cached or before
    changed = replace(partition, zk_state=written, cached=known)
    if partition.queue:
        queue = tx.frozen(partition)
        if known is not None:
            queue, known = _until_read(queue, known)
        tx.put_partition(tp, replace(changed, cached=known, queue=queue))
        # A leader that writes itself may do so between what the controller hears of and what it then reads.
        prune(tx, tp, joined=() if hears_at_once else set(written.isr) - set(before.isr))
        changed = tx.partition(tp) or changed
    else:
        tx.put_partition(tp, changed)
    if not header.acting:
        return
    if hears_at_once and header.brokers:
        tx.announce(_ALTER_PARTITION_RECEIVED, f"the leader of partition {tp} changed its ISR", tp)
    if partition_reassignment.isr_reaches_target(changed, written):
        kind = _ALTER_PARTITION_RECEIVED if hears_at_once else EventKind.PARTITION_REASSIGNMENT_ISR_CHANGE
        partition_reassignment.take_back_waiting(tx, tp)
        tx.begin(kind, f"the new replicas of partition {tp} are in sync")
        partition_reassignment.complete(tx, tp)


def _until_read(queue: tuple[AnyAction, ...], copy: LeaderAndIsr) -> tuple[tuple[AnyAction, ...], LeaderAndIsr | None]:
    """A replica is still to go offline, for which the controller reads the state: only until then it tells its copy."""
    at = next(
        (at for at, step in enumerate(queue) if isinstance(step, StateChange) and step.takes_replica_offline), None
    )
    if at is None:
        return queue, copy
    return (*with_cached_state(queue[:at], copy), *queue[at:]), None


def match_across_unread_isr_change(
    tx: Transaction, tp: TopicPartition, before: LeaderAndIsr, written: LeaderAndIsr
) -> bool:
    """Follow an ISR change that nobody read, with all that it lets the controller do, if that leads to the value."""
    if lost_isr_changes(before, written) <= 0:
        return False
    for isr in _lost_in_front(before, written):
        trial = tx.fork()
        partition = trial.partition(tp)
        assert partition is not None
        between = msgspec.structs.replace(before, isr=isr, partition_epoch=before.partition_epoch + 1)
        change_isr(trial, tp, partition, between)
        if match_expected_write(trial, tp, written):
            tx.adopt(trial)
            return True
    return False


def lost_isr_changes(before: LeaderAndIsr, written: LeaderAndIsr) -> int:
    """How many ISR changes of the leader were overwritten before they were read.

    Each write makes the znode's version grow, but only the controller's make the leader epoch grow.
    """
    versions = written.partition_epoch - before.partition_epoch
    return versions - (written.leader_epoch - before.leader_epoch)


def _lost_in_front(before: LeaderAndIsr, written: LeaderAndIsr) -> list[tuple[int, ...]]:
    """The ISRs that may have been there before the controller's writes."""
    joined = tuple(member for member in written.isr if member not in before.isr)
    return list(dict.fromkeys([written.isr, (*before.isr, *joined)]))
