"""A forwarder whose server is an observer, serves reads alone, or hands its session over to another server."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from kazoo.client import KazooClient

from controller.contract.records import RecordKind
from tests.clients import zookeeper_client
from tests.ingest.conftest import TREE, Watching, make_cluster, replayed_tree, server_tree
from tests.ingest.ensemble import Ensemble
from tests.relay import Relay
from tests.waiting import eventually

pytestmark = [pytest.mark.nightly, pytest.mark.xdist_group("server roles")]

_OBSERVER = 3


@pytest.fixture(scope="module")
def ensemble(java: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Ensemble]:
    """Run two voters and an observer. Each serves reads alone while it has no quorum."""
    read_only = {"readonlymode.enabled": "true"}
    directory = tmp_path_factory.mktemp("roles")
    with Ensemble(directory, observer=_OBSERVER, system_properties=read_only) as servers:
        yield servers


@pytest.fixture
def kafka(ensemble: Ensemble) -> Iterator[KazooClient]:
    """Connect to a voter, and make a new cluster."""
    with zookeeper_client(ensemble.servers[1].connect_string, 30) as client:
        for root in ("/brokers", "/admin", "/config", "/controller", "/controller_epoch"):
            if client.exists(root):
                client.delete(root, recursive=True)
        make_cluster(client)
        yield client


def test_an_observer_shows_every_change(ensemble: Ensemble, kafka: KazooClient, watch: Callable[..., Watching]):
    observer = ensemble.servers[_OBSERVER]
    assert "Mode: observer" in observer.ask("srvr")
    watching = watch(zookeeper=observer.connect_string)
    assert [record.path for record in watching.records() if record.kind is RecordKind.NODE] == TREE
    for number in range(50):
        kafka.create(f"/brokers/topics/seen-{number}", b"{}")
        kafka.set("/brokers/topics/t/partitions/0/state", b'{"leader":%d}' % number)
    watching.settled()
    assert replayed_tree(watching.records()) == server_tree(kafka)


def test_a_session_moves_to_another_server_and_loses_nothing(
    ensemble: Ensemble, kafka: KazooClient, watch: Callable[..., Watching]
):
    with Relay(ensemble.servers[1].port) as relay:
        watching = watch(zookeeper=f"127.0.0.1:{relay.port}", session_timeout_seconds=30)
        for move, number in enumerate((2, _OBSERVER, 1)):
            relay.lead_to(ensemble.servers[number].port)
            accepted = relay.accepted
            relay.close_door()
            kafka.create(f"/brokers/topics/moved-{move}", b"{}")
            relay.open_door()
            eventually(lambda before=accepted: relay.accepted > before)
            watching.settled()
            assert replayed_tree(watching.records()) == server_tree(kafka)
    created = [record.path for record in watching.records() if record.path.startswith("/brokers/topics/moved-")]
    assert sorted(set(created)) == [f"/brokers/topics/moved-{move}" for move in range(3)]


def test_a_server_without_a_quorum_is_not_read_until_it_has_one(
    ensemble: Ensemble, kafka: KazooClient, watch: Callable[..., Watching]
):
    voter, other = ensemble.servers[1], ensemble.servers[2]
    watching = watch(zookeeper=voter.connect_string)
    before = server_tree(kafka)
    other.kill()
    eventually(lambda: "Mode: read-only" in voter.ask("srvr"), within_seconds=60)
    suspended = watching.count(RecordKind.HEARTBEAT, '"suspended"')
    eventually(lambda: watching.count(RecordKind.HEARTBEAT, '"suspended"') > suspended + 5)
    assert {path: value[0] for path, value in replayed_tree(watching.records()).items()}.keys() == before.keys()
    other.start()
    kafka.retry(kafka.create, "/brokers/topics/after", b"{}")
    watching.settled()
    assert "/brokers/topics/after" in replayed_tree(watching.records())
