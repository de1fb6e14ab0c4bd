"""TopicDeletion: a topic's way from the request to its end.

Here belongs what Kafka 3.9's `TopicDeletionManager` does: queue, start, wait for a broker, start again. That brokers
answered a StopReplica is never seen; success shows when the topic's znodes go.
"""

from __future__ import annotations

from collections.abc import Sequence

from controller import partition_machine, replica_machine
from controller.context import Phase
from controller.replica_machine import Replica
from controller.states import PartitionState, ReplicaState
from controller.topics import Topic, TopicPartition
from controller.turn import Turn, replace


def deletion_asked(turn: Turn, name: str) -> None:
    """An entry appeared in /admin/delete_topics."""
    topic = turn.topic(name)
    if topic is None or not topic.exists or topic.queued:
        return
    turn.put_topic(name, replace(topic, queued=True))
    if turn.header.phase is Phase.FOLLOWING and turn.header.acting:
        turn.begin("TopicDeletion", f"the deletion of topic {name} was asked for")
        _start(turn, name)


def deletion_entry_removed(turn: Turn, name: str) -> None:
    """An entry of /admin/delete_topics vanished; if the topic still exists its deletion was given up."""
    topic = turn.topic(name)
    if topic is not None and topic.exists and topic.queued:
        turn.put_topic(name, replace(topic, queued=False, deletion_started=False, ineligible=False))
        turn.count("divergences/deletion_given_up")


def resume(turn: Turn, broker: int) -> None:
    """A broker is back: topics whose deletion waited for it go on."""
    for name, topic in list(turn.topics):
        if topic.queued and any(broker in partition.replicas for partition in topic.partitions.values()):
            turn.put_topic(name, replace(topic, ineligible=False))
            _retry(turn, name)


def resume_all(turn: Turn) -> None:
    """A new controller takes up every deletion that was asked for."""
    for name, topic in list(turn.topics):
        if topic.queued:
            ineligible = any(state is not ReplicaState.ONLINE for _, state in _replica_states(topic, name))
            turn.put_topic(name, replace(topic, deletion_started=False, ineligible=ineligible))
            if not ineligible:
                _start(turn, name)


def replicas_failed(turn: Turn, replicas: Sequence[Replica]) -> None:
    """Replicas whose deletion cannot be done now: their broker left."""
    replica_machine.enter_state(turn, replicas, ReplicaState.DELETION_INELIGIBLE)
    for name in dict.fromkeys(replica.tp.topic for replica in replicas):
        topic = turn.topic(name)
        if topic is not None:
            turn.put_topic(name, replace(topic, ineligible=True))


def _start(turn: Turn, name: str) -> None:
    topic = turn.topic(name)
    if topic is None or topic.ineligible:
        return
    if not topic.deletion_started:
        tps = [TopicPartition(name, number) for number in topic.partitions]
        partition_machine.enter_state(turn, tps, PartitionState.OFFLINE)
        partition_machine.enter_state(turn, tps, PartitionState.NON_EXISTENT)
    replicas = [replica for replica, _ in _replica_states(turn.topic(name) or topic, name)]
    alive = [replica for replica in replicas if replica.broker in turn.header.brokers]
    dead = [replica for replica in replicas if replica.broker not in turn.header.brokers]
    replica_machine.enter_state(turn, dead, ReplicaState.DELETION_INELIGIBLE)
    replica_machine.enter_state(turn, alive, ReplicaState.OFFLINE)
    replica_machine.enter_state(turn, alive, ReplicaState.DELETION_STARTED)
    started = turn.topic(name)
    if started is not None:
        turn.put_topic(name, replace(started, deletion_started=True, ineligible=bool(dead)))


def _retry(turn: Turn, name: str) -> None:
    topic = turn.topic(name)
    if topic is None:
        return
    states = _replica_states(topic, name)
    if any(state is ReplicaState.DELETION_STARTED for _, state in states):
        return
    halted = [replica for replica, state in states if state is ReplicaState.DELETION_INELIGIBLE]
    replica_machine.enter_state(turn, halted, ReplicaState.OFFLINE)
    _start(turn, name)


def _replica_states(topic: Topic, name: str) -> list[tuple[Replica, ReplicaState]]:
    return [
        (Replica(TopicPartition(name, number), broker), state)
        for number, partition in topic.partitions.items()
        for broker, state in zip(partition.replicas, partition.replica_states, strict=True)
    ]
