"""A real migration of Kafka 3.9.2: a pause of ZooKeeper that breaks the dual write, and ways back, safe and unsafe."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from kazoo.client import KazooClient

from cli.sources.zookeeper import ZooKeeperSource
from controller.contract.alert_row import AlertRow
from controller.contract.metadata_rows import MigrationRow
from controller.model.context import Header
from controller.view.migration import never_elected_count, rollback_of
from ingest.config import ZooKeeperConfig
from questions.question import EVERYTHING_NOW
from streaming.config import BrokersConfig
from tests.clients import zookeeper_client
from tests.integration.conftest import Pipeline, create, told
from tests.kraft import KRaftController, migrating_broker
from tests.waiting import eventually

pytestmark = pytest.mark.xdist_group("pipelines")

STATE = "/brokers/topics/t/partitions/0/state"

# A controller logs this if the epoch in a partition's state is above its own (ZkPartitionStateMachine).
REFUSED = "Aborted leader election for partition t-0"

# Longer than two thirds of the session timeout of 6 s. Then Kafka's client sends its write of /migration again.
PAUSE_SECONDS = 5.0
PAUSES = 4
# A pause breaks the dual write only if it meets one of its writes. A dual write that survives goes on for this long.
GOES_ON_MS = 2_000
PAGED_WITHIN_MS = 15_000


class Migration:
    """One broker and one KRaft controller, both with the migration's flag."""

    def __init__(self, connect: str, directory: Path) -> None:
        self.directory = directory
        self.controller = KRaftController(3001, connect, directory / "controller")
        self.broker = migrating_broker(1, connect, directory / "broker", self.controller)

    @property
    def bootstrap_servers(self) -> str:
        return self.broker.bootstrap_server

    def begin(self) -> None:
        self.controller.launch()
        self.broker.launch()

    def elected_before(self, epoch: int) -> None:
        """Write a quorum state as if it had had this many leaders, because real ones would need as many restarts."""
        self.controller.format()
        log = self.directory / "controller" / "data" / "__cluster_metadata-0"
        log.mkdir()
        elected = {"leaderId": -1, "leaderEpoch": epoch, "votedId": -1, "appliedOffset": 0}
        voters = [{"voterId": self.controller.node_id}]
        state = {"clusterId": "", **elected, "currentVoters": voters, "data_version": 0}
        (log / "quorum-state").write_text(json.dumps(state))


@contextmanager
def migration(connect: str, directory: Path) -> Iterator[Migration]:
    made = Migration(connect, directory)
    try:
        yield made
    finally:
        made.controller.kill()
        made.broker.kill()


class Cluster(Migration):
    """A migration in a ZooKeeper of its own, which may be paused."""

    def __init__(self, zookeeper, directory: Path) -> None:
        super().__init__(zookeeper.connect_string, directory)
        self.zookeeper = zookeeper


@pytest.fixture
def cluster(zookeeper, tmp_path) -> Iterator[Cluster]:
    made = Cluster(zookeeper, tmp_path)
    try:
        made.begin()
        yield made
    finally:
        made.controller.kill()
        made.broker.kill()


def shown(pipeline: Pipeline) -> MigrationRow | None:
    rows = [row for row in pipeline.rows("metadata") if isinstance(row, MigrationRow)]
    return rows[-1] if rows else None


def is_in(pipeline: Pipeline, *phases: str) -> bool:
    row = shown(pipeline)
    return row is not None and row.phase in phases


def phases_in_metrics(pipeline: Pipeline) -> set[str]:
    """Return the phases whose sample is 1."""
    samples = pipeline.samples("kontrast_migration_phase").items()
    return {dict(labels)["phase"] for labels, value in samples if value == 1}


def state(client: KazooClient) -> dict[str, int]:
    return json.loads(client.get(STATE)[0])


def offset(client: KazooClient) -> int:
    return json.loads(client.get("/migration")[0])["kraft_metadata_offset"]


def without_leader(client: KazooClient) -> None:
    """Take the partition's leader away, so that the next controller must elect one as soon as it takes over."""
    client.set(STATE, json.dumps({**state(client), "leader": -1}).encode())


def pause_until_the_dual_write_breaks(cluster: Cluster, pipeline: Pipeline) -> tuple[int, AlertRow]:
    """Pause ZooKeeper until the dual write breaks. Return the last resumption in ms since 1970, and the page."""
    for _ in range(PAUSES):
        cluster.zookeeper.pause()
        time.sleep(PAUSE_SECONDS)
        resumed_ms = int(time.time() * 1000)
        cluster.zookeeper.resume()

        def goes_on(since_ms: int = resumed_ms) -> bool:
            row = shown(pipeline)
            return row is not None and (row.pulse_ms or 0) > since_ms + GOES_ON_MS

        pipeline.until("the dual write goes on or is broken", lambda: goes_on() or is_in(pipeline, "silent"))
        if not goes_on():
            return resumed_ms, told(pipeline, "DualWriteStalled")
    raise AssertionError(f"{PAUSES} pauses of {PAUSE_SECONDS} s did not break the dual write")


@pytest.mark.nightly
def test_a_pause_of_zookeeper_pages_and_a_restart_mends_it(cluster: Cluster, pipeline):
    cluster.broker.wait_until_ready()
    pipeline.until("the dual write is there", lambda: is_in(pipeline, "hybrid"))
    create(cluster, t={0: [1]})

    resumed_ms, page = pause_until_the_dual_write_breaks(cluster, pipeline)
    assert page.time_ms - resumed_ms <= PAGED_WITHIN_MS
    assert shown(pipeline).rollback == "loses"
    # `kontrast serve` reads the row a moment later than this test does.
    pipeline.until("the metrics show that phase alone", lambda: phases_in_metrics(pipeline) == {"silent"})

    cluster.controller.stop()
    cluster.controller.start()
    assert told(pipeline, "DualWriteStalled", "resolved").time_ms > page.time_ms
    pipeline.until("the dual write is back", lambda: is_in(pipeline, "hybrid"))
    assert shown(pipeline).rollback == "yes"

    cluster.controller.stop()
    with zookeeper_client(cluster.zookeeper.connect_string) as client:
        without_leader(client)
        client.delete("/controller")
        client.delete("/migration")
        eventually(lambda: state(client)["leader"] == 1)
        assert state(client)["controller_epoch"] == int(client.get("/controller_epoch")[0])
    pipeline.until("the rollback is done", lambda: is_in(pipeline, "zookeeper") and shown(pipeline).rollback == "done")
    told(pipeline, "MigrationUnderWay", "resolved")


def looked_at(connect: str) -> Header:
    """Return the core's header after one read of ZooKeeper."""
    source = ZooKeeperSource(ZooKeeperConfig(zookeeper=connect), "c", BrokersConfig())
    return source.picture(EVERYTHING_NOW, threading.Event()).header


def way_back(connect: str) -> tuple[str, int | None]:
    rollback = rollback_of(looked_at(connect))
    return rollback.verdict, rollback.epoch


@pytest.mark.nightly
def test_an_unsafe_way_back_elects_nobody_until_the_epoch_is_raised(shared_chroot, tmp_path):
    leaders = 20
    with migration(shared_chroot, tmp_path) as cluster, zookeeper_client(shared_chroot) as client:
        cluster.elected_before(leaders)
        cluster.begin()
        cluster.broker.wait_until_ready()
        eventually(lambda: client.exists("/migration") and offset(client) > 0)
        create(cluster, t={0: [1]})
        eventually(lambda: client.exists(STATE))
        epoch = state(client)["controller_epoch"]
        assert epoch > leaders
        assert way_back(shared_chroot) == ("raise_epoch", epoch)

        cluster.controller.stop()
        without_leader(client)
        client.delete("/controller")
        eventually(lambda: client.exists("/controller"))
        eventually(lambda: REFUSED in cluster.broker.log.read_text())
        assert state(client)["leader"] == -1
        assert way_back(shared_chroot) == ("raise_epoch", epoch)
        assert never_elected_count(looked_at(shared_chroot)) == 1

        client.set("/controller_epoch", str(epoch).encode())
        client.delete("/controller")
        eventually(lambda: state(client)["leader"] == 1)
        assert state(client)["controller_epoch"] == epoch + 1
        assert way_back(shared_chroot)[0] == "done"
