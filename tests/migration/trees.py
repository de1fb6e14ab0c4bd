"""Trees of a cluster's znodes, a clean one of 3.9, and the clean one with a fault for each check of the preflight."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager

from kazoo.client import KazooClient

from tests.clients import zookeeper_client

Content = bytes | dict[str, object] | str | None
SET_ONCE = "no value, version 1"
Tree = dict[str, Content]

EPHEMERAL = ("/brokers/ids/", "/controller")
_IDS = {"a": "iV1nkIGTQMSBFzK4PlKSKg", "b": "Xc1BmUWcTLyAv3LHHkDAfw"}
_ACL = {"principal": "User:a", "permissionType": "Allow", "operation": "Read", "host": "*"}
_SCRAM = "salt=c2FsdA==,stored_key=a2V5,server_key=a2V5,iterations=4096"


def settings(**config: str) -> dict[str, object]:
    return {"version": 1, "config": {name.replace("__", "."): value for name, value in config.items()}}


def state(leader: int, isr: list[int]) -> dict[str, object]:
    return {"version": 1, "controller_epoch": 99, "leader": leader, "leader_epoch": 4, "isr": isr}


def topic(name: str, **fields: object) -> dict[str, object]:
    partitions = {"0": [1, 2], "1": [2, 1]}
    rest = {"partitions": partitions, "topic_id": _IDS[name], "adding_replicas": {}, "removing_replicas": {}}
    return {"version": 3, **rest, **fields}


def broker(version: int = 5, listener: str = "PLAINTEXT") -> dict[str, object]:
    return {
        "version": version,
        "jmx_port": -1,
        "host": "b",
        "port": 9092,
        "endpoints": [f"{listener}://b:9092"],
        "listener_security_protocol_map": {listener: "PLAINTEXT"},
        "features": {},
    }


def clean() -> Tree:
    """Return a cluster of 3.9 with two brokers, two topics, and an example of everything that is copied."""
    tree: Tree = {
        "/cluster/id": {"version": "1", "id": "S29udHJhc3QtbWlncmF0ZQ"},
        "/controller": {"version": 2, "brokerid": 1, "timestamp": "1", "kraftControllerEpoch": -1},
        "/controller_epoch": b"99",
        "/feature": {"version": 2, "status": 1, "features": {}},
        "/brokers/seqid": None,
        "/brokers/ids/1": broker(),
        "/brokers/ids/2": broker(),
        "/config/topics/a": settings(retention__ms="1000"),
        "/config/brokers/<default>": settings(log__cleaner__threads="2"),
        "/config/brokers/1": settings(background__threads="5"),
        "/config/users/kafka%40example": settings(**{"SCRAM-SHA-256": _SCRAM, "producer_byte_rate": "1000.0"}),
        "/config/users/<default>/clients/app": settings(request_percentage="12.5"),
        "/config/clients/<default>": settings(controller_mutation_rate="0.5", consumer_byte_rate="2000"),
        "/config/ips/10.0.0.1": settings(connection_creation_rate="10"),
        "/kafka-acl/Topic/a": {"version": 1, "acls": [_ACL]},
        "/kafka-acl-extended/prefixed/Topic/a": {"version": 1, "acls": []},
        "/latest_producer_id_block": {"version": 1, "broker": 1, "block_start": "0", "block_end": "999"},
        "/admin/delete_topics": None,
        "/isr_change_notification": None,
        "/log_dir_event_notification": None,
    }
    for name in _IDS:
        tree[f"/brokers/topics/{name}"] = topic(name)
        for number, leader in ((0, 1), (1, 2)):
            tree[f"/brokers/topics/{name}/partitions/{number}/state"] = state(leader, [1, 2])
    return tree


def _migration(offset: int) -> dict[str, object]:
    epochs = {"kraft_metadata_epoch": 1, "kraft_controller_epoch": 1}
    return {"version": 0, "kraft_metadata_offset": offset, "kraft_controller_id": 3001, **epochs}


def _led_by_kraft(tree: Tree) -> None:
    """Let a KRaft controller lead, with broker 2 in KRaft mode."""
    leader = {"version": 2, "brokerid": 3001, "timestamp": "1", "kraftControllerEpoch": 1}
    tree.update({"/migration": _migration(303), "/controller": leader})
    del tree["/brokers/ids/2"]


PERSISTENT = frozenset({"leftover-controller", "broker-in-zookeeper"})  # faults with a /controller of no session
Fault = Callable[[Tree], object]


def _written(path: str, content: Content) -> tuple[str, Fault]:
    """Return a fault in the znode itself, whose content is this."""
    return path, lambda tree: tree.update({path: content})


# KEY is found once in the clean tree after this, at the znode beside it.
FAULTS: Mapping[str, tuple[str, Fault]] = {
    "earlier-attempt": _written("/migration", _migration(303)),
    "no-replicas": (
        "/brokers/topics/a",
        lambda tree: (
            tree.update({"/brokers/topics/a": topic("a", partitions={"0": [1, 2], "1": []})}),
            tree.pop("/brokers/topics/a/partitions/1/state"),
        ),
    ),
    "quota-no-number": _written("/config/users/<default>/clients/app", settings(producer_byte_rate="much")),
    "scram-malformed": _written("/config/users/bob", settings(**{"SCRAM-SHA-512": "password=hunter2"})),
    "acl-malformed": _written("/kafka-acl/Topic/b", {"version": 1, "acls": [{"principal": "hunter2"}]}),
    "config-no-text": _written("/config/topics/a", {"version": 1, "config": {"retention.ms": 1000}}),
    "acl-no-json": _written("/kafka-acl/Topic/b", b"hunter2"),
    "broker-config-name": _written("/config/brokers/b1", settings(background__threads="5")),
    "producer-ids-no-json": _written("/latest_producer_id_block", b"0-999"),
    "broker-password": _written("/config/brokers/1", settings(listener__name__x__ssl__key__password="hunter2")),
    "quota-unknown": _written("/config/clients/app", settings(connection_creation_rate="5")),
    "quota-fraction": _written("/config/users/bob", settings(consumer_byte_rate="1000.5")),
    "migration-null": _written("/migration", None),
    "migration-unreadable": _written("/migration", b""),
    "leftover-controller": _written(
        "/controller", {"version": 2, "brokerid": 3001, "timestamp": "1", "kraftControllerEpoch": 7}
    ),
    "absent-broker": _written("/brokers/topics/a", topic("a", partitions={"0": [1, 2, 9], "1": [2, 1, 9]})),
    "topic-without-id": _written("/brokers/topics/a", {k: v for k, v in topic("a").items() if k != "topic_id"}),
    "topic-no-json": _written("/brokers/topics/a", b"{"),
    "offline-log-directory": _written(
        "/log_dir_event_notification/log_dir_event_0000000000", {"version": 1, "broker": 1, "event": 1}
    ),
    "generated-broker-id": (
        "/brokers/ids/1001",
        lambda tree: tree.update({"/brokers/ids/1001": broker(), "/brokers/seqid": SET_ONCE}),
    ),
    "broker-in-zookeeper": ("/brokers/ids/1", _led_by_kraft),
    "new-broker-ids": (
        "/brokers/ids",
        lambda tree: tree.update({f"/brokers/ids/{new}": tree.pop(f"/brokers/ids/{new - 100}") for new in (101, 102)}),
    ),
    "controller-id": ("/brokers/ids/2", lambda _tree: None),  # by --controller-ids 2,3
    "control-plane-listener": _written("/brokers/ids/2", broker(listener="CONTROLPLANE")),
    "protocol-version": ("/feature", lambda tree: tree.pop("/feature")),
    "config-no-json": _written("/config/topics/a", b"retention.ms=1000"),
    "no-state": ("/brokers/topics/a/partitions/1/state", lambda tree: tree.pop("/brokers/topics/a/partitions/1/state")),
    "shared-topic-id": _written("/brokers/topics/b", topic("a")),
    "no-leader": _written("/brokers/topics/a/partitions/0/state", state(-1, [1])),
    "reassignment": _written("/brokers/topics/a", topic("a", removing_replicas={"0": [2]})),
    "orphan-config": _written("/config/topics/gone", settings()),
    "pending-deletion": _written("/admin/delete_topics/b", None),
    "stray-state": _written("/brokers/topics/a/partitions/2/state", state(1, [1])),
    "leftover-trigger": _written("/admin/preferred_replica_election", {"version": 1, "partitions": []}),
    "small-epoch": _written("/controller_epoch", b"2"),
}


@contextmanager
def built(
    connect: str, tree: Mapping[str, object], *, persistent: frozenset[str] = frozenset()
) -> Iterator[KazooClient]:
    """Build the tree in ZooKeeper while its brokers' session lasts. Yield that session's client."""
    with zookeeper_client(connect) as client:
        for path, content in tree.items():
            client.ensure_path(path.rpartition("/")[0] or "/")
            ephemeral = path.startswith(EPHEMERAL) and path != "/controller_epoch" and path not in persistent
            put(client, path, content, ephemeral=ephemeral)
        yield client


def put(client: KazooClient, path: str, content: object, *, ephemeral: bool = False) -> None:
    """Make the znode, or set it."""
    if content == SET_ONCE:
        client.create(path, b"")
        client.set(path, b"")
        return
    data = json.dumps(content).encode() if isinstance(content, dict) else content
    if client.exists(path):
        client.set(path, data)
    else:
        client.create(path, data, ephemeral=ephemeral)
