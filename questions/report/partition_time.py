"""Number of a topic's partitions that existed, were offline, or rejected acks=all, over time, from their rows."""

from __future__ import annotations

from typing import Final, NamedTuple

import msgspec

from controller.contract.ids import PartitionId
from controller.contract.metadata_rows import PartitionRow
from controller.contract.problem import UNUSABLE_WORDS
from questions.report.seen_time import Level, rise


class TopicTime(msgspec.Struct, array_like=True):
    """A topic's partitions over time: existing, offline, rejecting acks=all."""

    partitions: Level = {}
    offline: Level = {}
    unwritable: Level = {}


class _Standing(NamedTuple):
    """Contribution of a partition to the counts."""

    exists: bool = False
    offline: bool = False
    unwritable: bool = False


_NOTHING: Final = _Standing()


class PartitionTime:
    """Rows of partitions as they come, as time by topic."""

    def __init__(self) -> None:
        self.topics: dict[str, TopicTime] = {}
        self._standing: dict[tuple[str, PartitionId], _Standing] = {}

    def take(self, row: PartitionRow) -> None:
        """Note the partition's contribution from now on."""
        standing = _standing(row)
        key = row.topic, row.partition
        self._change(row.topic, self._standing.pop(key, _NOTHING), standing, row.time_ms)
        if standing.exists:
            self._standing[key] = standing

    def begin(self, at_ms: int) -> None:
        """Forget the partitions. The current ones follow again."""
        for (topic, _), standing in self._standing.items():
            self._change(topic, standing, _NOTHING, at_ms)
        self._standing.clear()

    def _change(self, topic: str, was: _Standing, now: _Standing, at_ms: int) -> None:
        if was == now:
            return
        time = self.topics.get(topic) or self.topics.setdefault(topic, TopicTime())
        for level, before, after in zip((time.partitions, time.offline, time.unwritable), was, now, strict=True):
            if before != after:
                rise(level, at_ms, after - before)


def _standing(row: PartitionRow) -> _Standing:
    if row.removed:
        return _NOTHING
    offline = row.problem in UNUSABLE_WORDS
    refuses = offline if row.writable_acks_all is None else not row.writable_acks_all
    return _Standing(exists=True, offline=offline, unwritable=refuses and not row.deleting)
