"""Real clusters of one release after the other, because three brokers and a ZooKeeper need 2 GB."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.remedies.real_cluster import RealCluster


@pytest.fixture(scope="package")
def clusters() -> Iterator[dict[str, RealCluster]]:
    """Keep the cluster of one release at a time."""
    running: dict[str, RealCluster] = {}
    yield running
    for cluster in running.values():
        cluster.kill()


@pytest.fixture
def cluster(request, clusters: dict[str, RealCluster], tmp_path_factory) -> Iterator[RealCluster]:
    release, failed = request.param, request.session.testsfailed
    if release not in clusters:
        for other in clusters.values():
            other.kill()
        clusters.clear()
        made = RealCluster(Path(tmp_path_factory.mktemp("cluster")), release)
        clusters[release] = made
        made.start()
    clusters[release].heal()
    yield clusters[release]
    if request.session.testsfailed > failed:
        clusters.pop(release).kill()  # it may be left without a controller
