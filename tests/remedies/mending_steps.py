"""The steps in the table of znodes that fix flawed znodes, done by hand on a real cluster.

A step is a sentence, so each case here follows the sentence by hand. A case gets a healthy cluster and leaves it
healthy. Topics have the case's own name.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Mapping
from typing import Final, NamedTuple

from controller.contract.consequences import Consequence, Release, consequence_of
from controller.contract.znode_table import Place
from controller.contract.znodes import Flaw
from tests.remedies.real_cluster import RealCluster
from tests.remedies.situations import has_a_lasting_controller, is_usable, survives_its_leader
from tests.waiting import eventually

_KEPT = ("before", "kept")
_EPOCH, _FEATURE, _REASSIGN = "/controller_epoch", "/feature", "/admin/reassign_partitions"
_ID_ON_DISK = (2, 4)
_TERMS_SECONDS = 4  # a flapping controller has tens of terms by then
_SETTINGS = '{"version":1,"config":{"max.message.bytes":%s}}'


class MendingStep(NamedTuple):
    """A step with the flaw that it mends, and what is done on a cluster."""

    path: str
    flaw: Flaw
    do: Callable[[RealCluster], None]

    def consequence(self, release: Release) -> Consequence | None:
        """Return the table's row for the flaw in this release."""
        return consequence_of(self.path, self.flaw, release)


STEPS: Final[dict[str, MendingStep]] = {}
# Steps that other tests follow already.
TRIED_ELSEWHERE: Final[Mapping[tuple[Place, Flaw], str]] = {
    (Place.TOPIC, Flaw.EMPTY): "tests/remedies/situations.py",
    (Place.MIGRATION, Flaw.EMPTY): "tests/migration/test_preflight_tried.py",
    **dict.fromkeys(
        (
            (Place.CLUSTER_ID, Flaw.ABSENT),
            (Place.CONTROLLER_EPOCH, Flaw.LOCKED),
            (Place.REGISTRATIONS, Flaw.LOCKED),
            (Place.CLUSTER_ID, Flaw.REPLACED),
            (Place.FEATURE, Flaw.INCOMPATIBLE),
            (Place.BROKER, Flaw.WRONG_NAME),
            (Place.BROKER, Flaw.SAME_ENDPOINT),
            (Place.REGISTRATIONS, Flaw.NO_COMMON_LISTENER),
            (Place.REGISTRATIONS, Flaw.ELSEWHERE),
            (Place.USER, Flaw.NO_NUMBER),
            (Place.USER, Flaw.NO_CREDENTIAL),
            (Place.IP, Flaw.NO_ADDRESS),
            (Place.ACL, Flaw.WRONG_TYPE),
            (Place.PRODUCER_IDS, Flaw.UNPARSABLE),
        ),
        "tests/conformance/test_flaws_besides.py",
    ),
}
# The controller reads the event of a failed log directory at once, so no test can damage it before.
# Mends that nobody followed on a broker yet. The flaws of most were seen there (`test_flaws_besides.py`).
UNTRIED: Final = frozenset({"Restart the broker whose log directory failed."})
RELEASES: Final[tuple[str, ...]] = ("1.1.1", "2.8.2", "3.9.2")


def step(path: str, flaw: Flaw) -> Callable[[Callable[[RealCluster], None]], Callable[[RealCluster], None]]:
    """Register the case of a flaw."""

    def register(do: Callable[[RealCluster], None]) -> Callable[[RealCluster], None]:
        STEPS[do.__name__] = MendingStep(path, flaw, do)
        return do

    return register


def _has_no_controller(cluster: RealCluster) -> None:
    """Check that the flaw has its effect: for some seconds there is no controller, or one after the other."""
    before = cluster.client.get(_EPOCH)[1].version
    time.sleep(_TERMS_SECONDS)
    is_named = cluster.client.exists("/controller") and cluster.content("/controller")
    assert not is_named or cluster.client.get(_EPOCH)[1].version > before + 1


def _replace_controller(cluster: RealCluster, content: bytes | None) -> None:
    both = cluster.client.transaction()
    both.delete("/controller")
    both.create("/controller", content)
    assert not [each for each in both.commit() if isinstance(each, Exception)]


@step("/cluster/id", Flaw.EMPTY)
def the_id_is_written_back(cluster: RealCluster) -> None:
    cluster.create("cluster-id", {0: [1, 2, 3]})
    cluster.write("cluster-id", *_KEPT)
    cluster.client.set("/cluster/id", b"")
    if cluster.release_pair < _ID_ON_DISK:
        cluster.client.delete("/cluster/id")
    else:
        known = (cluster.directory / "broker-1" / "data" / "meta.properties").read_text().splitlines()
        own = dict(line.split("=", 1) for line in known if "=" in line)["cluster.id"]
        cluster.client.set("/cluster/id", json.dumps({"version": "1", "id": own}).encode())
    survives_its_leader(cluster, "cluster-id")
    assert cluster.content("/cluster/id")["id"]
    is_usable(cluster, "cluster-id", *_KEPT)


@step("/controller", Flaw.EMPTY)
def a_controller_that_names_nobody_is_deleted(cluster: RealCluster) -> None:
    _replace_controller(cluster, b"")
    _has_no_controller(cluster)
    cluster.client.delete("/controller")
    has_a_lasting_controller(cluster)


@step("/controller", Flaw.PERSISTENT)
def a_controller_without_a_session_is_deleted(cluster: RealCluster) -> None:
    named = cluster.controller()
    _replace_controller(cluster, cluster.data("/controller"))
    cluster.brokers[named].kill()
    eventually(lambda: not cluster.client.exists(f"/brokers/ids/{named}"))
    assert cluster.controller() == named
    cluster.client.delete("/controller")
    eventually(lambda: (cluster.content("/controller") or {}).get("brokerid", named) != named)
    has_a_lasting_controller(cluster)
    cluster.brokers[named].start()


def _epoch(cluster: RealCluster, topic: str, content: bytes) -> None:
    cluster.create(topic, {0: [1, 2, 3]})
    cluster.write(topic, *_KEPT)
    highest = int(cluster.data(_EPOCH))
    cluster.client.set(_EPOCH, content)
    if content.startswith(b"-"):
        cluster.client.delete("/controller")
        eventually(lambda: int(cluster.data(_EPOCH)) < 0 and cluster.client.exists("/controller"))
    cluster.client.set(_EPOCH, b"%d" % highest)
    cluster.client.delete("/controller")
    time.sleep(_TERMS_SECONDS)
    if not cluster.client.exists("/controller"):
        cluster.brokers[1].kill()
        cluster.brokers[1].start()
    has_a_lasting_controller(cluster)
    survives_its_leader(cluster, topic)
    is_usable(cluster, topic, *_KEPT)


def _feature(cluster: RealCluster, content: bytes, flaw: Flaw) -> None:
    cluster.client.set(_FEATURE, content)
    cluster.client.delete("/controller")
    _has_no_controller(cluster)
    found = consequence_of(_FEATURE, flaw, cluster.release_pair)
    assert found
    if found.stops_brokers:
        eventually(lambda: not any(broker.running for broker in cluster.brokers.values()))
    if cluster.client.exists(_FEATURE):
        cluster.client.delete(_FEATURE)
    cluster.heal()
    has_a_lasting_controller(cluster)
    cluster.move_controller()  # one that waits for the brokers' knowledge of /feature gives up only after 30 s
    assert cluster.content(_FEATURE)


@step(_REASSIGN, Flaw.NULL)
def a_request_without_content_is_deleted(cluster: RealCluster) -> None:
    cluster.client.create(_REASSIGN, None)
    cluster.client.delete("/controller")
    _has_no_controller(cluster)
    cluster.client.delete(_REASSIGN)
    has_a_lasting_controller(cluster)


@step(_REASSIGN, Flaw.UNPARSABLE)
def an_unreadable_request_is_deleted_with_the_controller(cluster: RealCluster) -> None:
    cluster.create("request", {0: [1, 2]})
    cluster.write("request", *_KEPT)
    cluster.client.create(_REASSIGN, b"x")
    if cluster.vanishes(_REASSIGN):
        return  # this release removes it
    cluster.client.delete(_REASSIGN)
    cluster.client.delete("/controller")
    has_a_lasting_controller(cluster)
    cluster.request_reassignment("request", [2, 3])
    eventually(lambda: cluster.content("/brokers/topics/request")["partitions"] == {"0": [2, 3]})
    is_usable(cluster, "request", *_KEPT)


@step("/admin/preferred_replica_election", Flaw.WRONG_TYPE)
def an_unreadable_election_is_deleted(cluster: RealCluster) -> None:
    cluster.client.create("/admin/preferred_replica_election", b"[1]")
    cluster.client.delete("/controller")
    _has_no_controller(cluster)
    cluster.client.delete("/admin/preferred_replica_election")
    has_a_lasting_controller(cluster)


@step("/brokers/ids/2", Flaw.EMPTY)
def an_unreadable_broker_is_stopped_and_started(cluster: RealCluster) -> None:
    cluster.create("unread-broker", {0: [1, 2, 3]})
    cluster.write("unread-broker", *_KEPT)
    cluster.client.set("/brokers/ids/2", b"")
    cluster.client.delete("/controller")
    _has_no_controller(cluster)
    cluster.brokers[2].stop()
    if cluster.client.exists("/brokers/ids/2"):
        cluster.client.delete("/brokers/ids/2")
    cluster.brokers[2].start()
    has_a_lasting_controller(cluster)
    eventually(lambda: len(cluster.state("unread-broker")["isr"]) == 3)
    is_usable(cluster, "unread-broker", *_KEPT)


@step("/brokers/ids/3", Flaw.PERSISTENT)
def a_broker_without_a_session_is_deleted(cluster: RealCluster) -> None:
    content = cluster.data("/brokers/ids/3")
    cluster.brokers[3].kill()
    eventually(lambda: not cluster.client.exists("/brokers/ids/3"))
    cluster.client.create("/brokers/ids/3", content)
    cluster.client.delete("/brokers/ids/3")
    cluster.brokers[3].start()
    eventually(lambda: cluster.client.exists("/brokers/ids/3").ephemeralOwner)


@step("/brokers/topics/lost", Flaw.UNPARSABLE)
def an_unreadable_topic_is_written_back(cluster: RealCluster) -> None:
    cluster.create("lost", {0: [1, 2, 3]})
    cluster.write("lost", *_KEPT)
    content = cluster.data("/brokers/topics/lost")
    cluster.client.set("/brokers/topics/lost", b"x")
    cluster.client.set("/brokers/topics/lost", content)
    cluster.move_controller()
    survives_its_leader(cluster, "lost")
    is_usable(cluster, "lost", *_KEPT)


@step("/brokers/topics/second", Flaw.SAME_ID)
def an_id_of_two_topics_is_written_back(cluster: RealCluster) -> None:
    for topic in ("first", "second"):
        cluster.create(topic, {0: [1, 2, 3]})
    cluster.write("second", *_KEPT)
    cluster.move_controller()  # brokers of 2.8 write partition.metadata with the next one, some time after its election
    own_id = cluster.topic_id_on_disk("second", 1)
    cluster.rewrite_topic("second", topic_id=cluster.content("/brokers/topics/first")["topic_id"])
    cluster.client.delete("/controller")
    _has_no_controller(cluster)
    cluster.rewrite_topic("second", topic_id=own_id)
    time.sleep(_TERMS_SECONDS)
    if not cluster.client.exists("/controller"):
        cluster.brokers[1].kill()
        cluster.brokers[1].start()
    has_a_lasting_controller(cluster)
    survives_its_leader(cluster, "second")
    is_usable(cluster, "second", *_KEPT)


def _state(cluster: RealCluster, topic: str, content: bytes | None) -> None:
    cluster.create(topic, {0: [1, 2, 3]})
    cluster.write(topic, *_KEPT)
    path, last = f"/brokers/topics/{topic}/partitions/0/state", cluster.state(topic)
    if content is None:
        cluster.client.delete(path)
    else:
        cluster.client.set(path, content)
        cluster.client.delete("/controller")
    written = last | {"isr": [last["leader"]], "leader_epoch": last["leader_epoch"] + 1}
    (cluster.client.create if content is None else cluster.client.set)(path, json.dumps(written).encode())
    if cluster.client.exists("/controller"):
        cluster.client.delete("/controller")
    has_a_lasting_controller(cluster)
    eventually(lambda: len(cluster.state(topic)["isr"]) == 3)
    survives_its_leader(cluster, topic)
    is_usable(cluster, topic, *_KEPT)


@step("/config/topics/T", Flaw.WRONG_TYPE)
def settings_of_a_topic_are_written_with_quotation_marks(cluster: RealCluster) -> None:
    cluster.create("settings", {0: [1, 2, 3]})
    cluster.write("settings", *_KEPT)
    cluster.client.set("/config/topics/settings", (_SETTINGS % "1000000").encode())
    cluster.client.set("/config/topics/settings", (_SETTINGS % '"1000000"').encode())
    survives_its_leader(cluster, "settings")
    is_usable(cluster, "settings", *_KEPT)


@step("/isr_change_notification/isr_change_0000000000", Flaw.UNPARSABLE)
def an_unreadable_notification_needs_nothing(cluster: RealCluster) -> None:
    path = cluster.client.create("/isr_change_notification/isr_change_", b"x", sequence=True)
    assert cluster.vanishes(path)
    has_a_lasting_controller(cluster)


@step("/isr_change_notification/odd", Flaw.WRONG_NAME)
def a_notification_with_another_name_is_deleted(cluster: RealCluster) -> None:
    cluster.client.create("/isr_change_notification/odd", b"{}")
    cluster.client.delete("/controller")
    _has_no_controller(cluster)
    cluster.client.delete("/isr_change_notification/odd")
    cluster.heal()
    has_a_lasting_controller(cluster)


@step("/config/clients/<default>", Flaw.NEAR_ZERO)
def a_quota_near_zero_is_raised(cluster: RealCluster) -> None:
    cluster.create("slow", {0: [1, 2, 3]})
    server = "--zookeeper ZOOKEEPER" if cluster.release == "1.1.1" else "--bootstrap-server BOOTSTRAP"
    alter = f"kafka-configs.sh {server} --alter --entity-type clients --entity-default"

    def seconds_under(bytes_a_second: int) -> float:
        cluster.run(f"{alter} --add-config producer_byte_rate={bytes_a_second}")
        time.sleep(_TERMS_SECONDS)  # brokers read it meanwhile
        began = time.monotonic()
        cluster.write("slow", *_KEPT)
        return time.monotonic() - began

    assert seconds_under(5) > seconds_under(1_048_576) + 1
    cluster.run(f"{alter} --delete-config producer_byte_rate")
    is_usable(cluster, "slow", *_KEPT, *_KEPT)


_STATE = "/brokers/topics/T/partitions/0/state"
for _name, _path, _flaw, _do in (
    ("an-epoch-of-no-digits", _EPOCH, Flaw.NO_DIGITS, lambda cluster: _epoch(cluster, "epoch-9", b"9\n")),
    ("an-epoch-below-0", _EPOCH, Flaw.NO_EPOCH, lambda cluster: _epoch(cluster, "epoch-below", b"-5")),
    ("a-feature-empty", _FEATURE, Flaw.EMPTY, lambda cluster: _feature(cluster, b"", Flaw.EMPTY)),
    ("a-feature-odd", _FEATURE, Flaw.UNPARSABLE, lambda cluster: _feature(cluster, b"x", Flaw.UNPARSABLE)),
    ("a-state-empty", _STATE, Flaw.EMPTY, lambda cluster: _state(cluster, "empty-state", b"")),
    ("a-state-odd", _STATE, Flaw.UNPARSABLE, lambda cluster: _state(cluster, "odd-state", b"x")),
    ("a-state-absent", _STATE, Flaw.ABSENT, lambda cluster: _state(cluster, "absent-state", None)),
):
    STEPS[_name] = MendingStep(_path, _flaw, _do)
