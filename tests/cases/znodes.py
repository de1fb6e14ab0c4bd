"""Clusters as public reports describe them: the znodes of each, written by a tool, by hand, or by an old release.

A case is a tree of znodes. The znodes of `EPHEMERAL` paths belong to a session, unless the case names them persistent.
"""

from __future__ import annotations

import json
from base64 import b64encode
from collections.abc import Callable, Mapping, Sequence
from hashlib import md5
from typing import NamedTuple

from kazoo.client import KazooClient
from kazoo.security import ACL, make_digest_acl

Content = bytes | None | Mapping[str, object]
Tree = dict[str, Content]

TOPIC_ID = "jKTRaM_TSNqocJeQI2aYOQ"
_EPHEMERAL = ("/brokers/ids/", "/controller")
_PARENTS = (
    *("/brokers/ids", "/brokers/topics", "/brokers/seqid", "/admin/delete_topics", "/config/topics", "/config/brokers"),
    *("/config/users", "/config/clients", "/config/changes", "/isr_change_notification", "/log_dir_event_notification"),
)
_HIDDEN_BY = ("owner", "secret")  # login of the only user who may read the hidden znodes


class Case(NamedTuple):
    """Znodes of a cluster. `persistent` ones belong to no session, and an ACL keeps the `hidden` from being read.

    The cluster has an id unless it `lacks` it. Its problem is one only after `patience_seconds`.
    """

    znodes: Tree
    persistent: frozenset[str] = frozenset()
    hidden: tuple[str, ...] = ()
    acls: Mapping[str, Sequence[ACL]] = {}
    lacks: tuple[str, ...] = ()
    patience_seconds: float = 0

    def write(self, root: KazooClient, chroot: str) -> None:
        """Create the znodes in a chroot. Ephemeral ones last as long as the client's session."""
        for parent in _PARENTS:
            root.ensure_path(chroot + parent)
        identity: Tree = {} if "/cluster/id" in self.lacks else {"/cluster/id": {"version": "1", "id": TOPIC_ID}}
        for path, content in {**identity, **self.znodes}.items():
            data = content if content is None or isinstance(content, bytes) else json.dumps(content).encode()
            lasts = path in self.persistent or not path.startswith(_EPHEMERAL) or path == "/controller_epoch"
            if root.exists(chroot + path):
                root.set(chroot + path, data)
            else:
                root.create(chroot + path, data, makepath=True, ephemeral=not lasts)
        for path in self.hidden:
            root.set_acls(chroot + path, [make_digest_acl(*_HIDDEN_BY, all=True)])
        for path, acl in self.acls.items():
            root.set_acls((chroot + path).rstrip("/"), list(acl))


class Answer(NamedTuple):
    """Answer to a command: its exit code, and patterns that it has and has not, spaces and line breaks being alike."""

    command: str
    exit_code: int
    has: tuple[str, ...] = ()
    lacks: tuple[str, ...] = ()


# --- parts of a tree


def broker(number: int, version: int = 4, **fields: object) -> Tree:
    """Return the registration of a broker."""
    content: dict[str, object] = {
        "listener_security_protocol_map": {"PLAINTEXT": "PLAINTEXT"},
        "endpoints": [f"PLAINTEXT://k{number}:9092"],
        "jmx_port": -1,
        "host": f"k{number}",
        "timestamp": "1700000000000",
        "port": 9092,
        "version": version,
    }
    return {f"/brokers/ids/{number}": content | ({"features": {}} if version >= 5 else {}) | fields}


def brokers(*numbers: int, version: int = 4) -> Tree:
    """Return the registrations of brokers."""
    return {path: content for number in numbers for path, content in broker(number, version).items()}


def controller(number: int, epoch: int, version: int = 1, **fields: object) -> Tree:
    """Return an active controller."""
    content = {"version": version, "brokerid": number, "timestamp": "1700000000000", **fields}
    return {"/controller_epoch": str(epoch).encode(), "/controller": content}


def new_controller(number: int = 1, epoch: int = 7) -> Tree:
    """Return an active controller of 3.4 or later."""
    return controller(number, epoch, 2, kraftControllerEpoch=-1)


def assigned(name: str, *replicas: list[int], with_id: bool = False) -> Tree:
    """Return a topic without states. With an id it is of 2.8 or later."""
    partitions: dict[str, object] = {str(number): hosts for number, hosts in enumerate(replicas)}
    own_id = TOPIC_ID if name == "t" else b64encode(md5(name.encode()).digest(), b"-_").decode().rstrip("=")
    fields = {"topic_id": own_id, "adding_replicas": {}, "removing_replicas": {}} if with_id else {}
    return {
        f"/config/topics/{name}": {"version": 1, "config": {}},
        f"/brokers/topics/{name}": {"version": 3 if with_id else 1, "partitions": partitions, **fields},
    }


def state(name: str, number: int, leader: int, isr: list[int], *, epoch: int = 7, leader_epoch: int = 3) -> Tree:
    """Return a partition's state."""
    content = {"controller_epoch": epoch, "leader": leader, "version": 1, "leader_epoch": leader_epoch, "isr": isr}
    return {f"/brokers/topics/{name}/partitions/{number}/state": content}


def led(name: str, *replicas: list[int], with_id: bool = False, epoch: int = 7) -> Tree:
    """Return a topic that its first replicas lead, with all others in sync."""
    tree = assigned(name, *replicas, with_id=with_id)
    for number, hosts in enumerate(replicas):
        tree |= state(name, number, hosts[0], hosts, epoch=epoch)
    return tree


def settings(path: str, **config: str) -> Tree:
    """Return a znode with settings. Underscores stand for dots."""
    return {path: {"version": 1, "config": {name.replace("_", "."): value for name, value in config.items()}}}


WELL = {**brokers(1, 2, 3), **controller(1, 7), **led("t", [1, 2, 3])}
WELL_IN_3_9 = {**brokers(1, 2, 3, version=5), **new_controller(), **led("t", [1, 2, 3], with_id=True)}


# --- the reports


def _all_replicas_unknown() -> Case:
    """KAFKA-7382. A topic was created by an old tool on brokers that do not exist, and its deletion was requested."""
    bad = assigned("bad", [11, 12, 13], [12, 13, 14], [14, 15, 11])
    return Case(
        {**brokers(1, 2, 3), **controller(1, 7), **led("good", [1, 2, 3]), **bad, "/admin/delete_topics/bad": None}
    )


def _duplicate_replicas() -> Case:
    """An assignment that names a broker twice was written past the checks (kafka-monitor 325)."""
    topic = {**assigned("t", [1, 2, 1], [2, 2]), **state("t", 0, 1, [1, 2]), **state("t", 1, 2, [2])}
    return Case({**brokers(1, 2, 3), **controller(1, 7), **topic})


def _empty_cluster() -> Case:
    """ZooKeeper lost its volume, and the brokers registered in an empty one (bitnami-docker-kafka 106)."""
    return Case({**brokers(1, 2, 3), **controller(1, 1)})


def _empty_topic_znode() -> Case:
    """A restore lost the values of topics' znodes, with everything below them in place (burry.sh 7)."""
    lost: Tree = {"/brokers/topics/lost": b"", **settings("/config/topics/lost", retention_ms="-1")}
    return Case({**WELL_IN_3_9, **lost, **state("lost", 0, 1, [1, 2, 3]), **state("lost", 1, 2, [2, 3, 1])})


def _epoch_newline() -> Case:
    """Somebody wrote /controller_epoch with the newline of `echo`."""
    tree = {**brokers(1, 2, version=5), **new_controller(), **led("t", [1, 2], with_id=True)}
    return Case({**tree, "/controller_epoch": b"1000\n"})


def _well_with_four_brokers() -> Case:
    """A cluster that is well, for the reassignments in `files`."""
    topic = led("orders", [1, 2], [2, 3], [3, 1], with_id=True)
    return Case({**brokers(1, 2, 3, 4, version=5), **new_controller(), **topic})


def _hidden_by_acl() -> Case:
    """Another identity wrote a topic's znodes, which the brokers' login may not read (bitnami/charts 8080)."""
    topic = "/brokers/topics/hidden"
    partition = f"{topic}/partitions/0"
    hidden = (f"{partition}/state", partition, f"{topic}/partitions", topic, "/config/users")
    return Case({**brokers(1, 2), **controller(1, 7), **led("t", [1, 2]), **led("hidden", [1, 2])}, hidden=hidden)


def _isr_only_outside() -> Case:
    """No in-sync broker is assigned (cruise-control 1504). Tried with 3.9.2: no return and no failover elects one."""
    topic = {**assigned("t", [1], with_id=True), **state("t", 0, -1, [2], leader_epoch=6)}
    return Case({**broker(1, 5), **new_controller(), **topic})


def _isr_outside_replicas() -> Case:
    """The ISR has a broker that the assignment lacks (cruise-control 1504)."""
    topic = {**assigned("t", [1, 2, 3]), **state("t", 0, 1, [1, 2, 3, 4])}
    return Case({**brokers(1, 2, 3, 4), **controller(1, 7), **topic})


def _leader_alone() -> Case:
    """Broker 2 is half cut off: alone in the ISR where it leads, in sync where it follows (a post-mortem of 2017)."""
    replicas = [[2, 1, 3], [2, 3, 4], [2, 4, 1], [2, 1, 4], [1, 3, 4], [3, 4, 1], [4, 1, 3], [1, 3, 4]]
    topic = led("events", *replicas)
    for number in range(4):
        topic |= state("events", number, 2, [2])
    return Case({**brokers(1, 2, 3, 4), **controller(1, 7), **topic})


def _registrations_of_all_releases() -> Case:
    """Registrations of versions 1 to 5, with own listener names, no host, IPv6 and fields of forks (CMAK 421)."""
    new = {"timestamp": "1594626855533"}
    old = {"jmx_port": -1, "timestamp": "1424216383325"}
    sasl = {"SASL_SSL": "SASL_SSL", "SASL_PLAINTEXT": "SASL_PLAINTEXT"}
    registered: Tree = {
        "/brokers/ids/1": {**old, "host": "old8.example", "version": 1, "port": 9092},
        "/brokers/ids/2": {**old, "endpoints": ["SSL://old9.example:9093"], "host": None, "version": 2, "port": -1},
        "/brokers/ids/3": {
            **old,
            "endpoints": ["PLAINTEXT://old10.example:9092"],
            **{"host": "old10.example", "version": 3, "port": 9092, "rack": None},
        },
        "/brokers/ids/4": {
            **new,
            **{"listener_security_protocol_map": sasl, "host": None, "port": -1, "version": 4, "jmx_port": 9998},
            "endpoints": ["SASL_SSL://192.0.2.7:9092", "SASL_PLAINTEXT://192.0.2.7:9093"],
        },
        "/brokers/ids/5": json.dumps(
            {
                **new,
                **{"features": {}, "listener_security_protocol_map": {"INSIDE": "PLAINTEXT", "OUT": "SSL"}},
                "endpoints": ["INSIDE://c4458563815b:9092", "OUT://[2001:db8::7]:9094"],
                **{"host": "c4458563815b", "port": 9092, "version": 5, "jmx_port": -1},
                **{"rack": "/fd1/ud2", "tags": {"a": "b"}},
            }
        ).encode()
        + b"\n",
    }
    topic = {**assigned("t", [1, 2, 3, 4, 5]), **state("t", 0, 5, [5, 4, 3, 2, 1], epoch=9)}
    return Case({**registered, **controller(5, 9), **topic})


def _names_collide() -> Case:
    """Topics whose names become one in metrics, and one that looks like another's partition (KAFKA-13743)."""
    topics = {**led("a.b", [1, 2]), **assigned("a_b", [1, 2]), **state("a_b", 0, -1, [3]), **led("a.b-0", [1, 2])}
    return Case({**brokers(1, 2), **controller(1, 7), **topics})


_NULL: Tree = dict.fromkeys(
    (
        *("/feature", "/migration", "/latest_producer_id_block", "/delegation_token", "/kafka-acl"),
        *("/kafka-acl-changes", "/kafka-acl-extended", "/kafka-acl-extended-changes"),
    )
)


def _null_znodes() -> Case:
    """A security migration without its path check made all root znodes with null (KAFKA-19480)."""
    return Case({**_NULL, **WELL_IN_3_9})


def _null_controller() -> Case:
    """KAFKA-19480 while no broker ran. /controller and /controller_epoch are null and persistent, too."""
    tree = {"/controller": None, "/controller_epoch": None, **brokers(1, 2, 3), **assigned("t", [1, 2, 3])}
    return Case(tree, persistent=frozenset({"/controller"}))


def _old_leader_not_minus_one() -> Case:
    """In 0.9 the only in-sync broker died, and the state keeps it as leader (KAFKA-3096)."""
    registered: Tree = {
        f"/brokers/ids/{number}": {
            **{"jmx_port": -1, "timestamp": "1424216383325", "version": 2, "host": f"k{number}", "port": 9092},
            "endpoints": [f"PLAINTEXT://k{number}:9092"],
        }
        for number in (1, 2)
    }
    topic = {**assigned("t", [3, 1], [1, 2]), **state("t", 0, 3, [3], leader_epoch=4), **state("t", 1, 1, [1, 2])}
    return Case({**registered, **controller(1, 7), **topic})


def _partly_deleted() -> Case:
    """A controller died in a deletion: some partitions' znodes are gone, and broker 3 is down (KAFKA-6652)."""
    gone = {**assigned("gone", [1, 2, 3], [2, 3, 1], [3, 1, 2]), "/brokers/topics/gone/partitions/0": None}
    deleted = {**gone, **state("gone", 2, -1, [3], leader_epoch=5), "/admin/delete_topics/gone": None}
    return Case({**brokers(1, 2), **controller(1, 7), **led("good", [1, 2]), **deleted})


def _persistent_broker() -> Case:
    """Somebody wrote a broker's registration by hand, or restored it from a dump."""
    topic = {**assigned("t", [3, 1], [3, 2]), **state("t", 0, 3, [3, 1]), **state("t", 1, 3, [3])}
    return Case({**brokers(1, 2, 3), **controller(1, 7), **topic}, persistent=frozenset({"/brokers/ids/3"}))


def _reassign_empty() -> Case:
    """A tool left /admin/reassign_partitions with an empty list (ansible-kafka-admin 34)."""
    return Case({**WELL, "/admin/reassign_partitions": {"version": 1, "partitions": []}})


def _reassign_malformed() -> Case:
    """A request that was written by hand has a comma too many."""
    request = b'{"version":1,"partitions":[{"topic":"t","partition":0,"replicas":[1,2,3]},]}\n'
    return Case({**WELL, "/admin/reassign_partitions": request})


def _reassign_unknown_broker() -> Case:
    """The request names broker 9, which never registered, and a topic that does not exist (KAFKA-5161)."""
    moved = {"topic": "t", "partition": 0, "replicas": [1, 2, 9], "log_dirs": ["any", "any", "any"]}
    request = {"version": 1, "partitions": [moved, {"topic": "nope", "partition": 0, "replicas": [1]}]}
    topic = {**assigned("t", [1, 2, 9, 3]), **state("t", 0, 1, [1, 2, 3])}
    return Case({**brokers(1, 2, 3), **controller(1, 7), **topic, "/admin/reassign_partitions": request})


def _throttle_minus_one() -> Case:
    """Settings of topics that no broker can parse: a throttle of broker -1, a misspelt choice (KAFKA-6973)."""
    bad = {
        **settings("/config/topics/t", **{"follower_replication_throttled_replicas": "0:2,0:-1"}),
        **settings("/config/topics/u", message_timestamp_type="CreateTimes", cleanup_policy="compacted"),
        **settings("/config/brokers/1", leader_replication_throttled_rate="10000"),
    }
    return Case({**WELL, **led("u", [1, 2, 3]), **bad})


def _topic_id_overwritten() -> Case:
    """A tool older than 2.8 added partitions in ZooKeeper, and so wrote the topic without its id (KAFKA-14190)."""
    clicks = led("clicks", [1, 2, 3], [2, 3, 1])
    return Case({**brokers(1, 2, 3, version=5), **controller(1, 7), **led("orders", [1, 2, 3], with_id=True), **clicks})


_MADE: tuple[Callable[[], Case], ...] = (
    _all_replicas_unknown,
    _duplicate_replicas,
    _empty_cluster,
    _empty_topic_znode,
    _epoch_newline,
    _well_with_four_brokers,
    _hidden_by_acl,
    _isr_only_outside,
    _isr_outside_replicas,
    _leader_alone,
    _registrations_of_all_releases,
    _names_collide,
    _null_znodes,
    _null_controller,
    _old_leader_not_minus_one,
    _partly_deleted,
    _persistent_broker,
    _reassign_empty,
    _reassign_malformed,
    _reassign_unknown_broker,
    _throttle_minus_one,
    _topic_id_overwritten,
)
CASES: Mapping[str, Case] = {make.__name__.strip("_").replace("_", "-"): make() for make in _MADE}
