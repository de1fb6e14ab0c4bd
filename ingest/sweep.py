"""Sweep over all watched znodes, a slice per heartbeat, which finds changes that no watch reported.

A server sends no event of a znode that an ACL hides from the session. The value that was published stays until the next
write or connection, and a sweep shows sooner that it may not be read, or was changed meanwhile.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

from ingest.config import IngestConfig
from ingest.observed.paths import PARENTS, SINGLE_ZNODES, TOPICS, partitions_path, state_path
from ingest.observed.tree import Tree
from ingest.zookeeper.client import WatchedZooKeeper

_SHARE_OF_BUDGET = 0.5  # of the znodes that may be read, so that changes never wait for the sweep


class Sweep:
    """Rounds over the znodes of a tree and the lists of their parents, each as long as `sweep_seconds`."""

    def __init__(self, config: IngestConfig, zookeeper: WatchedZooKeeper, tree: Tree) -> None:
        self._config = config
        self._zookeeper = zookeeper
        self._tree = tree
        self._round: Iterator[list[str]] = iter(())

    def next_paths(self) -> list[str]:
        """Return the paths to read with this heartbeat's window. Raise ConnectionLostError, which ends the round."""
        if self._config.sweep_seconds is None:
            return []
        paths = next(self._round, None)
        if paths is None:
            self._round = self._paths(self._config.sweep_seconds)
            paths = next(self._round, [])
        return paths

    def _paths(self, seconds: float) -> Iterator[list[str]]:
        known = self._tree.known
        children = self._zookeeper.read_children(PARENTS)
        topics = children.get(TOPICS, [])
        size = self._slice(len(topics) + len(known), seconds)
        below = [f"{parent}/{child}" for parent, names in children.items() for child in names]
        yield from _slices([path for path in (*SINGLE_ZNODES, *below) if path not in known], size)
        for some in _slices(topics, size):
            partitions = self._zookeeper.read_children([partitions_path(topic) for topic in some])
            states = (
                state_path(topic, partition)
                for topic in some
                for partition in partitions.get(partitions_path(topic), [])
            )
            yield [path for path in states if path not in known]
        yield from _slices(list(known), size)

    def _slice(self, znodes: int, seconds: float) -> int:
        heartbeat_seconds, budget = self._config.heartbeat_seconds, self._config.read_budget_znodes_per_second
        most = math.inf if budget is None else max(1.0, _SHARE_OF_BUDGET * budget * heartbeat_seconds)
        return math.ceil(min(most, max(1.0, znodes * heartbeat_seconds / seconds)))


def _slices(paths: Sequence[str], size: int) -> Iterator[list[str]]:
    for begin in range(0, len(paths), size):
        yield list(paths[begin : begin + size])
