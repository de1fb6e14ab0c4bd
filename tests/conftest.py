"""What tests of several folders share: a real Java, a real ZooKeeper and real Kafka brokers.

Here belong the fixtures that need a process; what one folder alone needs stays with its tests.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import ExitStack
from pathlib import Path

import pytest

from cli.embedded.cluster import KafkaCluster
from cli.embedded.zookeeper import ZooKeeper
from streaming.java import find_java

# Programs that were put beside Python, like promtool, are found however the tests are started.
os.environ["PATH"] = os.pathsep.join((str(Path(sys.executable).parent), os.environ["PATH"]))

StartKafkaCluster = Callable[..., KafkaCluster]


@pytest.fixture(scope="session")
def java() -> Path:
    """The Java that everything runs on; fails with its sentence where there is none."""
    return find_java()


@pytest.fixture
def zookeeper(java: Path, tmp_path: Path) -> Iterator[ZooKeeper]:
    """A fresh server that runs; the test may stop, kill, pause and start it as it likes."""
    with ZooKeeper(tmp_path / "zookeeper") as server:
        yield server


@pytest.fixture
def start_kafka_cluster(java: Path, tmp_path: Path) -> Iterator[StartKafkaCluster]:
    """Starts a cluster that serves when it is returned: `start_kafka_cluster(broker_ids=(1, 2, 3), properties={})`."""
    with ExitStack() as clusters:

        def start(*, broker_ids: Iterable[int] = (1,), properties: Mapping[str, str] | None = None) -> KafkaCluster:
            directory = tmp_path / f"kafka-cluster-{len(list(tmp_path.glob('kafka-cluster-*'))) + 1}"
            directory.mkdir()
            return clusters.enter_context(KafkaCluster(directory, broker_ids=broker_ids, properties=properties))

        yield start
