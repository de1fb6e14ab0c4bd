"""Which partitions a broker hosts, and which want looking after, without a walk over all that there are.

Here belongs the lookup and how it follows a step. It says where to look, as of before a step; what is there is read
from the topics. It is no part of a context's value: who has none, or one that went on with another context, makes one.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from typing import Final

from controller.model.topics import Partition, Topic, TopicPartition, Topics
from controller.rules.states import PartitionState

_ONLINE: Final = PartitionState.ONLINE


def is_settled(partition: Partition) -> bool:
    """Whether only a broker's coming or going can ask anything of the controller here."""
    value = partition.zk_state
    led_by_a_replica = value is not None and value.leader in partition.replicas
    well = partition.state is _ONLINE and partition.cached is None
    return led_by_a_replica and well and not (partition.offline_dirs or partition.adding or partition.removing)


class BrokerReplicaIndex:
    """Partitions by the brokers that host them, and those that are not settled."""

    __slots__ = ("_hosted", "_moved", "topics", "unsettled")

    def __init__(self, topics: Topics) -> None:
        self.topics = topics  # that it is of; it is of no older ones any more
        self._hosted: dict[int, dict[str, tuple[int, ...]]] = {}
        self._moved: set[str] = set()  # topics with partitions that came, went, or have other hosts
        self.unsettled: dict[str, set[int]] = {}  # partitions that are not settled, by topic
        for name, topic in topics:
            self._add(name, topic)
            unsettled = {number for number, partition in topic.partitions.items() if not is_settled(partition)}
            if unsettled:
                self.unsettled[name] = unsettled

    @property
    def hosts(self) -> Iterable[int]:
        """All brokers that host a partition, whether they are there or not."""
        return self._hosted

    def hosted_by(self, broker: int) -> Iterable[tuple[str, Iterable[int]]]:
        """The partitions with a replica on the broker, by topic."""
        return self._hosted.get(broker, {}).items()

    def note(self, tp: TopicPartition, before: Partition | None, after: Partition | None) -> None:
        """A step changed this partition; `follow` ends the step."""
        if before is None or after is None or before.replicas != after.replicas:
            self._moved.add(tp.topic)
        if after is not None and not is_settled(after):
            self.unsettled.setdefault(tp.topic, set()).add(tp.partition)
        elif tp.topic in self.unsettled:
            self._settle(tp)

    def follow(self, after: Topics) -> None:
        """Be of the topics as they are after a step, of which every changed partition was noted."""
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
        numbers: defaultdict[int, list[int]] = defaultdict(list)
        for number, partition in topic.partitions.items() if topic else ():
            for broker in partition.replicas:
                numbers[broker].append(number)
        for broker, hosted in numbers.items():
            self._hosted.setdefault(broker, {})[name] = tuple(hosted)

    def _remove(self, name: str) -> None:
        for broker, hosted in list(self._hosted.items()):
            if hosted.pop(name, None) is not None and not hosted:
                del self._hosted[broker]
