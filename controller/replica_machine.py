"""The replica state machine: what a replica does when it enters a state.

Here belong the actions (Kafka 3.9 `ZkReplicaStateMachine`); which state may follow which is a table in `states`. A
replica that may not enter a state keeps the one it has, and the others go on.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Final, NamedTuple

from controller.leadership import Remove, apply
from controller.outputs import Status
from controller.requests import RequestBatch
from controller.states import REPLICA_VALID_PREVIOUS, ReplicaState
from controller.topics import Partition, TopicPartition
from controller.turn import Turn


class Replica(NamedTuple):
    """A replica's name: a partition on a broker."""

    tp: TopicPartition
    broker: int


def enter_state(turn: Turn, replicas: Iterable[Replica], target: ReplicaState) -> None:
    """Move replicas to a state, write what it costs the ISR, and send what brokers must be told."""
    batch = RequestBatch(turn)
    # The controller handles them grouped by broker.
    for replica in sorted(replicas, key=lambda replica: replica.broker):
        partition = turn.partition(replica.tp)
        state = partition.replica_state(replica.broker) if partition else ReplicaState.NON_EXISTENT
        if partition is None or state not in REPLICA_VALID_PREVIOUS[target]:
            turn.count("divergences/illegal_transition")
            continue
        _ACTIONS[target](turn, batch, replica, partition, state)
    batch.send()


_Action = Callable[[Turn, RequestBatch, Replica, Partition, ReplicaState], None]


def _only_state(target: ReplicaState) -> _Action:
    def action(turn: Turn, _: RequestBatch, replica: Replica, partition: Partition, state: ReplicaState) -> None:
        _move(turn, replica, partition, state, target)

    return action


def _to_new(turn: Turn, batch: RequestBatch, replica: Replica, partition: Partition, state: ReplicaState) -> None:
    value = partition.value(turn.header.controller_epoch)
    if value is not None and value.leader == replica.broker:
        turn.count("divergences/illegal_transition")
        return
    _move(turn, replica, partition, state, ReplicaState.NEW)
    if value is not None:
        batch.leader_and_isr((replica.broker,), replica.tp, is_new=True)


def _to_online(turn: Turn, batch: RequestBatch, replica: Replica, partition: Partition, state: ReplicaState) -> None:
    _move(turn, replica, partition, state, ReplicaState.ONLINE)
    if state is not ReplicaState.NEW and partition.value(turn.header.controller_epoch) is not None:
        batch.leader_and_isr((replica.broker,), replica.tp, is_new=False)


def _to_offline(turn: Turn, batch: RequestBatch, replica: Replica, partition: Partition, state: ReplicaState) -> None:
    tp, epoch = replica.tp, turn.header.controller_epoch
    batch.stop_replica(replica.broker, tp, delete=False)
    value = partition.value(epoch)
    if value is None or replica.broker not in value.isr:
        _move(turn, replica, partition, state, ReplicaState.OFFLINE)
    else:
        assert turn.event is not None, "an ISR removal outside of an event"
        intent = Remove(event=turn.event.id, ordinal=turn.next_ordinal(), replica=replica.broker, from_state=int(state))
        turn.publish_intent(tp, intent, Status.PROVISIONAL, turn.event, apply(intent, value, epoch))
        turn.expect(tp, partition.with_replica_state(replica.broker, ReplicaState.OFFLINE), intent)
    topic = turn.topic(tp.topic)
    if value is None:
        batch.update_metadata(tp)
    elif topic is not None and not topic.queued:
        batch.leader_and_isr((other for other in partition.replicas if other != replica.broker), tp, is_new=False)


def _to_deletion_started(
    turn: Turn, batch: RequestBatch, replica: Replica, partition: Partition, state: ReplicaState
) -> None:
    batch.stop_replica(replica.broker, replica.tp, delete=True)
    _move(turn, replica, partition, state, ReplicaState.DELETION_STARTED)


def _move(turn: Turn, replica: Replica, partition: Partition, state: ReplicaState, target: ReplicaState) -> None:
    turn.moved(
        "replica",
        state.word,
        target.word,
        topic=replica.tp.topic,
        partition=replica.tp.partition,
        broker=replica.broker,
    )
    turn.put_partition(replica.tp, partition.with_replica_state(replica.broker, target))


_ACTIONS: Final[Mapping[ReplicaState, _Action]] = {
    ReplicaState.NEW: _to_new,
    ReplicaState.ONLINE: _to_online,
    ReplicaState.OFFLINE: _to_offline,
    ReplicaState.DELETION_STARTED: _to_deletion_started,
    ReplicaState.DELETION_SUCCESSFUL: _only_state(ReplicaState.DELETION_SUCCESSFUL),
    ReplicaState.DELETION_INELIGIBLE: _only_state(ReplicaState.DELETION_INELIGIBLE),
    ReplicaState.NON_EXISTENT: _only_state(ReplicaState.NON_EXISTENT),
}
