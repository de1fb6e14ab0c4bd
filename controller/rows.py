"""The rows of partitions and of the controller's steps, made from what the replica holds.

Here belongs how a partition, a move and a request look to the outside; the shapes are `outputs`.
"""

from __future__ import annotations

from typing import Final

from controller.health import back_in_sync_for_acks_all, takes_acks_all
from controller.leadership import NO_LEADER, LeaderAndIsr, Move, Tell
from controller.outputs import EffectStamp, PartitionRow, Request, Stamp, Transition
from controller.states import PARTITION_WORDS, REPLICA_WORDS
from controller.topics import Partition, Topic, TopicPartition

# What a partition without a state shows.
_NO_VALUE: Final = LeaderAndIsr(NO_LEADER, -1, (), -1)


def move_row(tp: TopicPartition, move: Move, value: LeaderAndIsr | None, stamp: EffectStamp) -> Transition:
    """A partition's or a replica's transition; a partition's election with what was written."""
    if move.replica is not None:
        from_state, to_state = REPLICA_WORDS[move.from_state], REPLICA_WORDS[move.to_state]
        return Transition(*stamp, "replica", from_state, to_state, tp.topic, tp.partition, move.replica)
    from_state, to_state = PARTITION_WORDS[move.from_state], PARTITION_WORDS[move.to_state]
    leader, leader_epoch, isr = _told(value if move.written else None)
    return Transition(
        *stamp, "partition", from_state, to_state, tp.topic, tp.partition, None, leader, leader_epoch, isr
    )


def tell_row(tp: TopicPartition, tell: Tell, value: LeaderAndIsr | None, stamp: EffectStamp) -> Request:
    """A partition's entry in a request to one broker."""
    if tell.api == "StopReplica":
        return Request(*stamp, tell.api, (tell.broker,), tp.topic, tp.partition, delete_partition=tell.flag)
    leader, leader_epoch, isr = _told(value)
    return Request(
        *stamp,
        tell.api,
        (tell.broker,),
        tp.topic,
        tp.partition,
        leader,
        leader_epoch,
        isr,
        tell.replicas,
        tell.flag,
    )


def _told(value: LeaderAndIsr | None) -> tuple[int | None, int | None, tuple[int, ...] | None]:
    return (None, None, None) if value is None else (value.leader, value.leader_epoch, value.isr)


def partition_row(  # noqa: PLR0913 (all that it shows)
    tp: TopicPartition,
    partition: Partition,
    topic: Topic | None,
    due: LeaderAndIsr | None,
    reason: str | None,
    stamp: Stamp,
) -> PartitionRow:
    """The partition as it is now, with the value that the controller must still write; of no topic: it is gone."""
    value = partition.confirmed or _NO_VALUE
    leader, leader_epoch, isr = _told(due)
    return PartitionRow(
        *stamp,
        tp.topic,
        tp.partition,
        PARTITION_WORDS[partition.state],
        value.leader,
        value.leader_epoch,
        value.isr,
        partition.replicas,
        partition.adding,
        partition.removing,
        value.controller_epoch,
        value.partition_epoch,
        leader,
        leader_epoch,
        isr,
        partition.problem.value if partition.problem else None,
        partition.problem_since_ms if partition.problem else None,
        reason,
        topic is not None and topic.queued,
        topic is not None and takes_acks_all(partition, topic),
        partition.in_sync_lacking,
        back_in_sync_for_acks_all(partition),
    )
