"""The requests that one pass of the controller sends, gathered and then sent together.

Here belongs what Kafka's `AbstractControllerBrokerRequestBatch` does: who receives what, that a later entry for the
same broker and partition replaces an earlier one while `is_new` sticks, and the order LeaderAndIsr, UpdateMetadata,
StopReplica. What must be said is decided by the machines.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from controller.leadership import Tell
from controller.topics import TopicPartition

if TYPE_CHECKING:
    from controller.turn import Turn


class RequestBatch:
    """What one pass of a state machine must send."""

    __slots__ = ("_leader_and_isr", "_read", "_stop_replica", "_turn", "_update_metadata")

    def __init__(self, turn: Turn) -> None:
        self._turn = turn
        self._leader_and_isr: dict[tuple[int, TopicPartition], bool] = {}
        self._read: set[TopicPartition] = set()
        self._update_metadata: dict[TopicPartition, None] = {}
        self._stop_replica: dict[tuple[int, TopicPartition], bool] = {}

    def leader_and_isr(self, brokers: Iterable[int], tp: TopicPartition, *, is_new: bool, read: bool = False) -> None:
        """Tell brokers who leads the partition (`read`: the controller has just read it); all learn it by metadata."""
        if read:
            self._read.add(tp)
        for broker in brokers:
            if self._is_told(broker):
                key = (broker, tp)
                self._leader_and_isr[key] = is_new or self._leader_and_isr.get(key, False)
        self.update_metadata(tp)

    def _is_told(self, broker: int) -> bool:
        header = self._turn.header
        return broker in header.brokers or not header.profile.tells_only_live_brokers

    def update_metadata(self, tp: TopicPartition) -> None:
        """Tell every broker of the partition."""
        self._update_metadata[tp] = None

    def stop_replica(self, broker: int, tp: TopicPartition, *, delete: bool) -> None:
        """Tell a broker to stop its replica, and to delete it or not."""
        if self._is_told(broker):
            key = (broker, tp)
            self._stop_replica[key] = delete or self._stop_replica.get(key, False)

    def send(self) -> None:
        """Put the requests behind the writes of this pass."""
        if not (self._leader_and_isr or self._update_metadata or self._stop_replica):
            return
        self._turn.next_pass()
        for (broker, tp), is_new in self._leader_and_isr.items():
            self._tell("LeaderAndIsr", broker, tp, is_new)
        known = tuple(tp for tp in self._update_metadata if self._is_known(tp))
        if known:
            self._turn.broadcast(self._turn.header.brokers, tuple((tp.topic, tp.partition) for tp in known))
        for (broker, tp), delete in self._stop_replica.items():
            self._tell("StopReplica", broker, tp, delete)

    def _is_known(self, tp: TopicPartition) -> bool:
        partition = self._turn.partition(tp)
        return partition is not None and partition.has_value

    def _tell(self, api: str, broker: int, tp: TopicPartition, flag: bool) -> None:
        partition = self._turn.partition(tp)
        if partition is not None and (api == "StopReplica" or self._is_known(tp)):
            place, read = self._turn.place(), tp in self._read
            tell = Tell(*place, api, broker, partition.replicas, flag, read)
            self._turn.queue(tp, partition, tell)
