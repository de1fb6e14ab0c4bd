"""Partition states as ZooKeeper shows them, held against what the controller was expected to write.

Here belongs the comparison: a write confirms steps that were expected, is a leader's change of the ISR, or is left to
`explanation`. The observed value always wins.
"""

from __future__ import annotations

import msgspec

from controller import explanation, reassignment, topic_deletion
from controller.context import Phase
from controller.leadership import WRITES, AnyStep, Bump, Elect, LeaderAndIsr, Move, Tell, apply
from controller.topics import Partition, TopicPartition
from controller.turn import Turn, replace
from controller.znodes import StateZnode


def state_written(turn: Turn, tp: TopicPartition, znode: StateZnode, version: int) -> None:
    """A partition's state znode has this value."""
    partition = turn.partition(tp)
    if partition is None:
        turn.count("divergences/orphan_state")
        return
    written = LeaderAndIsr(
        znode.leader, znode.leader_epoch, znode.isr, znode.controller_epoch, version, znode.leader_recovery_state == 1
    )
    before = partition.confirmed
    if before == written:
        return
    if written.leader in turn.header.shutting_down:
        # The controller never makes a broker leader that is shutting down: this one no longer is.
        staying = (broker for broker in turn.header.shutting_down if broker != written.leader)
        turn.header.shutting_down = tuple(staying)
    if turn.header.phase is not Phase.FOLLOWING:
        turn.put_partition(tp, replace(partition, confirmed=written))
    elif confirm(turn, tp, written):
        return
    elif before is not None and before.leader_epoch == written.leader_epoch and before.leader == written.leader:
        _change_isr(turn, tp, partition, written)
    else:
        explanation.explain(turn, tp, written)


def state_removed(turn: Turn, tp: TopicPartition) -> None:
    """A partition's state znode vanished; a topic's deletion removes its states first."""
    topic, partition = turn.topic(tp.topic), turn.partition(tp)
    if topic is None or partition is None or partition.confirmed is None:
        return
    if topic.queued and turn.header.phase is Phase.FOLLOWING and turn.header.acting:
        topic_deletion.completed(turn, tp.topic)
        partition = turn.partition(tp) or partition
    for step in partition.queue:
        if isinstance(step, WRITES):
            turn.settle(step, seen=False)
    kept = tuple(step for step in partition.queue if not isinstance(step, WRITES))
    turn.put_partition(tp, replace(partition, confirmed=None, queue=kept))


def confirm(turn: Turn, tp: TopicPartition, written: LeaderAndIsr) -> bool:
    """Let go of the expected writes that led to the written value; False if none did."""
    partition = turn.partition(tp)
    if partition is None or not partition.write_due:
        return False
    at = _matching_prefix(partition, written)
    if at is not None:
        queue = _settle_prefix(turn, partition, at, written)
    else:
        at = _matching_single(partition, written)
        if at is None:
            return False
        turn.settle(partition.queue[at], seen=True)
        queue = (*partition.queue[:at], *partition.queue[at + 1 :])
    known = _known_after(turn, partition, at, written)
    turn.put_partition(tp, replace(partition, confirmed=written, queue=queue, known=known))
    prune(turn, tp)
    return True


def _known_after(turn: Turn, partition: Partition, at: int, written: LeaderAndIsr) -> LeaderAndIsr | None:
    """The controller's own copy after its write: up to 2.3 a mere bump of the leader epoch did not reach it."""
    if isinstance(partition.queue[at], Bump) and not turn.header.profile.bump_refreshes_cache:
        return partition.known or partition.confirmed
    return None


def _matching_prefix(partition: Partition, written: LeaderAndIsr) -> int | None:
    """The write up to which all must be done for the value: values overwritten before they were read leave one."""
    value = partition.confirmed
    for at, step in enumerate(partition.queue):
        if isinstance(step, WRITES):
            after = apply(step, value, written.controller_epoch)
            if after is not None and after.same_write(written):
                return at
            value = after or value
    return None


def _matching_single(partition: Partition, written: LeaderAndIsr) -> int | None:
    """One write that by itself gives the value: the order of removals is known only to the controller's hash maps."""
    for at, step in enumerate(partition.queue):
        if isinstance(step, WRITES):
            after = apply(step, partition.confirmed, written.controller_epoch)
            if after is not None and after.same_write(written):
                return at
    return None


def _settle_prefix(turn: Turn, partition: Partition, at: int, written: LeaderAndIsr) -> tuple[AnyStep, ...]:
    """The queue without the writes up to `at`; what stood between them keeps the value it stood behind."""
    value, known = partition.confirmed, partition.known
    kept: list[AnyStep] = []
    for step in partition.queue[: at + 1]:
        if isinstance(step, WRITES):
            _count_election(turn, step, value)
            value, known = apply(step, value, written.controller_epoch) or value, None
            turn.settle(step, seen=True)
        else:
            lags = isinstance(step, Tell) and not step.read
            kept.append(step if step.value else msgspec.structs.replace(step, value=(known if lags else None) or value))
    known = _known_after(turn, partition, at, written)
    rest = list(partition.queue[at + 1 :])
    for index, step in enumerate(rest):
        if isinstance(step, WRITES):
            break
        lags = isinstance(step, Tell) and not step.read
        rest[index] = msgspec.structs.replace(step, value=(known if lags else None) or written)
    return (*kept, *rest)


def _count_election(turn: Turn, step: AnyStep, before: LeaderAndIsr | None) -> None:
    if isinstance(step, Elect) and before is not None:
        elected = step.choose(before.isr)
        unclean = elected is not None and elected.unclean
        turn.count(f"elections/{'Unclean' if unclean else ''}{step.strategy.value}")


def prune(turn: Turn, tp: TopicPartition) -> None:
    """Drop expected writes that would write nothing any more, and the move to Online of a failed election."""
    partition = turn.partition(tp)
    if partition is None or not partition.write_due:
        return
    value, kept, failed = partition.confirmed, list[AnyStep](), False
    for step in partition.queue:
        if isinstance(step, WRITES):
            after = apply(step, value, turn.header.controller_epoch)
            if after is None:
                turn.settle(step, seen=False)
                failed = failed or isinstance(step, Elect)
                continue
            value = after
        elif failed and isinstance(step, Move) and step.written:
            turn.withdraw(tp, step)
            failed = False
            continue
        kept.append(step)
    if len(kept) != len(partition.queue):
        turn.put_partition(tp, replace(partition, queue=tuple(kept)))


def _change_isr(turn: Turn, tp: TopicPartition, partition: Partition, written: LeaderAndIsr) -> None:
    """The leader changed the ISR; what the controller is still to write is folded over the new one."""
    before = partition.confirmed
    assert before is not None, "an ISR change of a partition without a state"
    if set(before.isr) - set(written.isr):
        turn.count("isr_changes/shrink")
    if set(written.isr) - set(before.isr):
        turn.count("isr_changes/expand")
    known = partition.known
    if not turn.header.profile.hears_isr_changes_at_once:
        known = known or before
    turn.put_partition(tp, replace(partition, confirmed=written, known=known))
    prune(turn, tp)
    changed = turn.partition(tp) or partition
    if reassignment.isr_reaches_target(changed, written) and turn.header.acting:
        turn.begin("AlterPartitionReceived", f"the new replicas of partition {tp} are in sync")
        reassignment.complete(turn, tp)


def isr_changes_notified(turn: Turn, tps: list[TopicPartition]) -> None:
    """Leaders told the controller of ISR changes that they wrote: it reads those states again."""
    turn.header.witness(notifies_isr_changes=1)
    for tp in tps:
        partition = turn.partition(tp)
        if partition is not None and partition.known is not None:
            turn.put_partition(tp, replace(partition, known=None))
