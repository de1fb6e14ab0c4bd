"""Partition states as ZooKeeper shows them, held against what the controller was expected to write.

Here belongs the comparison: a write confirms pending intents, is a leader's change of the ISR, is explained by
something that no znode announced, or stays unexplained. The observed value always wins.
"""

from __future__ import annotations

from controller.context import Phase
from controller.election import Strategy
from controller.leadership import Create, Elect, Intent, LeaderAndIsr, apply
from controller.outputs import Status
from controller.states import PartitionState
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
    if turn.header.phase is not Phase.FOLLOWING:
        turn.put_partition(tp, replace(partition, confirmed=written))
    elif partition.pending and _confirm(turn, tp, partition, written):
        return
    elif before is not None and before.leader_epoch == written.leader_epoch and before.leader == written.leader:
        _change_isr(turn, tp, partition, written)
    else:
        _explain(turn, tp, partition, written)


def state_removed(turn: Turn, tp: TopicPartition) -> None:
    """A partition's state znode vanished; a topic's deletion removes its states first."""
    partition = turn.partition(tp)
    if partition is not None and partition.confirmed is not None:
        for intent in partition.pending:
            turn.settle(intent)
        turn.put_partition(tp, replace(partition, confirmed=None, pending=()))


def _confirm(turn: Turn, tp: TopicPartition, partition: Partition, written: LeaderAndIsr) -> bool:
    """Let go of the pending intents that led to the written value; False if none did."""
    done = _written_intents(partition, written)
    if not done:
        return False
    for intent in done:
        turn.publish_intent(tp, intent, Status.FINAL, turn.settle(intent), written)
        _count_election(turn, intent, partition.confirmed)
    pending = tuple(intent for intent in partition.pending if intent not in done)
    turn.put_partition(tp, replace(partition, confirmed=written, pending=pending))
    return True


def _written_intents(partition: Partition, written: LeaderAndIsr) -> tuple[Intent, ...]:
    # Values that were overwritten before they could be read leave one write for several intents: a prefix.
    value = partition.confirmed
    for end, intent in enumerate(partition.pending, start=1):
        value = apply(intent, value, written.controller_epoch) or value
        if value is not None and value.same_write(written):
            return partition.pending[:end]
    # A batch's removals are written in an order that only the controller's hash maps know: any single one.
    for intent in partition.pending[1:]:
        value = apply(intent, partition.confirmed, written.controller_epoch)
        if value is not None and value.same_write(written):
            return (intent,)
    return ()


def _count_election(turn: Turn, intent: Intent, before: LeaderAndIsr | None) -> None:
    if isinstance(intent, Elect) and before is not None:
        elected = intent.choose(before.isr)
        unclean = elected is not None and elected.unclean
        turn.count(f"elections/{'Unclean' if unclean else ''}{intent.strategy.value}")
    elif isinstance(intent, Create):
        turn.count("elections/Creation")


def _change_isr(turn: Turn, tp: TopicPartition, partition: Partition, written: LeaderAndIsr) -> None:
    """The leader changed the ISR; what the controller is still to write is folded over the new one."""
    before = partition.confirmed
    assert before is not None, "an ISR change of a partition without a state"
    if set(before.isr) - set(written.isr):
        turn.count("isr_changes/shrink")
    if set(written.isr) - set(before.isr):
        turn.count("isr_changes/expand")
    turn.put_partition(tp, replace(partition, confirmed=written))


def _explain(turn: Turn, tp: TopicPartition, partition: Partition, written: LeaderAndIsr) -> None:
    """Nothing announced this write: name what reproduces it, else say that it is unexplained."""
    explained = _explanation(turn, partition, written)
    if explained is None:
        turn.count("divergences/unexplained_write")
    kind, cause = explained or ("Unexplained", f"partition {tp} was written as nothing foretold")
    turn.begin(kind, cause)
    for intent in partition.pending:
        turn.publish_intent(tp, intent, Status.WITHDRAWN, turn.settle(intent))
    live = written.leader in turn.header.brokers
    state = PartitionState.ONLINE if live else PartitionState.OFFLINE
    before = partition.confirmed
    if before is None or before.leader != written.leader or state is not partition.state:
        _publish_move(turn, tp, partition, state, written)
    if kind != "Unexplained":
        turn.count(f"elections/{kind}")
    turn.put_partition(tp, replace(partition, state=state, confirmed=written, pending=()))


def _publish_move(
    turn: Turn, tp: TopicPartition, partition: Partition, state: PartitionState, written: LeaderAndIsr
) -> None:
    turn.moved(
        "partition",
        partition.state.word,
        state.word,
        topic=tp.topic,
        partition=tp.partition,
        leader=written.leader,
        leader_epoch=written.leader_epoch,
        isr=written.isr,
    )


def _explanation(turn: Turn, partition: Partition, written: LeaderAndIsr) -> tuple[str, str] | None:
    before = partition.confirmed
    if before is None or written.leader_epoch != before.leader_epoch + 1:
        return None
    if _reproduces(_hypothesis(turn, partition, Strategy.PREFERRED), before, written):
        return Strategy.PREFERRED.value, f"the preferred replica {written.leader} leads again"
    for broker in sorted(set(before.isr) - set(written.isr)):
        shutdown = _hypothesis(turn, partition, Strategy.CONTROLLED_SHUTDOWN, (broker,))
        if broker in turn.header.brokers and (_reproduces(shutdown, before, written) or _left_isr(before, written)):
            return Strategy.CONTROLLED_SHUTDOWN.value, f"broker {broker} shuts down"
    return None


def _hypothesis(turn: Turn, partition: Partition, strategy: Strategy, shutting_down: tuple[int, ...] = ()) -> Elect:
    return Elect(
        event=-1,
        ordinal=-1,
        strategy=strategy,
        from_state=partition.state,
        candidates=partition.replicas,
        online=tuple(replica for replica in partition.replicas if replica in turn.header.brokers),
        shutting_down=shutting_down,
    )


def _reproduces(intent: Intent, before: LeaderAndIsr, written: LeaderAndIsr) -> bool:
    value = apply(intent, before, written.controller_epoch)
    return value is not None and value.leader != before.leader and value.same_write(written)


def _left_isr(before: LeaderAndIsr, written: LeaderAndIsr) -> bool:
    # The follower's part of a controlled shutdown: the leader stays, one member goes.
    return before.leader == written.leader and len(before.isr) == len(written.isr) + 1
