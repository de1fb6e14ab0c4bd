"""The rows of partitions and of the controller's steps, made from what the replica holds.

Here belongs how a partition, a move and a request look to the outside; the shapes are `outputs`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from controller.context import Header
from controller.leadership import LeaderAndIsr, Move, Tell
from controller.outputs import PartitionRow, Request, Transition
from controller.states import PARTITION_WORDS, REPLICA_WORDS
from controller.topics import Partition, TopicPartition

Stamp = Mapping[str, Any]


def move_row(tp: TopicPartition, move: Move, value: LeaderAndIsr | None, stamp: Stamp) -> Transition:
    """A partition's or a replica's transition; a partition's election with what was written."""
    of_partition = move.replica is None
    written = value if of_partition and move.written else None
    words = PARTITION_WORDS if of_partition else REPLICA_WORDS
    return Transition(
        **stamp,
        subject="partition" if of_partition else "replica",
        from_state=words[move.from_state],
        to_state=words[move.to_state],
        topic=tp.topic,
        partition=tp.partition,
        broker=move.replica,
        leader=written.leader if written else None,
        leader_epoch=written.leader_epoch if written else None,
        isr=written.isr if written else None,
    )


def tell_row(tp: TopicPartition, tell: Tell, value: LeaderAndIsr | None, stamp: Stamp) -> Request:
    """A partition's entry in a request to one broker."""
    if tell.api == "StopReplica":
        return Request(
            **stamp,
            api=tell.api,
            brokers=(tell.broker,),
            topic=tp.topic,
            partition=tp.partition,
            delete_partition=tell.flag,
        )
    return Request(
        **stamp,
        api=tell.api,
        brokers=(tell.broker,),
        topic=tp.topic,
        partition=tp.partition,
        leader=value.leader if value else None,
        leader_epoch=value.leader_epoch if value else None,
        isr=value.isr if value else None,
        replicas=tell.replicas,
        is_new=tell.flag,
    )


def partition_row(
    tp: TopicPartition, partition: Partition, reason: str | None, header: Header, stamp: Stamp
) -> PartitionRow:
    """The partition as it is now."""
    value = partition.confirmed
    predicted = partition.value(header.controller_epoch) if partition.write_due else None
    return PartitionRow(
        **stamp,
        topic=tp.topic,
        partition=tp.partition,
        state=partition.state.word,
        leader=value.leader if value else -1,
        leader_epoch=value.leader_epoch if value else -1,
        isr=value.isr if value else (),
        replicas=partition.replicas,
        adding_replicas=partition.adding,
        removing_replicas=partition.removing,
        controller_epoch=value.controller_epoch if value else -1,
        partition_epoch=value.partition_epoch if value else -1,
        predicted_leader=predicted.leader if predicted else None,
        predicted_leader_epoch=predicted.leader_epoch if predicted else None,
        predicted_isr=predicted.isr if predicted else None,
        problem=partition.problem.value if partition.problem else None,
        problem_since_ms=partition.problem_since_ms if partition.problem else None,
        reason=reason,
    )
