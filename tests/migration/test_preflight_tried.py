"""Findings of `kontrast migration check`, compared with the reaction of a real quorum of 3.9.2."""

from __future__ import annotations

import base64
import json
import re
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from types import MappingProxyType
from uuid import uuid4

import pytest
from click.testing import CliRunner
from kazoo.client import KazooClient

from cli.embedded.process import EmbeddedError
from cli.main import main
from tests.clients import zookeeper_client
from tests.kraft import KRaftBroker, KRaftController, migrating_broker
from tests.migration.trees import put, settings
from tests.waiting import eventually

pytestmark = pytest.mark.nightly

_WATCHED_SECONDS = 2.0  # four pulses of a dual write that goes on
_FAILED = "(Encountered ZooKeeper error during event|Unhandled error in) "
_DUAL_WRITE = "to DUAL_WRITE"


def _made_topic(client: KazooClient, **fields: object) -> None:
    """Make a topic of broker 1 that its controller has taken up, then rewrite these fields by hand."""
    topic_id = base64.urlsafe_b64encode(uuid4().bytes).decode().rstrip("=")
    good = {"version": 3, "topic_id": topic_id, "partitions": {"0": [1]}, "adding_replicas": {}}
    put(client, "/brokers/topics/t", {**good, "removing_replicas": {}})
    eventually(lambda: client.exists("/brokers/topics/t/partitions/0/state"))
    content = {key: value for key, value in {**good, "removing_replicas": {}, **fields}.items() if value is not None}
    put(client, "/brokers/topics/t", content)


def _unreadable_topic(client: KazooClient) -> None:
    _made_topic(client)
    put(client, "/brokers/topics/t", b"{")


def _controller_left(client: KazooClient) -> None:
    content = {"version": 2, "brokerid": 3002, "timestamp": "1", "kraftControllerEpoch": 50}
    exchange = client.transaction()
    exchange.delete("/controller")
    exchange.create("/controller", json.dumps(content).encode())
    assert exchange.commit()[1] == "/controller"


def _written(path: str, content: object) -> Callable[[KazooClient], None]:
    def write(client: KazooClient) -> None:
        client.ensure_path(path.rpartition("/")[0] or "/")
        put(client, path, content)

    return write


# KEY is the finding after the first part of VALUE, and the second part is the line that the controller logs.
_BLOCKS: dict[str, tuple[Callable[[KazooClient], None], str]] = {
    "absent-broker": (lambda client: _made_topic(client, partitions={"0": [1, 9]}), r"\[9\] found in metadata"),
    "topic-without-id": (lambda client: _made_topic(client, topic_id=None), "NoSuchElementException"),
    "topic-no-json": (_unreadable_topic, "NoSuchElementException"),
    "migration-unreadable": (_written("/migration", b""), _FAILED + "RecoverMigrationStateFromZKEvent"),
    "leftover-controller": (_controller_left, "Cannot register KRaft controller|Unable to claim leadership"),
}
_KILLS: dict[str, Callable[[KazooClient], None]] = {
    "no-replicas": lambda client: _made_topic(client, partitions={"0": [1], "1": []}),
    "quota-no-number": _written("/config/users/bob", settings(producer_byte_rate="much")),
    "scram-malformed": _written("/config/users/bob", settings(**{"SCRAM-SHA-256": "password=hunter2"})),
    "acl-malformed": _written("/kafka-acl/Topic/t", {"version": 1}),
    "config-no-text": _written("/config/clients/c", {"version": 1, "config": {"producer_byte_rate": 1000}}),
    "broker-config-name": _written("/config/brokers/b1", settings(background__threads="5")),
    "producer-ids-no-json": _written("/latest_producer_id_block", b"0-999"),
    "broker-password": _written("/config/brokers/1", settings(ssl__key__password="not encoded")),
}
_STICKS: dict[str, Callable[[KazooClient], None]] = {
    "quota-unknown": _written("/config/users/bob", settings(connection_creation_rate="5")),
    "quota-fraction": _written("/config/users/bob", settings(consumer_byte_rate="1000.5")),
}
_OF_CONTROLLERS = MappingProxyType({"broker-password": {"password.encoder.secret": "another secret"}})


class _Migration:
    """One broker with the flag, a controller that is not started yet, and a client of their ZooKeeper."""

    def __init__(self, chroot: str, directory: Path, client: KazooClient, properties: dict[str, str]) -> None:
        self.chroot = chroot
        self.client = client
        self.controller = KRaftController(3001, chroot, directory / "controller", properties=properties)
        self.broker = migrating_broker(1, chroot, directory / "broker", self.controller)

    def migration(self) -> dict[str, int]:
        return json.loads(self.client.get("/migration")[0])

    def is_claimed(self) -> bool:
        data, stat = self.client.get("/controller")
        return stat.ephemeralOwner == 0 and json.loads(data)["brokerid"] == 3001

    def log(self) -> str:
        return self.controller.text()


@pytest.fixture
def migration(request, shared_chroot, tmp_path) -> Iterator[_Migration]:
    with zookeeper_client(shared_chroot) as client:
        callspec = getattr(request.node, "callspec", None)
        properties = _OF_CONTROLLERS.get(callspec.params["name"], {}) if callspec else {}
        made = _Migration(shared_chroot, tmp_path, client, dict(properties))
        try:
            made.controller.format()
            made.broker.start()
            eventually(lambda: client.exists("/controller"))
            yield made
        finally:
            made.controller.kill()
            made.broker.kill()


def _outcome(migration: _Migration, name: str, spoil: Callable[[KazooClient], None]) -> str:
    """Return the check's outcome for the fault."""
    spoil(migration.client)
    asked = ("migration", "check", "--zookeeper", migration.chroot, "--json", "--release", "3.9.2")
    done = CliRunner().invoke(main, asked)
    found = [line for line in map(json.loads, done.stdout.splitlines()) if line["type"] == "finding"]
    assert {line["check"] for line in found} == {name}, done.output
    return found[0]["outcome"]


@pytest.mark.parametrize("name", _BLOCKS)
def test_it_blocks(migration, name):
    spoil, said = _BLOCKS[name]
    assert _outcome(migration, name, spoil) == "blocks"
    migration.controller.start()
    eventually(lambda: re.search(said, migration.log()), meanwhile=lambda: _runs(migration))
    time.sleep(_WATCHED_SECONDS)
    assert not migration.is_claimed()
    _runs(migration)


@pytest.mark.parametrize("name", _KILLS)
def test_it_kills(migration, name):
    assert _outcome(migration, name, _KILLS[name]) == "kills"
    migration.controller.launch()
    eventually(lambda: migration.controller.exit_status is not None)
    assert migration.controller.exit_status > 0  # it ended by itself, because a signal's status is below 0
    assert migration.is_claimed()
    assert migration.migration()["kraft_metadata_offset"] == -1


@pytest.mark.parametrize("name", _STICKS)
def test_it_sticks(migration, name):
    assert _outcome(migration, name, _STICKS[name]) == "sticks"
    migration.controller.start()
    eventually(
        lambda: re.search(_FAILED + "SyncKRaftMetadataEvent", migration.log()), meanwhile=lambda: _runs(migration)
    )
    assert migration.is_claimed()
    assert migration.migration()["kraft_metadata_offset"] > 0
    time.sleep(_WATCHED_SECONDS)
    assert _DUAL_WRITE not in migration.log()
    _runs(migration)


def test_a_clean_cluster_reaches_the_dual_write(migration):
    asked = ("migration", "check", "--zookeeper", migration.chroot, "--json", "--controller-ids", "3001")
    done = CliRunner().invoke(main, asked)
    assert done.exit_code == 0, done.output
    migration.controller.start()
    eventually(lambda: _DUAL_WRITE in migration.log(), meanwhile=lambda: _runs(migration))


def test_a_broker_with_a_controllers_id_does_not_start(migration, tmp_path):
    asked = ("migration", "check", "--zookeeper", migration.chroot, "--json", "--controller-ids", "1")
    found = [json.loads(line) for line in CliRunner().invoke(main, asked).stdout.splitlines()]
    assert [line["outcome"] for line in found if line.get("check") == "controller-id"] == ["blocks"]
    same = KRaftController(1, migration.chroot, tmp_path / "same")
    with pytest.raises(EmbeddedError, match=r"ended with status [1-9]"):
        KRaftBroker(1, tmp_path / "broker", same).start()


def _runs(migration: _Migration) -> None:
    assert migration.controller.running, migration.controller.describe("ended")
