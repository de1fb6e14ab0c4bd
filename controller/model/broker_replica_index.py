"""Index of partitions by hosting broker, and of unsettled partitions, which saves a walk over all partitions.

During a transaction the index is out of date, so it only shows where to look, and partitions are read from the topics.
The index is no part of a context's value. A transaction without an index, or with another context's, makes a new one.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from typing import Final

from controller.contract.ids import BrokerId, PartitionId, TopicPartition
from controller.model.topics import Partition, Topic, Topics
from controller.rules.states import PartitionState

_ONLINE: Final = PartitionState.ONLINE


def is_settled(partition: Partition) -> bool:
    """Return whether the controller can leave the partition alone until a broker fails or starts."""
    value = partition.zk_state
    led_by_a_replica = value is not None and value.leader in partition.replicas
    well = partition.state is _ONLINE and partition.cached is None
    return led_by_a_replica and well and not (partition.offline_dirs or partition.adding or partition.removing)


class BrokerReplicaIndex:
    """Partitions by the brokers that host them, and those that are not settled."""

    __slots__ = ("_hosted", "_moved", "topics", "unsettled")

    def __init__(self, topics: Topics, doubtful: Iterable[tuple[str, Topic]] | None = None) -> None:
        """Make the index. `doubtful` has the partitions that may not be settled, None for all."""
        self.topics = topics  # the indexed topics
        self._hosted: dict[BrokerId, dict[str, tuple[PartitionId, ...]]] = {}
        self._moved: set[str] = set()  # topics with partitions that were added, removed or reassigned
        self.unsettled: dict[str, set[PartitionId]] = {}  # partitions that are not settled, by topic
        for name, topic in topics:
            self._add(name, topic)
        for name, topic in topics if doubtful is None else doubtful:
            unsettled = {number for number, partition in topic.partitions.items() if not is_settled(partition)}
            if unsettled:
                self.unsettled[name] = unsettled

    @property
    def hosts(self) -> Iterable[BrokerId]:
        """Return the brokers that host a partition, registered or not."""
        return self._hosted

    def hosted_by(self, broker: BrokerId) -> Iterable[tuple[str, Iterable[PartitionId]]]:
        """Return the partitions with a replica on the broker, by topic."""
        return self._hosted.get(broker, {}).items()

    def note(self, tp: TopicPartition, before: Partition | None, after: Partition | None) -> None:
        """Note a partition that the transaction changed, so that `follow` can update the index.

        `before` is None if the index may not show the partition's earlier state.
        """
        if before is None or after is None or before.replicas != after.replicas:
            self._moved.add(tp.topic)
        if after is not None and not is_settled(after):
            self.unsettled.setdefault(tp.topic, set()).add(tp.partition)
        elif tp.topic in self.unsettled:
            self._settle(tp)

    def follow(self, after: Topics) -> None:
        """Update the index to the topics after a transaction, which must have noted every changed partition."""
        for name in self._moved:
            self._remove(name)
            self._add(name, after.get(name))
        self._moved.clear()
        self.topics = after

    def _settle(self, tp: TopicPartition) -> None:
        left = self.unsettled[tp.topic]
        left.discard(tp.partition)
        if not left:
            del self.unsettled[tp.topic]

    def _add(self, name: str, topic: Topic | None) -> None:
        numbers: defaultdict[BrokerId, list[PartitionId]] = defaultdict(list)
        for number, partition in topic.partitions.items() if topic else ():
            for broker in partition.replicas:
                numbers[broker].append(number)
        for broker, hosted in numbers.items():
            self._hosted.setdefault(broker, {})[name] = tuple(hosted)

    def _remove(self, name: str) -> None:
        for broker, hosted in list(self._hosted.items()):
            if hosted.pop(name, None) is not None and not hosted:
                del self._hosted[broker]
