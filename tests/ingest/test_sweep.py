"""Sweep: how soon each znode is read once more, by the size of the cluster and the server's way of reading."""

from __future__ import annotations

import itertools
from typing import cast

import pytest

from controller.contract.records import RecordKind
from ingest.complete_read import Sweep
from ingest.observed.observations import Observation
from ingest.observed.paths import PARENTS
from ingest.observed.tree import PublishedTree
from ingest.zookeeper.client import WatchedZooKeeper
from ingest.zookeeper.reading import WatchMode
from tests.ingest.test_config import config
from tests.ingest.test_observed import value


class Listed:
    """The lists of a cluster with one broker and these topics' settings."""

    def __init__(self, topics: list[str], watch_mode: WatchMode) -> None:
        self._lists = {"/brokers/ids": ["1"], "/config/topics": topics}
        self.watch_mode = watch_mode

    def read_children(self, paths: list[str]) -> dict[str, list[str]]:
        """Return the children of the paths."""
        return {path: self._lists.get(path, []) for path in paths if path in PARENTS}


def heartbeats_between(path: str, topics: int, watch_mode: WatchMode, **settings: float) -> int:
    """Return how many heartbeats lie at most between two reads of a published path."""
    names = [f"t{number}" for number in range(topics)]
    tree = PublishedTree()
    published = ["/brokers/ids/1", *(f"/config/topics/{name}" for name in names)]
    tree.apply(Observation(kind=RecordKind.NODE, path=each, value=value(1, 1, 0)) for each in published)
    sweep = Sweep(config(**settings), cast("WatchedZooKeeper", Listed(names, watch_mode)), tree)
    read = [number for number in range(1_500) if path in sweep.next_paths()]
    return max(later - earlier for earlier, later in itertools.pairwise([0, *read, 1_500]))


@pytest.mark.parametrize(
    ("topics", "watch_mode"), [(20, WatchMode.ONE_SHOT), (1, WatchMode.PERSISTENT), (20_000, WatchMode.PERSISTENT)]
)
def test_each_znode_is_read_again_within_a_minute(topics: int, watch_mode: WatchMode) -> None:
    assert heartbeats_between("/config/topics/t0", topics, watch_mode) <= 60


@pytest.mark.parametrize(("watch_mode", "heartbeats"), [(WatchMode.PERSISTENT, 80), (WatchMode.ONE_SHOT, 700)])
def test_a_large_cluster_has_its_brokers_read_again_within_a_minute(watch_mode: WatchMode, heartbeats: int) -> None:
    assert heartbeats_between("/brokers/ids/1", 40_000, watch_mode, sweep_seconds=700.0) <= 60
    longest = heartbeats_between("/config/topics/t0", 40_000, watch_mode, sweep_seconds=700.0)
    assert heartbeats - 10 <= longest <= heartbeats + 5


def test_the_budget_of_reads_and_a_shorter_setting_bound_the_round() -> None:
    assert heartbeats_between("/config/topics/t0", 1_000, WatchMode.PERSISTENT, read_budget_znodes_per_second=4.0) > 500
    assert heartbeats_between("/config/topics/t0", 1_000, WatchMode.PERSISTENT, sweep_seconds=5.0) <= 7
