"""Actions of an event before its first write, out of the partitions' queues until Kontrast knows if they happened."""

from __future__ import annotations

from collections.abc import Sequence

from controller.contract.ids import TopicPartition
from controller.contract.leader_and_isr import LeaderAndIsr
from controller.model.event import Batch
from controller.model.leadership import AnyEntry, AnyUnwritten, Done


class SetAside:
    """State changes and entries of requests, by topic and partition, each with the state that it was done with."""

    __slots__ = ("_numbers", "batches", "by_topic")

    def __init__(self, batches: Sequence[Batch]) -> None:
        self.batches = tuple(batches)
        self._numbers = {batch.at_batch for batch in batches}
        self.by_topic: dict[str, list[Done]] = {}

    def takes(self, entry: AnyEntry) -> bool:
        """Return whether the entry belongs to one of these batches."""
        return entry.at_batch in self._numbers

    def add(self, tp: TopicPartition, action: AnyUnwritten, value: LeaderAndIsr | None) -> None:
        """Add an action of the partition in this state."""
        self.by_topic.setdefault(tp.topic, []).append((tp.partition, action, value))
