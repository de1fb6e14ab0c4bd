"""The requests that one pass of the controller sends, gathered and then sent together.

Here belongs what Kafka's `AbstractControllerBrokerRequestBatch` does: who receives what, that a later entry for the
same broker and partition replaces an earlier one while `is_new` sticks, and the order LeaderAndIsr, UpdateMetadata,
StopReplica. What must be said is decided by the machines.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from controller.leadership import LeaderAndIsr
from controller.topics import TopicPartition

if TYPE_CHECKING:
    from controller.turn import Turn


class RequestBatch:
    """What one pass of a state machine must send."""

    __slots__ = ("_leader_and_isr", "_stop_replica", "_turn", "_update_metadata")

    def __init__(self, turn: Turn) -> None:
        self._turn = turn
        self._leader_and_isr: dict[tuple[int, TopicPartition], bool] = {}
        self._update_metadata: dict[TopicPartition, None] = {}
        self._stop_replica: dict[tuple[int, TopicPartition], bool] = {}

    def leader_and_isr(self, brokers: Iterable[int], tp: TopicPartition, *, is_new: bool) -> None:
        """Tell brokers who leads the partition; everybody learns it by UpdateMetadata too."""
        for broker in brokers:
            if broker in self._turn.header.brokers:
                key = (broker, tp)
                self._leader_and_isr[key] = is_new or self._leader_and_isr.get(key, False)
        self.update_metadata(tp)

    def update_metadata(self, tp: TopicPartition) -> None:
        """Tell every broker of the partition."""
        self._update_metadata[tp] = None

    def stop_replica(self, broker: int, tp: TopicPartition, *, delete: bool) -> None:
        """Tell a broker to stop its replica, and to delete it or not."""
        if broker in self._turn.header.brokers:
            key = (broker, tp)
            self._stop_replica[key] = delete or self._stop_replica.get(key, False)

    def send(self) -> None:
        """Publish the requests with the values as they are predicted now."""
        for (broker, tp), is_new in self._leader_and_isr.items():
            self._send_leader_and_isr(broker, tp, is_new)
        known = tuple(tp for tp in self._update_metadata if self._value(tp) is not None)
        brokers = tuple(sorted(self._turn.header.brokers))
        if known and brokers:
            self._turn.request("UpdateMetadata", brokers, partitions=tuple((tp.topic, tp.partition) for tp in known))
        for (broker, tp), delete in self._stop_replica.items():
            self._turn.request(
                "StopReplica", (broker,), topic=tp.topic, partition=tp.partition, delete_partition=delete
            )

    def _value(self, tp: TopicPartition) -> LeaderAndIsr | None:
        partition = self._turn.partition(tp)
        return None if partition is None else partition.value(self._turn.header.controller_epoch)

    def _send_leader_and_isr(self, broker: int, tp: TopicPartition, is_new: bool) -> None:
        partition, value = self._turn.partition(tp), self._value(tp)
        if partition is None or value is None:
            return
        self._turn.request(
            "LeaderAndIsr",
            (broker,),
            topic=tp.topic,
            partition=tp.partition,
            leader=value.leader,
            leader_epoch=value.leader_epoch,
            isr=value.isr,
            replicas=partition.replicas,
            is_new=is_new,
        )
