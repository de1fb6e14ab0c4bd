"""ReplicaLeaderElection: elections that an operator asks for.

Here belongs what Kafka 3.9's `processReplicaLeaderElection` does. A request by znode is predicted; one by the API, and
the automatic rebalance, show only as their writes.
"""

from __future__ import annotations

from collections.abc import Sequence

from controller import partition_machine
from controller.election import Strategy
from controller.topics import TopicPartition
from controller.turn import Turn


def preferred_asked_by_znode(turn: Turn, tps: Sequence[TopicPartition]) -> None:
    """/admin/preferred_replica_election was created."""
    turn.begin("ReplicaLeaderElection", f"a preferred election of {len(tps)} partitions was asked for by znode")
    partition_machine.elect(turn, [tp for tp in tps if _may_be_elected(turn, tp)], Strategy.PREFERRED)


def preferred(turn: Turn, tp: TopicPartition) -> None:
    """The preferred replica of a partition is made leader, by the API or by the automatic rebalance."""
    turn.begin("ReplicaLeaderElection", f"the preferred replica of partition {tp} leads again")
    partition_machine.elect(turn, [tp], Strategy.PREFERRED)


def unclean(turn: Turn, tp: TopicPartition) -> None:
    """An unclean election of a partition was asked for by the API, whatever its settings say."""
    turn.begin("ReplicaLeaderElection", f"an unclean election of partition {tp} was asked for")
    partition_machine.bring_online(turn, [tp], allow_unclean=True)


def _may_be_elected(turn: Turn, tp: TopicPartition) -> bool:
    topic, partition = turn.topic(tp.topic), turn.partition(tp)
    value = partition.value(turn.header.controller_epoch) if partition else None
    if topic is None or topic.queued or partition is None or value is None or not partition.replicas:
        return False
    return value.leader != partition.replicas[0] or not turn.header.profile.skips_preferred_that_lead
