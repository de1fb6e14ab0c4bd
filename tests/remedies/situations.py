"""The situation of each remedy on a real cluster, the remedy as Kontrast prints it, and the promised end.

A case gets a healthy cluster and leaves it healthy. Topics have the case's own name.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Mapping
from typing import Final

import pytest
from kafka.errors import KafkaError

from tests.remedies.real_cluster import RealCluster
from tests.remedies.table import REMEDIES
from tests.waiting import eventually

Case = Callable[[RealCluster], None]
CASES: Final[dict[str, Case]] = {}
# Tests with migrating clusters try the remedies of a migration.
TRIED_ELSEWHERE: Final[Mapping[str, str]] = {
    "delete-kraft-claim": "tests/integration/test_migration.py",
    "return-to-zookeeper": "tests/integration/test_migration.py",
}
_KEPT = ("before", "kept")


def case(name: str) -> Callable[[Case], Case]:
    """Register the case of a remedy."""

    def register(tried: Case) -> Case:
        CASES[name] = tried
        return tried

    return register


def follow(cluster: RealCluster, name: str, **names: object) -> None:
    """Run the commands of a remedy in their order, as the release has them."""
    for command in REMEDIES[name].filled(**names).way(cluster.release_pair).commands:
        cluster.run(command)


def printed(cluster: RealCluster, *question: str) -> list[str]:
    """Return the commands in an explanation."""
    (answer,) = cluster.kontrast("explain", *question)
    said = [each["says"] for each in answer["statements"]]
    commands = [says for says in said if says.startswith(("zookeeper-shell", "kafka-"))]
    assert commands, answer
    return commands


def found(cluster: RealCluster) -> Mapping[str, str]:
    """Return the advice of `kontrast lint` by finding."""
    return {each["check"]: each["mend"] for each in cluster.kontrast("lint")[0]["findings"]}


def is_usable(cluster: RealCluster, topic: str, *records: str) -> None:
    """Check that the topic has exactly these records and takes another, also under the next leader."""
    assert cluster.read(topic) == list(records)
    cluster.write(topic, "after")
    assert cluster.read(topic) == [*records, "after"]


def survives_its_leader(cluster: RealCluster, topic: str) -> None:
    """Check that a replica follows when the leader dies. Start it again."""
    leader = cluster.state(topic)["leader"]
    records = cluster.read(topic)
    cluster.brokers[leader].kill()
    eventually(lambda: cluster.state(topic)["leader"] not in (leader, -1))
    eventually(lambda: cluster.read(topic), lambda found: found == records)  # a new leader's high watermark lags
    cluster.brokers[leader].start()
    eventually(lambda: leader in cluster.state(topic)["isr"])


def has_a_lasting_controller(cluster: RealCluster) -> None:
    """Wait until one term lasts for two seconds."""

    def epoch() -> bytes:
        return cluster.data("/controller_epoch")

    def lasts() -> bool:
        before = epoch()
        time.sleep(2)
        return before == epoch() and cluster.client.exists("/controller") is not None

    eventually(lasts)


# --- topics


@case("write-topic-back")
def the_content_of_a_topic_is_lost(cluster: RealCluster) -> None:
    cluster.create("content", {0: [1, 2, 3]})
    cluster.write("content", *_KEPT)
    cluster.move_controller()
    topic_id = cluster.topic_id_on_disk("content", 1)
    cluster.client.set("/brokers/topics/content", b"")
    cluster.client.delete("/controller")
    assert "unloadable-topic" in found(cluster)
    for command in printed(cluster, "content"):
        cluster.run(command.replace('"ID"', f'"{topic_id}"'))
    has_a_lasting_controller(cluster)
    assert "unloadable-topic" not in found(cluster)
    is_usable(cluster, "content", *_KEPT)
    survives_its_leader(cluster, "content")


@case("put-topic-id-back")
def an_old_tool_removed_the_id(cluster: RealCluster) -> None:
    cluster.create("with-id", {0: [1, 2, 3]})
    cluster.create("bare", {0: [1, 2, 3]})
    cluster.write("bare", *_KEPT)
    cluster.move_controller()
    topic_id = cluster.topic_id_on_disk("bare", 1)
    has_a_lasting_controller(cluster)  # a controller that still loads the topics would write another id at once
    cluster.rewrite_topic("bare", topic_id=None)
    assert "missing-topic-id" in found(cluster)
    for command in printed(cluster, "bare"):
        cluster.run(command.replace('"ID"', f'"{topic_id}"'))
    cluster.move_controller()
    assert "missing-topic-id" not in found(cluster)
    is_usable(cluster, "bare", *_KEPT)
    survives_its_leader(cluster, "bare")


@case("put-topic-id-back-and-fail-over")
def a_failover_changed_the_id(cluster: RealCluster) -> None:
    cluster.create("moved", {0: [1, 2, 3]})
    cluster.write("moved", *_KEPT)
    cluster.move_controller()
    good = cluster.data("/brokers/topics/moved").decode()
    cluster.rewrite_topic("moved", topic_id=None)
    cluster.move_controller()
    eventually(lambda: cluster.content("/brokers/topics/moved").get("topic_id"))
    assert cluster.data("/brokers/topics/moved").decode() != good
    follow(cluster, "put-topic-id-back-and-fail-over", TOPIC="moved", CONTENT=good)
    has_a_lasting_controller(cluster)
    is_usable(cluster, "moved", *_KEPT)
    survives_its_leader(cluster, "moved")


@case("assign-topic-ids")
def a_topic_never_had_an_id(cluster: RealCluster) -> None:
    content = {"version": 2, "partitions": {"0": [1, 2, 3]}, "adding_replicas": {}, "removing_replicas": {}}
    cluster.client.create("/brokers/topics/never", json.dumps(content).encode())
    cluster.client.create("/config/topics/never", b'{"version":1,"config":{}}')
    if cluster.content("/brokers/topics/never").get("topic_id") is None:
        cluster.move_controller()
    eventually(lambda: cluster.content("/brokers/topics/never").get("topic_id"))
    eventually(lambda: cluster.state("never"))
    is_usable(cluster, "never")


@case("restore-assignment")
def an_assignment_is_edited(cluster: RealCluster) -> None:
    cluster.create("edited", {0: [1, 2]})
    cluster.write("edited", *_KEPT)
    good = cluster.data("/brokers/topics/edited").decode()
    cluster.rewrite_topic("edited", partitions={"0": [3, 2]})
    follow(cluster, "restore-assignment", TOPIC="edited", CONTENT=good)
    cluster.move_controller()
    assert cluster.content("/brokers/topics/edited")["partitions"] == {"0": [1, 2]}
    is_usable(cluster, "edited", *_KEPT)
    survives_its_leader(cluster, "edited")


@case("delete-deletion-entry")
def an_entry_deletes_no_topic(cluster: RealCluster) -> None:
    with cluster.ghost_controller():
        cluster.client.create("/admin/delete_topics/entry", b"")
        follow(cluster, "delete-deletion-entry", TOPIC="entry")
    cluster.create("entry", {0: [1, 2, 3]})
    is_usable(cluster, "entry")


@case("delete-partition-znodes")
@case("delete-settings")
def a_deletion_stopped_half_way(cluster: RealCluster) -> None:
    state = {"controller_epoch": 1, "leader": -1, "version": 1, "leader_epoch": 4, "isr": [1]}
    with cluster.ghost_controller():
        cluster.client.create("/config/topics/half", b'{"version":1,"config":{"retention.ms":"1"}}')
        cluster.client.create("/brokers/topics/half/partitions/0/state", json.dumps(state).encode(), makepath=True)
        cluster.client.create("/admin/delete_topics/half", b"")
        commands = printed(cluster, "half")
        assert [command.rpartition("/")[0].split()[-1] for command in commands] == [
            "/admin/delete_topics",
            "/brokers/topics",
            "/config/topics",
        ]
        for command in commands:
            cluster.run(command)
    has_a_lasting_controller(cluster)
    cluster.create("half", {0: [1, 2, 3]})
    is_usable(cluster, "half")
    assert cluster.content("/config/topics/half")["config"] == {}


@case("delete-orphan-state")
def a_state_is_left_of_no_partition(cluster: RealCluster) -> None:
    cluster.create("orphan", {0: [1, 2, 3]})
    state = {"controller_epoch": 1, "leader": -1, "version": 1, "leader_epoch": 4, "isr": [1]}
    cluster.client.create("/brokers/topics/orphan/partitions/1/state", json.dumps(state).encode(), makepath=True)
    assert "orphan-state" in found(cluster)
    follow(cluster, "delete-orphan-state", TOPIC="orphan", PARTITION=1)
    cluster.add_partition("orphan", 1, [2, 3, 1])
    eventually(lambda: (cluster.state("orphan", 1) or {}).get("leader") == 2)
    cluster.write("orphan", "new", partition=1)
    assert cluster.read("orphan", 1) == ["new"]


@case("delete-topic")
def a_topic_is_to_go(cluster: RealCluster) -> None:
    cluster.create("doomed", {0: [1, 2, 3]})
    follow(cluster, "delete-topic", TOPIC="doomed")
    eventually(lambda: not cluster.client.exists("/brokers/topics/doomed"))


@case("write-topic-back-and-delete")
def a_topic_is_removed_by_hand(cluster: RealCluster) -> None:
    cluster.create("cut", {0: [1, 2], 1: [2, 3]})
    content = cluster.data("/brokers/topics/cut").decode()
    cluster.client.delete("/brokers/topics/cut", recursive=True)
    follow(cluster, "write-topic-back-and-delete", TOPIC="cut", CONTENT=content)
    eventually(lambda: not cluster.client.exists("/brokers/topics/cut"))
    cluster.create("cut", {0: [1, 2], 1: [2, 3]})
    is_usable(cluster, "cut")


# --- the controller


@case("move-controller")
def a_state_without_a_leader(cluster: RealCluster) -> None:
    cluster.create("led", {0: [1, 2, 3]})
    cluster.write("led", *_KEPT)
    cluster.rewrite_state("led", leader=-1)
    follow(cluster, "move-controller")
    eventually(lambda: cluster.state("led")["leader"] >= 0)
    is_usable(cluster, "led", *_KEPT)


@case("raise-controller-epoch")
def the_epoch_went_back(cluster: RealCluster) -> None:
    cluster.create("epoch", {0: [1, 2, 3]})
    cluster.write("epoch", *_KEPT)
    highest = int(cluster.data("/controller_epoch")) + 5
    cluster.rewrite_state("epoch", controller_epoch=highest)
    assert "state-of-a-later-controller" in found(cluster)
    follow(cluster, "raise-controller-epoch", EPOCH=highest)
    has_a_lasting_controller(cluster)
    assert "state-of-a-later-controller" not in found(cluster)
    survives_its_leader(cluster, "epoch")
    is_usable(cluster, "epoch", *_KEPT)


@case("delete-preferred-election-request")
def a_request_ends_every_controller(cluster: RealCluster) -> None:
    content = {"version": 1, "partitions": {"0": [77]}}
    cluster.client.create("/brokers/topics/stateless", json.dumps(content).encode())
    request = {"version": 1, "partitions": [{"topic": "stateless", "partition": 0}]}
    cluster.client.create("/admin/preferred_replica_election", json.dumps(request).encode())
    cluster.client.delete("/controller")
    follow(cluster, "delete-preferred-election-request")
    has_a_lasting_controller(cluster)
    cluster.client.delete("/brokers/topics/stateless", recursive=True)
    cluster.move_controller()


# --- partitions


@case("elect-preferred")
@case("elect-all-preferred")
def another_replica_leads(cluster: RealCluster) -> None:
    cluster.create("preferred", {0: [1, 2, 3]})
    cluster.write("preferred", *_KEPT)
    survives_its_leader(cluster, "preferred")
    assert cluster.state("preferred")["leader"] != 1
    entries = {"partitions": [{"topic": "preferred", "partition": 0}]}
    (cluster.directory / "partitions.json").write_text(json.dumps(entries))
    follow(cluster, "elect-preferred", TOPIC="preferred", PARTITION=0)
    eventually(lambda: cluster.state("preferred")["leader"] == 1)
    survives_its_leader(cluster, "preferred")
    follow(cluster, "elect-all-preferred")
    eventually(lambda: cluster.state("preferred")["leader"] == 1)
    is_usable(cluster, "preferred", *_KEPT)


@case("elect-unclean")
def the_in_sync_broker_is_lost(cluster: RealCluster) -> None:
    cluster.create("unclean", {0: [1, 2]})
    cluster.write("unclean", *_KEPT)
    cluster.brokers[2].stop()
    eventually(lambda: cluster.state("unclean")["isr"] == [1])
    cluster.write("unclean", "only in sync")
    cluster.brokers[1].kill()
    cluster.brokers[2].start()
    eventually(lambda: cluster.client.exists("/brokers/ids/1") is None and cluster.state("unclean")["leader"] != 2)
    follow(cluster, "elect-unclean", TOPIC="unclean", PARTITION=0)
    eventually(lambda: cluster.state("unclean")["leader"] == 2)
    is_usable(cluster, "unclean", *_KEPT)  # without the record that the text announces as lost
    cluster.brokers[1].start()


@case("lower-min-isr")
@case("forbid-unclean-elections")
def a_replica_lacks_for_acks_all(cluster: RealCluster) -> None:
    cluster.create("least", {0: [1, 2]}, min_insync_replicas="2", unclean_leader_election_enable="true")
    cluster.write("least", *_KEPT)
    cluster.brokers[2].stop()
    eventually(lambda: cluster.state("least")["isr"] == [1])
    with pytest.raises(KafkaError):
        cluster.write("least", "refused", retries=1)
    follow(cluster, "lower-min-isr", TOPIC="least")
    cluster.write("least", "accepted")
    follow(cluster, "forbid-unclean-elections", TOPIC="least")
    assert cluster.content("/config/topics/least")["config"]["unclean.leader.election.enable"] == "false"
    cluster.brokers[2].start()
    eventually(lambda: len(cluster.state("least")["isr"]) == 2)
    assert cluster.read("least") == [*_KEPT, "accepted"]


# --- brokers


@case("delete-registration")
def a_registration_was_written_by_hand(cluster: RealCluster) -> None:
    cluster.create("owned", {0: [3]})
    cluster.write("owned", *_KEPT)
    registration = cluster.data("/brokers/ids/3")
    cluster.brokers[3].kill()
    eventually(lambda: cluster.state("owned")["leader"] == -1)
    cluster.brokers[3].launch()
    cluster.client.create("/brokers/ids/3", registration)  # before the process registers
    eventually(lambda: not cluster.brokers[3].running)  # it cannot register
    eventually(lambda: cluster.state("owned")["leader"] == 3)  # and no process leads
    assert "broker-without-session" in found(cluster)
    follow(cluster, "delete-registration", BROKER=3)
    eventually(lambda: cluster.state("owned")["leader"] == -1)
    cluster.brokers[3].start()
    eventually(lambda: cluster.state("owned")["leader"] == 3)
    is_usable(cluster, "owned", *_KEPT)


# --- reassignments


@case("delete-reassignment-request")
def a_request_reassigns_nothing(cluster: RealCluster) -> None:
    cluster.create("asked", {0: [1, 2]})
    cluster.write("asked", *_KEPT)
    cluster.client.create("/admin/reassign_partitions", b'{"version":1,"partitions":[]}')
    if cluster.vanishes("/admin/reassign_partitions"):
        return  # this release removes an empty request
    follow(cluster, "delete-reassignment-request")
    has_a_lasting_controller(cluster)
    entry = {"topic": "asked", "partition": 0, "replicas": [2, 3]}
    request = {"version": 1, "partitions": [entry]}
    cluster.client.create("/admin/reassign_partitions", json.dumps(request).encode())
    eventually(lambda: cluster.content("/brokers/topics/asked")["partitions"] == {"0": [2, 3]})
    is_usable(cluster, "asked", *_KEPT)


@case("reassign")
def a_topic_moves(cluster: RealCluster) -> None:
    cluster.create("moves", {0: [1]})
    cluster.write("moves", *_KEPT)
    cluster.plan("move.json", "moves", [1, 2, 3])
    execute, verify = REMEDIES["reassign"].way(cluster.release_pair).commands
    cluster.run(execute)
    eventually(lambda: sorted(cluster.state("moves")["isr"]) == [1, 2, 3])
    eventually(lambda: "complete" in cluster.run(verify), pause_seconds=1)
    is_usable(cluster, "moves", *_KEPT)
    survives_its_leader(cluster, "moves")


@case("cancel-reassignment")
@case("restore-replicas")
def a_target_never_returns(cluster: RealCluster) -> None:
    cluster.create("stuck", {0: [1, 2]})
    cluster.write("stuck", *_KEPT)
    cluster.plan("move.json", "stuck", [1, 3])
    cluster.plan("old.json", "stuck", [1, 2])
    cluster.brokers[3].kill()
    eventually(lambda: not cluster.client.exists("/brokers/ids/3"))
    cluster.request_reassignment("stuck", [1, 3])
    eventually(lambda: 3 in cluster.content("/brokers/topics/stuck")["partitions"]["0"])
    follow(cluster, "cancel-reassignment")
    has_a_lasting_controller(cluster)
    if cluster.release_pair >= (2, 4):
        eventually(lambda: cluster.content("/brokers/topics/stuck")["partitions"] == {"0": [1, 2]})
    if cluster.release_pair >= (2, 6):
        cluster.request_reassignment("stuck", [1, 2, 3])
        eventually(lambda: 3 in cluster.content("/brokers/topics/stuck")["partitions"]["0"])
        follow(cluster, "restore-replicas")
        eventually(lambda: cluster.content("/brokers/topics/stuck")["partitions"] == {"0": [1, 2]})
    cluster.brokers[3].start()
    is_usable(cluster, "stuck", *_KEPT)
