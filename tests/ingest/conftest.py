"""A forwarder that watches a ZooKeeper into a journal, and a client that plays Kafka's part.

The ZooKeeper is one in memory, unless the test asks for a real one (`zookeeper`, `shared_chroot`).
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from kazoo.client import KazooClient

from cli.embedded.zookeeper import ZooKeeper
from controller.contract.records import Record, RecordKind, decode_record
from ingest.config import IngestConfig
from ingest.forwarder import Forwarder
from ingest.observed.paths import is_recorded
from ingest.publisher import MachineClocks
from ingest.sinks.kafka_sink import KafkaSink
from tests.clients import zookeeper_client
from tests.ingest.zookeeper_in_memory import ZooKeeperInMemory
from tests.waiting import eventually
from transport.address import JournalAddress, KafkaAddress
from transport.forwarding import Forwarding
from transport.journal_reading import read_journal

DEADLINE_SECONDS = 60


def changes(records: list[Record]) -> list[tuple[str, str]]:
    """Return kind and path of the records about znodes."""
    return [(record.kind.value, record.path) for record in records if record.path]


def make_cluster(kafka: KazooClient, root: str = "") -> None:
    """Create one broker that is controller, one topic with one partition, and the rest of a real tree."""
    for parent in ("/brokers/ids", "/brokers/topics", "/admin/delete_topics", "/config/topics", "/config/changes"):
        kafka.ensure_path(root + parent)
    kafka.create(root + "/controller_epoch", b"1")
    kafka.create(root + "/controller", b'{"brokerid":1}', ephemeral=True)
    kafka.create(root + "/brokers/ids/1", b'{"version":1,"host":"b1","port":9092,"jmx_port":-1}', ephemeral=True)
    kafka.create(root + "/brokers/seqid", b"")
    kafka.create(root + "/config/topics/t", b'{"config":{}}')
    kafka.create(root + "/brokers/topics/t", b'{"partitions":{"0":[1]}}')
    kafka.create(root + "/brokers/topics/t/partitions/0/state", b'{"leader":1}', makepath=True)


def records_of_a_closing_session(watched: str, watch: Callable[..., Watching]) -> list[Record]:
    """Return the records about znodes when the controller's broker closes its session."""
    with zookeeper_client(watched) as broker:
        broker.ensure_path("/brokers/ids")
        broker.create("/brokers/ids/1", b"{}", ephemeral=True)
        broker.create("/controller", b"{}", ephemeral=True)
        watching = watch()
        seq = watching.settled()
    watching.settled()
    return [record for record in watching.after(seq) if record.path]


TREE = [
    "/controller_epoch",
    "/controller",
    "/brokers/ids/1",
    "/config/topics/t",
    "/brokers/topics/t",
    "/brokers/topics/t/partitions/0/state",
]


def server_zxid(zookeeper: ZooKeeper) -> int:
    return int(zookeeper.ask("srvr").split("Zxid: ")[1].split()[0], 16)


def server_tree(kafka: KazooClient) -> dict[str, tuple[bytes | None, int, int]]:
    """Return each recorded znode on the server, with data, mzxid and version."""
    paths = ["/"]
    for path in paths:  # the list grows during the loop
        paths += [f"{path.rstrip('/')}/{child}" for child in kafka.get_children(path)]
    values = {path: kafka.get(path) for path in paths if is_recorded(path)}
    return {path: (data, stat.mzxid, stat.version) for path, (data, stat) in values.items()}


def replayed_tree(records: list[Record]) -> dict[str, tuple[bytes | None, int, int]]:
    """Return each znode as the records give it. Fail if records contradict each other."""
    tree: dict[str, tuple[bytes | None, int, int]] = {}
    for record in records:
        if record.kind is RecordKind.NODE:
            tree[record.path] = (record.raw, record.mzxid, record.version)
        elif record.kind is RecordKind.CREATED:
            assert record.path not in tree
            tree[record.path] = (None, -1, -1)
        elif record.kind is RecordKind.DELETED:
            del tree[record.path]
    return tree


class Watching:
    """A forwarder at work in a thread, and the records that it has published."""

    def __init__(self, config: IngestConfig, clocks: MachineClocks | None = None) -> None:
        assert isinstance(config.to, JournalAddress)
        self.config = config
        self.clocks = clocks
        self.error: Exception | None = None
        self.forwarding = Forwarding(config.cluster)
        self._directory: Path = config.to.directory
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)

    def start(self) -> None:
        self._thread.start()

    def wait_for_snapshot(self) -> None:
        eventually(lambda: self.count(RecordKind.SNAPSHOT_END) > 0 or self.error is not None)
        if self.error:
            raise self.error

    def stop(self) -> float:
        """Stop the forwarder, and return the seconds until its end."""
        started = time.monotonic()
        self._stop.set()
        self._thread.join(DEADLINE_SECONDS)
        assert not self._thread.is_alive()
        return time.monotonic() - started

    def records(self) -> list[Record]:
        return [decode_record(line) for line in read_journal(self._directory, 0, 1 << 30).lines]

    def count(self, kind: RecordKind, data: str = "") -> int:
        return sum(record.kind is kind and data in (record.data or "") for record in self.records())

    def after(self, seq: int) -> list[Record]:
        return [record for record in self.records() if record.seq > seq]

    def settled(self) -> int:
        """Wait until every past event is published, and return the newest number."""
        heartbeats = self.count(RecordKind.HEARTBEAT, "connected")
        eventually(lambda: self.count(RecordKind.HEARTBEAT, "connected") >= heartbeats + 2)
        return self.records()[-1].seq

    def _run(self) -> None:
        try:
            Forwarder(self.config, self.forwarding, self.clocks).run(self._stop)
        except Exception as error:
            self.error = error


@pytest.fixture
def in_memory() -> Iterator[ZooKeeperInMemory]:
    """Run a server in memory for this test alone, which may kill, pause and start it."""
    with ZooKeeperInMemory() as server:
        yield server


@pytest.fixture
def watched(request: pytest.FixtureRequest) -> str:
    """Return the watched address, of the server that the test asks for, otherwise of the one in memory."""
    if "zookeeper" in request.fixturenames:
        return request.getfixturevalue("zookeeper").connect_string
    if "shared_chroot" in request.fixturenames:
        return request.getfixturevalue("shared_chroot")
    return request.getfixturevalue("in_memory").connect_string


@pytest.fixture
def kafka(watched: str) -> Iterator[KazooClient]:
    """Yield a client that writes like Kafka."""
    with zookeeper_client(watched, DEADLINE_SECONDS) as client:
        yield client


@pytest.fixture
def watch(watched: str, tmp_path: Path) -> Iterator[Callable[..., Watching]]:
    """Yield a function that starts forwarders, then stop them all."""
    started: list[Watching] = []

    def start(
        *,
        chroot: str = "",
        journal: str = "journal",
        wait: bool = True,
        clocks: MachineClocks | None = None,
        **settings: object,
    ) -> Watching:
        values = {
            "cluster": "test",
            "zookeeper": watched + chroot,
            "to": JournalAddress(tmp_path / journal),
            "heartbeat_seconds": 0.2,
            "ensemble_interval_seconds": None,  # because its connections would go through the relays of these tests
            **settings,
        }
        started.append(Watching(IngestConfig(**values), clocks))
        started[-1].start()
        if wait:
            started[-1].wait_for_snapshot()
        return started[-1]

    yield start
    for watching in started:
        watching.stop()


@pytest.fixture(name="changes")
def topic_of_changes(shared_broker: str, own_name: str) -> KafkaAddress:
    """Return a topic that does not exist yet."""
    return KafkaAddress(shared_broker, own_name)


@pytest.fixture
def sink(changes: KafkaAddress) -> Iterator[KafkaSink]:
    sink = KafkaSink(changes, "blue", threading.Event(), lambda _: None)
    yield sink
    sink.close()
