"""Every remedy is followed on real clusters of the releases that it names, and keeps its promise."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from controller.contract.remedies.table import REMEDIES
from tests.remedies.real_cluster import RealCluster
from tests.remedies.situations import CASES

_TRIED = sorted((release, name) for name, remedy in REMEDIES.items() for release in remedy.tried_on if name in CASES)


@pytest.fixture(scope="module")
def clusters() -> Iterator[dict[str, RealCluster]]:
    """Keep the cluster of one release at a time."""
    running: dict[str, RealCluster] = {}
    yield running
    for cluster in running.values():
        cluster.kill()


@pytest.fixture
def cluster(request, clusters: dict[str, RealCluster], tmp_path_factory) -> RealCluster:
    release = request.param
    if release not in clusters:
        for other in clusters.values():
            other.kill()
        clusters.clear()
        made = RealCluster(Path(tmp_path_factory.mktemp("cluster")), release)
        clusters[release] = made
        made.start()
    clusters[release].heal()
    return clusters[release]


@pytest.mark.nightly
@pytest.mark.xdist_group("remedies")
@pytest.mark.parametrize(("cluster", "name"), _TRIED, indirect=["cluster"], ids=[f"{r}-{n}" for r, n in _TRIED])
def test_a_remedy_keeps_its_promise(cluster, name):
    CASES[name](cluster)
