"""Fixtures for tests of several folders, with a real Java, real ZooKeeper servers and real Kafka brokers.

Fixtures that need a process belong here, and the spread of a run over processes. Each folder keeps its own fixtures.
"""

from __future__ import annotations

import gc
import os
import re
import sys
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING
from uuid import uuid4

import pytest
from hypothesis import settings

from cli.embedded.kafka import KafkaCluster
from cli.embedded.zookeeper import ZooKeeper
from streaming.java.installation import find_java
from streaming.scratch import scratch_directory
from tests import recorded_moment
from tests.clients import zookeeper_client
from tests.durations import Durations, Recorder
from tests.process_logs import LOGS, pytest_runtest_makereport, pytest_runtest_setup  # noqa: F401 (hooks of pytest)
from tests.rows import Rows
from tests.shared_servers import STARTS, OwnedServers, SharedServers
from transport import secret
from transport.address import JournalAddress

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

# Find programs beside Python, like promtool, even if the tests are started without this PATH.
os.environ["PATH"] = os.pathsep.join((str(Path(sys.executable).parent), os.environ["PATH"]))

# Tests begin without settings of this machine.
for name in [name for name in os.environ if name == "KONTRAST_CONFIG" or re.match("KONTRAST_[A-Z]+__", name)]:
    del os.environ[name]

StartKafkaCluster = Callable[..., KafkaCluster]

_SERVERS = pytest.StashKey[SharedServers]()
_WHERE_SERVERS_ARE = "shared_servers"  # in xdist's input for the processes that run the tests

# Tests that use one of these fixtures form a group of its name, so that one process makes the fixture once.
_MADE_ONCE = ("spark", "incident_prometheus")

settings.register_profile("untimed", deadline=None)  # because several processes share the cores
settings.load_profile("untimed")


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the options of `make test` and `make durations`."""
    parser.addoption("--quick", action="store_true", help="leave out tests that were recorded as long")
    parser.addoption("--record-durations", action="store_true", help="record the tests' durations")


def pytest_configure(config: pytest.Config) -> None:
    """Note the place of the shared servers. In the process of the run itself, begin to look for requests."""
    handed_on = getattr(config, "workerinput", {}).get(_WHERE_SERVERS_ARE)
    if handed_on is not None:
        config.stash[_SERVERS] = SharedServers(Path(handed_on))
        return
    if config.option.record_durations:
        config.pluginmanager.register(Recorder(is_whole=config.args_source is pytest.Config.ArgsSource.TESTPATHS))
    running = ExitStack()
    config.stash[_SERVERS] = servers = OwnedServers(running.enter_context(scratch_directory()).directory)
    servers.open()
    config.add_cleanup(running.close)
    config.add_cleanup(servers.close)


@pytest.hookimpl(optionalhook=True)
def pytest_configure_node(node) -> None:
    """Hand the servers' place on to a process of xdist."""
    node.workerinput[_WHERE_SERVERS_ARE] = str(node.config.stash[_SERVERS].directory)


def pytest_itemcollected(item: pytest.Item) -> None:
    """Group tests that share something already at collection, because xdist reads the groups before the last hook."""
    for name in _MADE_ONCE:
        if name in getattr(item, "fixturenames", ()):
            item.add_marker(pytest.mark.xdist_group(name))


def pytest_make_parametrize_id(val: object) -> str | None:
    """Name a text of up to megabytes by its beginning, because the processes of a run send each other all names."""
    return f"{val[:60]!r}..." if isinstance(val, str | bytes) and len(val) > 200 else None


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Choose the tests, order them with the longest first, and start the servers that they need."""
    durations = Durations()
    if config.option.quick:
        long = [item for item in items if not durations.is_quick(item)]
        items[:] = [item for item in items if durations.is_quick(item)]
        config.hook.pytest_deselected(items=long)
    # In their group, tests with a Spark session of their own precede those that share one.
    items.sort(key=lambda item: (-durations.of(item), "spark" in item.fixturenames))
    for name in STARTS:
        if any(name in item.fixturenames for item in items):
            config.stash[_SERVERS].want(name)


def pytest_collection_finish() -> None:
    """Exclude the common objects of all tests from garbage collection, which saves a tenth of computing time."""
    gc.collect()
    gc.freeze()


@pytest.fixture(scope="session")
def java() -> Path:
    """Return the Java that everything runs on. Fail with a sentence without one."""
    return find_java()


@pytest.fixture(scope="session")
def spark(java: Path) -> Iterator[SparkSession]:
    """Return a session with the job's own settings and the Kafka connector. Its start takes longer than most tests."""
    from streaming.config import StreamConfig  # so that only processes with such tests import pyspark
    from streaming.java.artifacts import SPARK_KAFKA_CONNECTOR, jars
    from streaming.spark.needs import jars_before
    from streaming.spark.session import spark_session

    config = StreamConfig(
        source=JournalAddress(Path("/unused")),
        sink=JournalAddress(Path("/unused-too")),
        checkpoint="/unused",
        master="local[2]",
        shuffle_partitions=1,
    )
    connector = jars(SPARK_KAFKA_CONNECTOR)
    with spark_session(config, threading.Event(), jars=connector, class_path=jars_before(config)) as session:
        session.conf.set("spark.sql.streaming.stateStore.maintenanceInterval", "5s")  # a test waits for a snapshot
        yield session


def _shared(name: str) -> Callable[[pytest.FixtureRequest, Path], str]:
    @pytest.fixture(name=name)
    def address(request: pytest.FixtureRequest, java: Path) -> str:
        servers = request.config.stash[_SERVERS]
        where = servers.address_of(name)
        request.node.stash[LOGS] = [*request.node.stash.get(LOGS, []), *servers.logs(name)]
        return where

    return address


# HOST:PORT of the ZooKeeper server, and of the broker, that all tests of a run use beside each other.
shared_zookeeper = _shared("shared_zookeeper")
shared_broker = _shared("shared_broker")


@pytest.fixture
def rows() -> Rows:
    """Return a maker of output rows."""
    return Rows()


@pytest.fixture(scope="session")
def recorded_files(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the dataDir of a recorded cluster's ZooKeeper, up to a bad moment. Tests only read it."""
    return recorded_moment.zk_data(tmp_path_factory.mktemp("recording"))


@pytest.fixture(autouse=True)
def no_secret_of_another_test(monkeypatch: pytest.MonkeyPatch) -> None:
    """Forget secrets at the end. A process hides each secret in its texts, but passwords of tests are common words."""
    monkeypatch.setattr(secret, "_known", set())
    monkeypatch.setattr(secret, "_pattern", None)


@pytest.fixture(autouse=True)
def no_finder_of_another_test(monkeypatch: pytest.MonkeyPatch) -> None:
    """Restore the finders of modules at the end, because the job's replica makes pandas impossible to import."""
    monkeypatch.setattr(sys, "meta_path", [*sys.meta_path])


@pytest.fixture
def own_name() -> str:
    """Return a name that no other test has, for objects on a shared server."""
    return f"of-{uuid4().hex[:8]}"


def make_chroot(connect_string: str, name: str) -> str:
    """Create a chroot, and return HOST:PORT/NAME."""
    with zookeeper_client(connect_string) as client:
        client.create(f"/{name}")
    return f"{connect_string}/{name}"


@pytest.fixture
def shared_chroot(shared_zookeeper: str, own_name: str) -> str:
    """Return HOST:PORT/PATH of an empty chroot on the shared ZooKeeper."""
    return make_chroot(shared_zookeeper, own_name)


@pytest.fixture
def zookeeper(java: Path, tmp_path: Path) -> Iterator[ZooKeeper]:
    """Run a server for this test alone, which may stop, kill, pause, start and inspect it."""
    with ZooKeeper(tmp_path / "zookeeper") as server:
        yield server


@pytest.fixture
def watched(request: pytest.FixtureRequest) -> str:
    """Return the watched address, the whole of the test's own server, or a chroot on the shared one."""
    if "zookeeper" in request.fixturenames:
        return request.getfixturevalue("zookeeper").connect_string
    return request.getfixturevalue("shared_chroot")


@pytest.fixture
def start_kafka_cluster(java: Path, tmp_path: Path) -> Iterator[StartKafkaCluster]:
    """Yield a function that starts a serving cluster, as `start_kafka_cluster(broker_ids=(1, 2, 3), properties={})`."""
    with ExitStack() as clusters:

        def start(*, broker_ids: Iterable[int] = (1,), properties: Mapping[str, str] | None = None) -> KafkaCluster:
            directory = tmp_path / f"kafka-cluster-{len(list(tmp_path.glob('kafka-cluster-*'))) + 1}"
            directory.mkdir()
            return clusters.enter_context(KafkaCluster(directory, broker_ids=broker_ids, properties=properties))

        yield start
