"""Order of topics in a sentence: by the operator's ranks, then by the settings that show how much a topic matters."""

from __future__ import annotations

from fnmatch import fnmatchcase
from functools import lru_cache
from typing import Annotated, Final

import msgspec

from controller.contract.ids import INTERNAL_TOPICS

UNRANKED: Final = 100  # the rank of a topic that no pattern names
_MOST: Final = 0xFFFF

Rank = Annotated[int, msgspec.Meta(ge=0, le=1000)]
TopicRanks = tuple[tuple[str, int], ...]
"""Patterns such as `ledger*` with the rank of the topics that match. The first pattern that matches decides."""


def place_in_sentence(topic: str, least_in_sync: int, replicas: int, ranks: TopicRanks) -> int:
    """Return the place of a topic's partition in a sentence, the smallest first.

    Internal topics lead within a rank, because clients of every topic depend on them.
    """
    by_settings = (int(topic in INTERNAL_TOPICS) << 32) + (min(least_in_sync, _MOST) << 16) + min(replicas, _MOST)
    return ((_rank_of(topic, ranks) - UNRANKED) << 33) - by_settings


def rank_at(place: int) -> int:
    """Return the operator's rank of a topic at this place in a sentence."""
    return UNRANKED - (-place >> 33)


@lru_cache(10_000)
def _rank_of(topic: str, ranks: TopicRanks) -> int:
    return next((rank for pattern, rank in ranks if fnmatchcase(topic, pattern)), UNRANKED)
