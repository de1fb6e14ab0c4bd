"""The partition state machine: what a partition does when it enters a state.

Here belong the actions (Kafka 3.9 `ZkPartitionStateMachine`); which state may follow which is a table in `states`,
who is elected is a choice in `election`. A partition that may not enter a state keeps the one it has, and the others
go on.
"""

from __future__ import annotations

from collections.abc import Iterable

from controller.election import Strategy
from controller.leadership import Create, Elect, apply
from controller.outputs import Status
from controller.requests import RequestBatch
from controller.states import PARTITION_VALID_PREVIOUS, PartitionState
from controller.topics import Partition, TopicPartition
from controller.turn import Turn, replace


def enter_state(turn: Turn, tps: Iterable[TopicPartition], target: PartitionState) -> None:
    """Move partitions to New, Offline or NonExistent: their state changes, nothing is written or sent."""
    for tp in tps:
        partition = _valid(turn, tp, target)
        if partition is not None:
            turn.moved("partition", partition.state.word, target.word, topic=tp.topic, partition=tp.partition)
            turn.put_partition(tp, replace(partition, state=target))


def bring_online(turn: Turn, tps: Iterable[TopicPartition]) -> None:
    """Move partitions to Online by an offline election, those that never had a leader by their creation."""
    batch = RequestBatch(turn)
    for tp in tps:
        partition = _valid(turn, tp, PartitionState.ONLINE)
        if partition is None:
            continue
        if partition.state is PartitionState.NEW:
            _create(turn, batch, tp, partition)
        else:
            _elect(turn, batch, tp, partition)
    batch.send()


def _valid(turn: Turn, tp: TopicPartition, target: PartitionState) -> Partition | None:
    partition = turn.partition(tp)
    if partition is not None and partition.state in PARTITION_VALID_PREVIOUS[target]:
        return partition
    turn.count("divergences/illegal_transition")
    return None


def _create(turn: Turn, batch: RequestBatch, tp: TopicPartition, partition: Partition) -> None:
    live = tuple(replica for replica in partition.replicas if replica in turn.header.brokers)
    if not live or partition.confirmed is not None:
        return  # it stays New: without a live replica there is nothing to write, and what exists is never overwritten
    assert turn.event is not None, "a creation outside of an event"
    intent = Create(event=turn.event.id, ordinal=turn.next_ordinal(), isr=live)
    _expect(turn, tp, partition, intent)
    batch.leader_and_isr(live, tp, is_new=True)


def _elect(turn: Turn, batch: RequestBatch, tp: TopicPartition, partition: Partition) -> None:
    online = tuple(replica for replica in partition.replicas if replica in turn.header.brokers)
    topic = turn.topic(tp.topic)
    assert turn.event is not None, "an election outside of an event"
    intent = Elect(
        event=turn.event.id,
        ordinal=turn.next_ordinal(),
        strategy=Strategy.OFFLINE,
        from_state=partition.state,
        candidates=partition.replicas,
        online=online,
        allow_unclean=bool(topic and topic.unclean_election),
    )
    if apply(intent, partition.value(turn.header.controller_epoch), turn.header.controller_epoch) is None:
        return  # nobody can be elected: it stays as it is
    _expect(turn, tp, partition, intent)
    batch.leader_and_isr(online, tp, is_new=False)


def _expect(turn: Turn, tp: TopicPartition, partition: Partition, intent: Create | Elect) -> None:
    epoch = turn.header.controller_epoch
    value = apply(intent, partition.value(epoch), epoch)
    turn.publish_intent(tp, intent, Status.PROVISIONAL, turn.event, value)
    turn.expect(tp, replace(partition, state=PartitionState.ONLINE), intent)
