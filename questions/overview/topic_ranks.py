"""Order of topics by how much they matter, so that sentences and lists name the most important first."""

from __future__ import annotations

from collections.abc import Mapping
from fnmatch import fnmatchcase
from functools import lru_cache

from controller.contract.ids import INTERNAL_TOPICS
from controller.contract.metadata_rows import TopicRow

Rank = tuple[float, bool, int, int, str]


class TopicRanks:
    """Ranks by weight, then internal topics, min.insync.replicas, replication factor and name.

    `weights` maps patterns such as `ledger*` to numbers. The first pattern that matches decides. The default is 0.
    Raise ValueError for a weight that is no number.
    """

    def __init__(self, weights: Mapping[str, str]) -> None:
        try:
            self._weights = {pattern: float(weight) for pattern, weight in weights.items()}
        except ValueError as error:
            raise ValueError(f"topic_weights has a weight that is no number: {error}") from None
        self._weight = lru_cache(10_000)(self._weight_of)

    def rank(self, name: str, topic: TopicRow | None) -> Rank:
        """Return the topic's rank. The smallest sorts first. `topic` is None if its settings are unknown."""
        in_sync, replicas = (
            (0, 0) if topic is None else (topic.min_insync_replicas or 1, max(topic.replication_factors, default=0))
        )
        return (-self._weight(name), name not in INTERNAL_TOPICS, -in_sync, -replicas, name)

    def _weight_of(self, name: str) -> float:
        return next((weight for pattern, weight in self._weights.items() if fnmatchcase(name, pattern)), 0.0)
