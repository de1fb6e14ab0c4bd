"""TopicChange and PartitionModifications: topics appear, grow, change their settings and vanish.

Here belongs what the controller does about topic znodes (Kafka 3.9 `processTopicChange`,
`processPartitionModifications`, `onNewPartitionCreation`), and the topic settings that its choices depend on.
"""

from __future__ import annotations

from controller import partition_machine, replica_machine
from controller.context import Phase
from controller.replica_machine import Replica
from controller.states import PartitionState, ReplicaState
from controller.topics import Partition, Topic, TopicPartition
from controller.turn import Turn, replace
from controller.znodes import ConfigZnode, TopicZnode


def topic_written(turn: Turn, name: str, znode: TopicZnode) -> None:
    """A topic's znode has this value: it was created, expanded, or its replicas change."""
    known = turn.topic(name) or Topic(exists=False)
    generation = turn.record.generation
    topic = replace(known, exists=True, topic_id=znode.topic_id, seen_generation=generation)
    if turn.header.phase is not Phase.FOLLOWING:
        partitions = {number: _loaded(known, znode, number) for number in znode.partitions}
        turn.put_topic(name, replace(topic, partitions=partitions))
        return
    added = [number for number in znode.partitions if number not in known.partitions]
    partitions = {
        number: _modified(turn, partition, znode, number) for number, partition in known.partitions.items()
    } | {number: _new(znode, number) for number in added}
    turn.put_topic(name, replace(topic, partitions=partitions))
    if added and turn.header.acting and not topic.queued:
        kind = "PartitionModifications" if known.exists else "TopicChange"
        what = f"{len(added)} partitions added to topic {name}" if known.exists else f"topic {name} was created"
        turn.begin(kind, what)
        if not known.exists:
            turn.moved("topic", "NonExistent", "Existing", topic=name)
        _create(turn, [TopicPartition(name, number) for number in added])


def topic_removed(turn: Turn, name: str) -> None:
    """A topic's znode vanished: its deletion is complete, or somebody removed it by hand."""
    topic = turn.topic(name)
    if topic is None or not topic.exists:
        return
    for partition in topic.partitions.values():
        for intent in partition.pending:
            turn.settle(intent)
    if turn.header.phase is Phase.FOLLOWING:
        turn.begin("TopicDeletion", f"topic {name} was {'deleted' if topic.queued else 'removed by hand'}")
        turn.moved("topic", "Existing", "NonExistent", topic=name)
        if not topic.queued:
            turn.count("divergences/topic_removed_by_hand")
    settings = Topic(
        exists=False, min_insync_replicas=topic.min_insync_replicas, unclean_election=topic.unclean_election
    )
    turn.put_topic(name, settings if _has_settings(settings) else None)


def settings_written(turn: Turn, name: str, znode: ConfigZnode) -> None:
    """A topic's settings, known before the topic itself where a tool creates it."""
    topic = turn.topic(name) or Topic(exists=False)
    settings = replace(
        topic,
        min_insync_replicas=znode.integer("min.insync.replicas"),
        unclean_election=znode.boolean("unclean.leader.election.enable"),
    )
    if settings != topic:
        turn.put_topic(name, settings if settings.exists or _has_settings(settings) else None)


def _has_settings(topic: Topic) -> bool:
    return topic.min_insync_replicas is not None or topic.unclean_election is not None


def _create(turn: Turn, tps: list[TopicPartition]) -> None:
    replicas = [Replica(tp, broker) for tp in tps for broker in _replicas(turn, tp)]
    partition_machine.enter_state(turn, tps, PartitionState.NEW)
    replica_machine.enter_state(turn, replicas, ReplicaState.NEW)
    partition_machine.bring_online(turn, tps)
    replica_machine.enter_state(turn, replicas, ReplicaState.ONLINE)


def _replicas(turn: Turn, tp: TopicPartition) -> tuple[int, ...]:
    partition = turn.partition(tp)
    return partition.replicas if partition else ()


def _new(znode: TopicZnode, number: int) -> Partition:
    replicas = tuple(dict.fromkeys(znode.partitions[number]))
    return Partition(
        replicas=replicas,
        replica_states=(ReplicaState.NON_EXISTENT,) * len(replicas),
        adding=znode.adding_replicas.get(number, ()),
        removing=znode.removing_replicas.get(number, ()),
    )


def _loaded(known: Topic, znode: TopicZnode, number: int) -> Partition:
    # What was judged before the read stays, so that a problem that lasts keeps its beginning.
    fresh, before = _new(znode, number), known.partitions.get(number)
    if before is None:
        return fresh
    return replace(fresh, confirmed=before.confirmed, problem=before.problem, problem_since_ms=before.problem_since_ms)


def _modified(turn: Turn, partition: Partition, znode: TopicZnode, number: int) -> Partition:
    """The partition with the replicas that the controller itself wrote; other edits it ignores, and so do we."""
    replicas = tuple(dict.fromkeys(znode.partitions.get(number, ())))
    adding, removing = znode.adding_replicas.get(number, ()), znode.removing_replicas.get(number, ())
    if (replicas, adding, removing) == (partition.replicas, partition.adding, partition.removing):
        return partition
    if not (adding or removing or partition.reassigning):
        turn.count("divergences/assignment_edited")
        return partition
    states = tuple(
        partition.replica_state(replica) if replica in partition.replicas else ReplicaState.NEW for replica in replicas
    )
    return replace(partition, replicas=replicas, replica_states=states, adding=adding, removing=removing)
