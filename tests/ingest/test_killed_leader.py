"""The death of ZooKeeper's leader while the modelled cluster's brokers and controller move, with three real servers."""

from __future__ import annotations

import random
from collections.abc import Callable
from contextlib import suppress
from copy import copy
from pathlib import Path

import msgspec
import pytest
from kazoo.client import KazooClient
from kazoo.exceptions import NodeExistsError, NoNodeError
from kazoo.retry import KazooRetry

from controller.contract.records import RecordKind
from ingest.observed.paths import is_recorded
from lab.modelled_cluster.checks import Checked
from lab.modelled_cluster.cluster import Cluster
from lab.modelled_cluster.operations import OPERATIONS, Players
from lab.modelled_cluster.zookeeper import Change, Znode
from tests.ingest.conftest import Watching
from tests.ingest.ensemble import Ensemble

SESSION_SECONDS = 60  # so that sessions outlive the elections
MOVES = (
    "controller_works", "controller_is_removed", "broker_is_elected", "broker_registers", "broker_crashes",
    "session_expires", "broker_bounces", "broker_deletes", "replicas_catch_up", "replica_lags", "create_topic",
    "delete_topic", "reassign_by_api", "elect_by_api",
)  # fmt: skip


class Mirror:
    """Changes of the modelled ZooKeeper, made in a real one by sessions of their own."""

    def __init__(self, hosts: str) -> None:
        self._hosts = hosts
        self._clients: dict[int, KazooClient] = {}
        self._owners: dict[str, int] = {}
        self._elected = -1  # the zxid of the modelled transaction that was written whole

    def client(self, session: int = 0) -> KazooClient:
        """Return the client of a modelled session, 0 for tools."""
        if session not in self._clients:
            patient = KazooRetry(max_tries=-1, max_delay=0.5)
            client = KazooClient(self._hosts, timeout=SESSION_SECONDS, connection_retry=patient, command_retry=patient)
            client.start(timeout=SESSION_SECONDS)
            self._clients[session] = client
        return self._clients[session]

    def make(self, change: Change, epoch: bytes | None = None) -> None:
        """Make a change. `epoch` is the content of /controller_epoch, which an election writes at once."""
        znode, path = change.znode, change.path
        if znode is None:
            self._delete(path, change.author)
        elif znode.czxid == change.zxid:
            self._create(path, znode, epoch)
            self._elected = change.zxid if path == "/controller" else self._elected
        elif change.zxid != self._elected:
            client = self.client()
            client.retry(client.set, path, znode.data or b"")

    def _create(self, path: str, znode: Znode, epoch: bytes | None) -> None:
        client = self.client(znode.owner)
        client.retry(client.ensure_path, path.rpartition("/")[0] or "/")
        self._owners[path] = znode.owner

        def created() -> None:
            transaction = client.transaction()
            transaction.create(path, znode.data or b"", ephemeral=znode.owner != 0)
            if znode.version:
                transaction.set_data(path, znode.data or b"")
            if path == "/controller" and epoch is not None:
                transaction.set_data("/controller_epoch", epoch)
            results = transaction.commit()
            failed = [each for each in results if isinstance(each, Exception)]
            assert not failed or any(isinstance(each, NodeExistsError) for each in failed), results

        client.retry(created)

    def _delete(self, path: str, author: int) -> None:
        owner = self._owners.pop(path)
        if owner and owner == author:  # the session ends, with all of its znodes
            if owner in self._clients:
                client = self._clients.pop(owner)
                client.retry(client.exists, "/")  # because only a connected client ends its session at once
                client.stop()
                client.close()
            return
        with suppress(NoNodeError):
            self.client().retry(self.client().delete, path, recursive=True)

    def znodes(self) -> dict[str, Znode]:
        """Return the recorded znodes of the real ZooKeeper."""
        client, paths = self.client(), ["/"]
        for path in paths:  # the list grows during the loop
            paths += [f"{path.rstrip('/')}/{child}" for child in client.retry(client.get_children, path)]
        found = {path: client.retry(client.get, path) for path in paths if is_recorded(path)}
        return {
            path: Znode(data, stat.czxid, stat.mzxid, stat.version, stat.ephemeralOwner, stat.ctime)
            for path, (data, stat) in found.items()
        }

    def close(self) -> None:
        """End all sessions."""
        for client in self._clients.values():
            client.stop()
            client.close()


def mirrored(cluster: Cluster, hosts: str) -> Mirror:
    """Return the mirror of a modelled cluster, with all that it has so far."""
    mirror = Mirror(hosts)
    mirror.client().create("/cluster/id", b'{"version":"1","id":"modelled"}', makepath=True)  # or no broker could start
    for path, znode in sorted(cluster.zookeeper.znodes.items(), key=lambda item: item[1].czxid):
        mirror.make(Change(path, znode, znode.czxid, znode.owner, 0))

    def make(change: Change) -> None:
        epoch = cluster.zookeeper.get("/controller_epoch")
        mirror.make(change, None if epoch is None else epoch.data)

    cluster.zookeeper.listeners.append(make)
    return mirror


def assert_shown_as_in_zookeeper(checked: Checked, watching: Watching, znodes: dict[str, Znode]) -> None:
    """Compare rows, alerts and gauges with ZooKeeper, as two heartbeats and two minutes later show them."""
    for record in watching.records()[len(checked.records) :]:
        checked.apply(record)
    checked.check_znodes(znodes)
    checked.check_offline(znodes)
    later = copy(checked)
    vars(later).update({at: copy(of) for at, of in vars(checked).items() if isinstance(of, dict | list | set)})
    beat = next(record for record in reversed(checked.records) if record.kind is RecordKind.HEARTBEAT)
    last = checked.records[-1]
    for number in range(1, 14):
        times = {"observed_ms": last.observed_ms + 10_000 * number, "steady_ms": last.steady_ms + 10_000 * number}
        later.apply(msgspec.structs.replace(beat, seq=last.seq + number, **times))
    later.check_at_rest(znodes)


@pytest.mark.parametrize("deaths", [1, pytest.param(5, marks=pytest.mark.nightly)])
def test_what_is_shown_after_each_death_of_the_leader_is_zookeepers(
    deaths: int, java: Path, tmp_path: Path, watch: Callable[..., Watching]
) -> None:
    chance = random.Random(deaths)
    with Ensemble(tmp_path / "ensemble") as ensemble:
        cluster = Cluster((3, 9), salt=deaths)
        players = Players(cluster, None, None)
        for topic in range(3):
            players.create_topic(topic, 2, topic, 2)
        cluster.settle(moves_controller=False)
        mirror = mirrored(cluster, ensemble.connect_string)
        checked = Checked((3, 9), {})
        watching = watch(zookeeper=ensemble.connect_string, session_timeout_seconds=30, resync_jitter_seconds=1)
        for _ in range(deaths):
            dead = ensemble.leader()
            dead.kill()
            for _ in range(12):
                OPERATIONS[chance.choice(MOVES)][1](players, *(chance.randrange(1 << 16) for _ in range(4)))
            dead.launch()
            dead.wait_until_ready()
            cluster.settle(moves_controller=True)
            watching.settled()
            assert_shown_as_in_zookeeper(checked, watching, mirror.znodes())
        assert sum(record.resync for record in watching.records()) > deaths, "the deaths left gaps"
        mirror.close()
