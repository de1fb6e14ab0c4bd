"""Clusters with a znode that Kafka does not survive, or that makes an advice harmful, each with three further members.

Reports that were rebuilt, and members of the same class that nobody reported. `ANSWERS` has the right answers.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from kazoo.security import make_acl, make_digest_acl

from tests.cases.znodes import (
    TOPIC_ID,
    WELL,
    WELL_IN_3_9,
    Answer,
    Case,
    Content,
    Tree,
    assigned,
    broker,
    brokers,
    controller,
    led,
    new_controller,
    settings,
    state,
)

_STATE: Final = "/brokers/topics/t/partitions/0/state"
_FAILOVER: Final = "[Dd]elete /controller"
_ONE_LOGIN: Final = (make_digest_acl("kafka", "secret", all=True), make_acl("world", "anyone", read=True))


def _beside(path: str, content: Content) -> Case:
    return _well({path: content})


def _well(*trees: Tree, patience_seconds: float = 0) -> Case:
    """Return the well cluster with other znodes."""
    znodes = {path: each for tree in (WELL_IN_3_9, *trees) for path, each in tree.items()}
    return Case(znodes, patience_seconds=patience_seconds)


def _quota(path: str, **config: str) -> Case:
    return Case({**WELL_IN_3_9, path: {"version": 1, "config": config}})


def _acl(**entry: str) -> Case:
    entry = {"permissionType": "Allow", "operation": "Read", "host": "*", **entry}
    return _beside("/kafka-acl/Topic/pay", {"version": 1, "acls": [entry]})


def _feature(low: int, high: int, **supported: object) -> Case:
    fields = {"features": supported}
    three = {path: each for at in (1, 2, 3) for path, each in broker(at, 5, **fields).items()}
    levels = {"min_version_level": low, "max_version_level": high}
    feature = {"version": 1, "status": 1, "features": {"group": levels}}
    return Case({**WELL_IN_3_9, **three, "/feature": feature})


def _lost(*trees: Tree) -> Case:
    three = {**brokers(1, 2, 3, version=5), **new_controller()}
    return Case({path: each for tree in (three, *trees) for path, each in tree.items()}, patience_seconds=11)


def _apart(*listeners: tuple[str, str]) -> Case:
    registered = {
        path: each
        for at, (name, protocol) in enumerate(listeners, start=1)
        for path, each in broker(
            at, 5, endpoints=[f"{name}://k{at}:9092"], listener_security_protocol_map={name: protocol}
        ).items()
    }
    topic = {**assigned("t", [1, 2, 3], with_id=True), **state("t", 0, 1, [1])}
    return Case({**new_controller(), **registered, **topic})


def _gap() -> Tree:
    three, two = (led("g", *replicas, with_id=True) for replicas in (([1, 2], [2, 1], [1, 3]), ([1, 2],)))
    topic = two["/brokers/topics/g"]
    assert isinstance(topic, Mapping)
    del three["/brokers/topics/g/partitions/1/state"]
    return {**three, "/brokers/topics/g": {**topic, "partitions": {"0": [1, 2], "2": [1, 3]}}}


def _starts_fail(path: str, *more: str) -> tuple[Answer, ...]:
    """Return the answers to a znode at which every broker's start ends."""
    return (
        Answer("lint", 1, (f"{path}.*(end|fail)", *more)),
        Answer("restartable --broker 2", 1, ("do not restart", path)),
        Answer("check", 1, ("StartWillFail", path)),
    )


def _told(found: str) -> tuple[Answer, ...]:
    """Return the answers to what no alert tells."""
    return (Answer("lint", 1, (found,)), Answer("check", 0, (found,)))


def _unreadable(content: Content) -> Case:
    return Case({**WELL_IN_3_9, **led("u", [2, 3], with_id=True), _STATE: content})


def _unclean(path: str) -> Case:
    return _well(state("t", 0, 1, [1]), settings(path, unclean_leader_election_enable="true"))


def _nobody(more: Tree) -> Case:
    """Return a cluster whose /controller names nobody."""
    return Case({**WELL_IN_3_9, "/controller": None, **more}, persistent=frozenset({"/controller"}))


def _away(path: str) -> Case:
    """Return a cluster whose brokers with replicas are away, and in which unclean elections are allowed."""
    topic = {**assigned("t", [1, 2], with_id=True), **state("t", 0, -1, [1])}
    return Case({**broker(3, 5), **new_controller(3), **topic, **settings(path, unclean_leader_election_enable="true")})


_HARMED = (
    Answer("check", 1, (_STATE, "fails at it|takes the partition for new"), (_FAILOVER, "not created yet")),
    Answer(
        "explain t-0", 1, ("[Ww]rite the state back",), (r"[^n] delete /controller\. If", "no state yet", "first state")
    ),
    Answer("restartable --broker 1", 1, (_STATE,)),
    Answer("migration check --release 3.9.2", 1, ("state of t-0 cannot be read",), (r"\. Then delete /controller",)),
)
_TYPES: Final = {"controller_epoch": 7, "leader": 1, "version": 1, "leader_epoch": 4, "isr": ["1", "2"]}

CASES: Final[Mapping[str, Case]] = {
    # an unreadable state is not an absent one
    "state-of-texts": _unreadable(_TYPES),
    "state-empty": _unreadable(b""),
    "state-without-leader-epoch": _unreadable({"controller_epoch": 7, "leader": 1, "version": 1, "isr": [1]}),
    "state-null": _unreadable(None),
    # quotas
    "quota-with-unit": _quota("/config/users/alice", producer_byte_rate="10MB"),
    "quota-of-a-users-client": _quota("/config/users/alice/clients/app", consumer_byte_rate="1e6"),
    "quota-empty": _quota("/config/clients/<default>", request_percentage=""),
    "quota-of-a-name": _quota("/config/ips/no-such-host", connection_creation_rate="5"),
    "quota-near-zero": _quota("/config/users/<default>", producer_byte_rate="1"),
    "quota-near-zero-of-a-client": _quota("/config/clients/app", consumer_byte_rate="0"),
    "quota-near-zero-of-an-address": _quota("/config/ips/192.0.2.7", connection_creation_rate="0"),
    # ACLs
    "acl-without-principal": _acl(),
    "acl-without-a-type": _acl(principal="alice"),
    "acl-of-a-prefix": _beside("/kafka-acl-extended/prefixed/Topic/p", {"version": 1, "acls": [{"host": "*"}]}),
    "acl-of-another-version": _beside("/kafka-acl/Group/g", {"version": 2, "acls": []}),
    # features
    "feature-unknown": _feature(1, 3),
    "feature-too-high": _feature(1, 3, group={"min_version": 1, "max_version": 2}),
    "feature-too-low": _feature(1, 1, group={"min_version": 2, "max_version": 3}),
    "feature-of-one-broker": Case(
        {**_feature(1, 3, group={"min_version": 1, "max_version": 3}).znodes, **broker(3, 5, features={})}
    ),
    # registrations and names of brokers
    "registration-no-json": _beside("/brokers/ids/2", b"hello"),
    "registration-null": _beside("/brokers/ids/2", None),
    "registration-of-an-odd-endpoint": Case({**WELL_IN_3_9, **broker(2, 5, endpoints=["PLAINTEXT:k2:9092"])}),
    "registration-without-protocols": Case({**WELL_IN_3_9, **broker(2, 5, listener_security_protocol_map={})}),
    "broker-of-no-number": Case({**WELL_IN_3_9, "/brokers/ids/two": broker(2, 5)["/brokers/ids/2"]}),
    "settings-of-no-number": _beside("/config/brokers/b2", {"version": 1, "config": {}}),
    "settings-of-a-host": _beside("/config/brokers/k2.example", b""),
    "notification-of-no-number": _beside("/isr_change_notification/left", {"version": 1, "partitions": []}),
    "log-directory-of-no-number": _beside("/log_dir_event_notification/left", {"broker": 2}),
    "broker-minus-one": Case({**WELL_IN_3_9, **assigned("e", [-1, 1], with_id=True), **state("e", 0, 1, [1])}),
    # partitions that no return of a broker helps
    "isr-empty": _well(assigned("e", [1, 2], with_id=True), state("e", 0, -1, []), patience_seconds=11),
    "replicas-empty": Case({**WELL_IN_3_9, **assigned("e", [], with_id=True)}),
    # the least in-sync replicas where leaders are of several releases
    "min-isr-of-mixed-releases": _well(
        broker(1, 4),
        *(led(name, replicas, with_id=True) for name, replicas in (("old", [1, 2]), ("new", [2, 1]))),
        *(settings(f"/config/topics/{name}", min_insync_replicas="3") for name in ("old", "new")),
        patience_seconds=31,
    ),
    "throttle-of-a-leader": _well(
        state("t", 0, 1, [1]),
        settings("/config/topics/t", leader_replication_throttled_replicas="*"),
        settings("/config/brokers/1", leader_replication_throttled_rate="1"),
    ),
    "nobody-of-one-login": Case(
        {path: each for path, each in WELL_IN_3_9.items() if path != "/controller"},
        acls={"/controller_epoch": _ONE_LOGIN},
    ),
    "nobody-where-no-broker-is": Case(
        {path: each for path, each in WELL_IN_3_9.items() if not path.startswith(("/brokers/ids/", "/controller"))}
    ),
    "election-left": Case(
        {**WELL_IN_3_9, "/admin/preferred_replica_election": {"version": 1, "partitions": []}}, patience_seconds=31
    ),
    # the cluster's id
    "cluster-id-gone": Case(WELL_IN_3_9, lacks=("/cluster/id",)),
    "cluster-id-of-no-character": _beside("/cluster/id", {"version": "1", "id": ""}),
    "cluster-id-null": _beside("/cluster/id", None),
    "cluster-id-no-json": _beside("/cluster/id", b"AAAA"),
    "cluster-id-a-number": _beside("/cluster/id", {"version": "1", "id": 5}),
    # producer ids
    "producer-ids-no-json": _beside("/latest_producer_id_block", b"x"),
    "producer-ids-numbers": _beside(
        "/latest_producer_id_block", {"version": 1, "broker": 1, "block_start": 0, "block_end": 999}
    ),
    "producer-ids-without-end": _beside("/latest_producer_id_block", {"version": 1, "broker": 1, "block_start": "0"}),
    "producer-ids-exhausted": _beside(
        "/latest_producer_id_block",
        {"version": 1, "broker": 1, "block_start": "9223372036854774808", "block_end": "9223372036854775807"},
    ),
    # ACLs of ZooKeeper
    "epoch-of-one-login": Case(WELL_IN_3_9, acls={"/controller_epoch": _ONE_LOGIN}),
    "epoch-not-to-be-written": Case(
        WELL_IN_3_9, acls={"/controller_epoch": (_ONE_LOGIN[0], make_acl("world", "anyone", read=True, create=True))}
    ),
    "chroot-of-one-login": Case(WELL_IN_3_9, acls={"/": _ONE_LOGIN}),
    "registrations-of-one-login": Case(WELL_IN_3_9, acls={"/brokers/ids": _ONE_LOGIN}),
    # unclean elections
    "unclean-by-default": _unclean("/config/brokers/<default>"),
    "unclean-by-topic": _unclean("/config/topics/t"),
    "unclean-not-by-the-lost-controller": _unclean("/config/brokers/1"),
    "unclean-by-the-next-controller": _unclean("/config/brokers/2"),
    # listeners
    "listeners-apart": _apart(("PLAINTEXT", "PLAINTEXT"), ("PLAINTEXT", "PLAINTEXT"), ("SSL", "SSL")),
    "listeners-of-two-protocols": _apart(("IN", "PLAINTEXT"), ("IN", "PLAINTEXT"), ("IN", "SSL")),
    "listeners-in-pairs": _apart(("A", "SSL"), ("B", "SSL"), ("C", "SSL")),
    "listeners-of-old-brokers": Case(
        {
            **brokers(1, 2),
            **broker(3, 2, endpoints=["SSL://k3:9093"], listener_security_protocol_map={"SSL": "SSL"}),
            **controller(1, 7),
            **led("t", [1, 2]),
        }
    ),
    # states that a restore lost
    "states-missing": _lost(assigned("t", [1, 2, 3], [2, 3, 1], with_id=True), state("t", 0, 1, [1, 2, 3])),
    "states-missing-of-all": _lost(assigned("t", [1, 2, 3], [2, 3, 1], with_id=True)),
    "states-missing-in-one-of-two": _lost(led("s", [1, 2]), assigned("t", [3, 1], [2, 3])),
    "states-missing-with-parents": _lost(
        assigned("t", [1, 2], [2, 3], with_id=True), {"/brokers/topics/t/partitions/1": None}
    ),
    # topics without content, up to 2.1
    "topic-empty-before-2.1": Case({**WELL, **state("lost", 0, 1, [1, 2]), "/brokers/topics/lost": b""}),
    # settings
    "settings-mistyped": _well(settings("/config/topics/t", retention_msec="1")),
    "setting-of-brokers": _well(settings("/config/topics/t", log_retention_hours="1")),
    "throttle-left": _well(
        settings("/config/topics/t", follower_replication_throttled_replicas="*"),
        settings("/config/brokers/2", follower_replication_throttled_rate="1000"),
    ),
    "offsets-deleted": _well(
        led("__consumer_offsets", *([1, 2, 3] for _ in range(60)), with_id=True),
        settings("/config/topics/__consumer_offsets", cleanup_policy="compact,delete"),
    ),
    "partition-gap": _well(_gap()),
    # the controller's epoch, edited states and notifications
    "no-epoch": Case({path: each for path, each in WELL_IN_3_9.items() if path != "/controller_epoch"}),
    "no-epoch-below-0": _beside("/controller_epoch", b"-5"),
    "no-epoch-above-it": _beside("/controller_epoch", b"2147483647"),
    "edited-leader": _well(state("t", 0, 1, [2, 3])),
    "edited-isr": _well(state("t", 0, 1, [1, 1])),
    "change-of-no-number": _beside("/config/changes/aaa", b""),
    # several znodes together, whose mends have an order
    "controller-null-with-the-epoch": _nobody({"/controller_epoch": None}),
    "controller-null-with-feature": _nobody({"/feature": b""}),
    "controller-null-with-a-state": _nobody({_STATE: b"x"}),
    "controller-null-with-a-topic": _nobody({"/brokers/topics/t": None}),
    "controller-null-with-a-request": _nobody({"/admin/preferred_replica_election": None}),
    "controller-lasting": Case(WELL_IN_3_9, persistent=frozenset({"/controller"})),
    "controller-unregistered": Case({**WELL_IN_3_9, **new_controller(9)}),
    "endpoint-of-two": Case({**WELL_IN_3_9, **broker(2, 5, endpoints=["PLAINTEXT://k1:9092"])}),
    "listeners-none-on-one": Case({**WELL_IN_3_9, **broker(2, 5, endpoints=[])}),
    "topic-of-no-id": _beside("/brokers/topics/t", {"version": 3, "partitions": {"0": [1, 2, 3]}, "topic_id": "xyz"}),
    "topic-of-partition-minus-one": _beside("/brokers/topics/t", {"version": 3, "partitions": {"0": [1], "-1": [1]}}),
    "topic-hidden": Case({**WELL_IN_3_9, **led("h", [1, 2], with_id=True)}, hidden=("/brokers/topics/h",)),
    "topic-hidden-by-a-state": Case(
        {**WELL_IN_3_9, **led("h", [1, 2], with_id=True)}, hidden=("/brokers/topics/h/partitions/0/state",)
    ),
    "controller-hidden": Case(WELL_IN_3_9, hidden=("/controller",)),
    "twin-topics": _beside("/brokers/topics/u", {"version": 3, "partitions": {"0": [1]}, "topic_id": TOPIC_ID}),
    "away-and-unclean-by-topic": _away("/config/topics/t"),
    "away-and-unclean-by-default": _away("/config/brokers/<default>"),
    "name-of-a-user": _quota("/config/users/50%"),
    "name-of-a-client": _quota("/config/users/alice/clients/a%zz"),
    "producer-ids-below-0": _beside(
        "/latest_producer_id_block", {"version": 1, "broker": 1, "block_start": "0", "block_end": "-5"}
    ),
    "credential-weak": _quota(
        "/config/users/bob", **{"SCRAM-SHA-256": "salt=YQ==,stored_key=YQ==,server_key=YQ==,iterations=10"}
    ),
    "credential-broken": _quota("/config/users/bob", **{"SCRAM-SHA-256": "salt=YQ==,server_key=YQ==,iterations=4096"}),
}

_ELECTION: Final = (
    Answer("lint", 1, ("digest:kafka alone",)),
    Answer("restartable --broker 1", 1, ("digest:kafka alone",)),
    Answer("restartable --broker 2", 0),
    Answer("check", 0, ("unreadable-znode: .*digest:kafka alone",)),
)
_UNCLEAN: Final = (
    Answer(
        "explain t-0", 1, ("broker 2 at once, by an unclean election.*lost", "enable=false before"), ("goes offline",)
    ),
    Answer("restartable --broker 1", 1, ("would lose acknowledged records",)),
)
_NAMED: Final = (
    Answer(
        "check", 0, ("notification/left .*every broker that becomes controller fails at its name. Delete the znode",)
    ),
    Answer("restartable --broker 1", 1, ("notification/left",)),
)
_NO_EPOCH: Final = (
    Answer("lint", 1, ("/controller_epoch is .* brokers refuse the next one.* Then delete /controller",)),
    Answer("explain controller", 0, ("failover /controller_epoch is .* can write nothing",)),
    Answer("explain t-0", 0, ("A new controller elects none before the mend of /controller_epoch",)),
    Answer("restartable --broker 2", 1, ("/controller_epoch is",)),
)
_APART: Final = (
    Answer("lint", 1, ("/brokers/ids has no listener of all brokers", "copy from one another")),
    Answer("restartable --broker 1", 1, ("every broker that becomes controller fails at a broker without",)),
    Answer("migration check --release 3.9.2", 1, (), ("as with a failed log directory",)),
)
_OF: Final[Mapping[str, tuple[Answer, ...]]] = {
    "controller-null": (
        Answer(
            "explain controller",
            1,
            ("do (Write|Delete /feature|Do not restart|Delete /admin).* Check .*Then delete /controller",),
            ("As it is",),
        ),
        Answer("restartable --broker 1", 1, ("(Write|Delete /(feature|admin)|Do not).*Check that no.*Then delete",)),
        Answer("lint", 1, ("Delete /controller after the mend of /|Delete /controller after",)),
    ),
    "controller-lasting": (
        Answer("lint", 1, ("/controller is persistent: .*Then delete /controller",)),
        Answer("check --long", 1, ("goes on, if it took over before",), ("does nothing",)),
    ),
    "controller-unregistered": (
        Answer("explain controller", 1, ("but it is not registered",), ("is active",)),
        Answer("restartable --broker 1", 1, ("cannot ask it for a clean shutdown",)),
        Answer("check --long", 1, ("Restart broker 9 if its process lives",), ("does nothing",)),
    ),
    "controller-hidden": (
        Answer("check", 3, ("cluster: not known",), ("NoController", "Any live broker")),
        Answer("explain controller", 1, ("may not read /controller",), ("no broker is", "Any live broker")),
    ),
    "endpoint-of-two": (
        Answer("lint", 1, ("/brokers/ids/1 has the endpoint k1:9092 of broker 2, too: each of them ends",)),
        Answer("restartable --broker 1", 1, ("own advertised.listeners before it restarts",)),
        Answer("restartable --broker 2", 1, ("/brokers/ids/2 has the endpoint",)),
        Answer("restartable --broker 3", 0),
        Answer("check", 1, ("StartWillFail",)),
    ),
    "topic-of": (
        Answer("check", 1, ("Kafka cannot read its content",), ("no topic[. ]", "empty or no JSON")),
        Answer("explain t-0", 1, ("/brokers/topics/t",), ("there is no",)),
        Answer("lint", 1, ("unloadable-topic: /brokers/topics/t",), ("orphan-state", "lose the records")),
    ),
    "topic-hidden": (
        Answer("lint", 3, ("in what is known of", "may not read"), ("orphan-state", "lose the records", "is absent")),
        Answer("check", 3, ("cluster: not known",), ("no state", "were lost")),
        Answer("explain h", 2, ("in what Kontrast may read of",), ("does not exist",)),
    ),
    "twin-topics": (
        Answer("restartable --broker 1", 1, ("/brokers/topics/u has the topic_id of topic t.*topic_id back",)),
        Answer("lint", 1, ("duplicate-topic-id: t and u",), ("unreadable-znode",)),
        Answer("check --long", 1, ("topics t and u have the same id",), (_FAILOVER,)),
    ),
    "away-and": (
        Answer(
            "explain t-0",
            1,
            ("until broker 1 or 2 returns, even if records are lost", "if broker 2 returns before", "=false first"),
        ),
        Answer(
            "check --long", 1, ("may be elected before.*=false first.* only if unclean",), ("elects only replicas",)
        ),
    ),
    "name-of-a-user": _starts_fail("/config/users/50%", "no two hexadecimal digits"),
    "name-of-a-client": _starts_fail("/config/users/alice/clients/a%zz"),
    "producer-ids-below": _told("ends below 0, so the next ids are no ids: no producer gets an id"),
    "credential-weak": _told("SCRAM-SHA-256 of 10 iterations, fewer than 4096: the user cannot log in"),
    "quota-with-unit": _starts_fail("/config/users/alice", "10MB"),
    "quota-of-a-users": _starts_fail("/config/users/alice/clients/app", "1e6"),
    "quota-near-zero": (
        Answer("lint", 1, ("znode-without-effect: .*=[01]: clients under it hardly pass",)),
        Answer("check", 0, ("hardly pass. Raise it",)),
        Answer("restartable --broker 1", 0),
    ),
    "quota-empty": _starts_fail("/config/clients/<default>"),
    "quota-of-a-name": _starts_fail("/config/ips/no-such-host"),
    "acl-without": _starts_fail("/kafka-acl/Topic/pay", "User:alice"),
    "acl-of-a-prefix": _starts_fail("/kafka-acl-extended/prefixed/Topic/p"),
    "acl-of-another": _starts_fail("/kafka-acl/Group/g"),
    "feature-": _starts_fail("/feature", "ends, at its start and within seconds"),
    "cluster-id-": _starts_fail("/cluster/id"),
    "registration-": (
        *_starts_fail("/brokers/ids/2"),
        Answer("check", 1, ("Stop its broker",), ("Start broker", "BrokerAbsent", "is down")),
        Answer("restartable --broker 1", 1, ("/brokers/ids/2",), ("start it", "is down")),
        Answer("explain t-0", 0, ("broker 2 is live",)),
        Answer("explain broker 2", 1, ("/brokers/ids/2 (is|has).* Stop its broker",)),
    ),
    "broker-of-no": _starts_fail("/brokers/ids/two", "Delete the znode"),
    "settings-of-no": _starts_fail("/config/brokers/b2", "Delete the znode"),
    "settings-of-a": _starts_fail("/config/brokers/k2.example"),
    "notification-of-no": _NAMED,
    "log-directory-of-no": _NAMED,
    "broker-minus": (Answer("check", 1, ("broker -1 has never registered",), ("Start broker",)),),
    "isr-empty": (
        Answer("check --long", 1, ("do: Elect another live replica",), ("can return", "Bring back")),
        Answer("explain e-0", 1, ("only by an unclean election",)),
    ),
    "replicas-empty": (
        Answer("check", 1, ("first step: Assign brokers to the partition",), ("an election", "can return")),
        Answer("explain e-0", 1, ("none is assigned", "assigns brokers"), ("no broker registers",)),
    ),
    "min-isr-of": (
        Answer("check", 1, (r"1 partition rejects acks=all \(old-0\)",)),
        Answer("explain old-0", 1, ("rejected: 2 in sync, min.insync.replicas needs 3",)),
        Answer("explain new-0", 0, (r"needs 2 \[assumed\]",)),
        Answer("lint", 1, ("old .min.insync.replicas 3, 2 replicas.", "of-all-replicas: new "), ("new .min.* 3",)),
    ),
    "throttle-of-a": (
        Answer("explain t-0", 1, ("leader.replication.throttled.rate=1 of /config/brokers/1 holds back",)),
        Answer("restartable --broker 3", 1, ("leader.replication.throttled.rate=1 of /config/brokers/1 holds back",)),
    ),
    "nobody-of": (
        Answer("check --long", 1, ("expected: Each election fails", "do: Give the brokers' login"), ("Any live",)),
        Answer("explain controller", 1, ("digest:kafka alone",)),
    ),
    "nobody-where": (Answer("check --long", 1, ("do: Start the brokers",), ("Any live broker", "at once")),),
    "election-left": (
        Answer(
            "check",
            0,
            ("leftover-election-request: /admin/preferred_replica_election .Delete",),
            ("reassign_partitions",),
        ),
    ),
    "no-epoch-": (
        *_NO_EPOCH,
        Answer("migration check", 1, ("/controller_epoch: is below 0 or .* do: Fail over later.* Write the highest",)),
    ),
    "no-epoch": _NO_EPOCH,
    "edited-": (
        Answer("lint", 1, ("edited-state: t-0 .*The leader's end may lose records, or empty the ISR",)),
        Answer("explain t-0", 1, ("ISR .*(lacks leader 1, so somebody|names broker 1 twice, so it has 1 copy)",)),
        Answer("restartable --broker 1", 1, ("t-0 .*: No broker writes such a state",)),
        Answer("restartable --broker 2", 1, ("somebody edited it",), ("of broker 1 (is|are) not in sync",)),
    ),
    "change-of": _told(
        "changes/aaa has a name that Kafka cannot read: brokers fail .*only at their next start. Delete"
    ),
    "producer-ids-": _starts_fail("/latest_producer_id_block"),
    "epoch-": _ELECTION,
    "chroot-of": _ELECTION,
    "registrations-of-one": (
        Answer("lint", 1, ("/brokers/ids may be changed by digest:kafka alone",)),
        Answer("restartable --broker 2", 1, ("cannot register",)),
    ),
    "unclean-by-the": (Answer("explain t-0", 1, ("broker 2 at once, by an unclean election.*lost",)),),
    "unclean-not": (
        Answer("explain t-0", 1, ("Without broker 1 it goes offline",)),
        Answer("restartable --broker 1", 1, ("would be offline",)),
    ),
    "unclean-by": _UNCLEAN,
    "listeners-of-two-p": _APART[::2],
    "listeners-": _APART,
    "states-missing": (
        Answer("lint", 1, ("partitions/[01]/state is absent.*ignore leader epoch 0",)),
        Answer(
            "explain t-1", 1, ("[Ww]rite the state back.*(Then|mended,) delete /controller",), ("must write its first",)
        ),
        Answer("restartable --broker 1", 1, ("partitions/[01]/state is absent",)),
        Answer("restartable --broker 2", 0),
        Answer("whatif --lose-broker 1", 2, ("partitions/[01]/state is absent",)),
        Answer(
            "migration check --release 3.9.2",
            1,
            ("write its state back with a leader_epoch above",),
            ("elect a leader first",),
        ),
    ),
    "state-": _HARMED,
    "topic-empty": (Answer("explain lost", 1, ("loads a topic without partitions", "assignment"), ("there is no",)),),
    "settings-mistyped": _told("retention.msec=1 of topic t, perhaps meant as retention.ms"),
    "setting-of-brokers": _told("log.retention.hours=1 of topic t, perhaps meant as retention.ms"),
    "throttle-left": _told("throttled.replicas=.*topics/t.*rate=1000 of /config/brokers/2"),
    "offsets-deleted": _told("__consumer_offsets .cleanup.policy=compact,delete"),
    "partition-gap": _told(r"g \(without partition \[1\]"),
    "credential-broken": _starts_fail("/config/users/bob", "cannot log in"),
}
ANSWERS: Final[Mapping[str, tuple[Answer, ...]]] = {
    name: next(answers for begin, answers in _OF.items() if name.startswith(begin)) for name in CASES
}
"""By the name of a case or the beginning of the names of a class. The first one that fits counts."""
