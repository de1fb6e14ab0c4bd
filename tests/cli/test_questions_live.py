"""The questions asked of a real cluster while brokers die: what they say is what clients and the controller then do."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest
from click.testing import CliRunner
from kafka import KafkaProducer
from kafka.admin import KafkaAdminClient, NewTopic
from kafka.errors import KafkaError
from kazoo.client import KazooClient

from cli.embedded.cluster import KafkaCluster
from cli.embedded.process import free_port
from cli.main import main
from tests.waiting import eventually

KEYS = ["", "a", "customer-4711", "ключ", "x" * 100, *map(str, range(20))]


@pytest.fixture
def cluster(start_kafka_cluster) -> KafkaCluster:
    return start_kafka_cluster(broker_ids=(1, 2, 3), properties={"zookeeper.session.timeout.ms": "3000"})


@pytest.fixture
def admin(cluster: KafkaCluster) -> Iterator[KafkaAdminClient]:
    with closing(KafkaAdminClient(bootstrap_servers=cluster.bootstrap_servers)) as client:
        yield client


def ask(cluster: KafkaCluster, *question: str) -> tuple[int, dict]:
    """The exit code and the answer."""
    done = CliRunner().invoke(main, [*question, "--zookeeper", cluster.zookeeper.connect_string, "--json"])
    assert done.exit_code in (0, 1), done.stderr
    return done.exit_code, json.loads(done.stdout.splitlines()[0]) if done.stdout else {}


def alerts(cluster: KafkaCluster) -> set[str]:
    return {finding["alert"] for finding in ask(cluster, "check")[1]["findings"]}


def said(cluster: KafkaCluster, subject: str, about: str) -> str:
    statements = ask(cluster, "explain", subject)[1]["statements"]
    return next((statement["says"] for statement in statements if statement["about"] == about), "")


def make_topics(admin: KafkaAdminClient) -> None:
    assigned = {"solo": [[3]], "pair": [[2, 1], [1, 2], [2, 1]], "trio": [[2, 3, 1]]}
    topics = [
        NewTopic(
            name, replica_assignments=dict(enumerate(replicas)), topic_configs={"min.insync.replicas": str(needed)}
        )
        for name, replicas, needed in (
            ("solo", assigned["solo"], 1),
            ("pair", assigned["pair"], 2),
            ("trio", assigned["trio"], 1),
        )
    ]
    admin.create_topics(topics)


def written(cluster: KafkaCluster, topic: str, key: str, acks: str | int) -> int | None:
    """The partition that a real producer writes the key to; None where the brokers refuse it."""
    live = [broker.bootstrap_server for broker in cluster.brokers.values() if broker.running]
    producer = KafkaProducer(bootstrap_servers=live, acks=acks, retries=0, request_timeout_ms=5_000)
    with closing(producer):
        try:
            return int(producer.send(topic, key=key.encode(), value=b"v").get(timeout=15).partition)
        except KafkaError:
            return None


def test_the_answers_are_what_clients_and_the_controller_do(cluster, admin):
    make_topics(admin)
    eventually(lambda: ask(cluster, "check")[0] == 0)
    assert ask(cluster, "explain", "pair-0")[1]["headline"] == "led by broker 2, in sync [2,1] of [2,1]"
    for key in KEYS:
        code, answer = ask(cluster, "explain", "pair", "--key", key)
        assert (code, answer["takes_acks_all"]) == (0, True)
        assert written(cluster, "pair", key, "all") == answer["partition"], key

    heir = re.fullmatch(r"broker (\d), should broker 2 fail", said(cluster, "trio-0", "next leader"))
    assert heir is not None
    cluster.brokers[2].kill()
    eventually(lambda: said(cluster, "trio-0", "leader"), lambda leader: leader.startswith(f"broker {heir[1]},"))
    eventually(lambda: alerts(cluster), lambda found: {"PartitionsUnderMinIsr", "BrokerAbsent"} <= found)
    code, answer = eventually(lambda: ask(cluster, "explain", "pair", "--key", "a"), lambda found: found[0] == 1)
    assert (answer["leader"], answer["takes_acks_1"], answer["takes_acks_all"]) == (1, True, False)
    assert written(cluster, "pair", "a", "all") is None
    assert written(cluster, "pair", "a", 1) == answer["partition"]

    cluster.brokers[3].kill()
    eventually(lambda: alerts(cluster), lambda found: "PartitionsOffline" in found)
    eventually(lambda: said(cluster, "solo-0", "comes back").startswith("when broker 3 returns"))
    assert said(cluster, "solo-0", "unclean election") == "would find no live replica either"
    code, finding = ask(cluster, "lint")
    assert (code, finding["check"], finding["count"]) == (1, "dead-replicas", 2)

    cluster.brokers[3].start()
    eventually(lambda: ask(cluster, "explain", "solo-0")[0] == 0)
    assert ask(cluster, "explain", "broker", "3")[0] == 0
    assert ask(cluster, "explain", "broker", "2")[0] == 1


def test_the_timeline_of_the_files_has_what_was_done_to_the_cluster(cluster, admin, tmp_path):
    make_topics(admin)
    eventually(lambda: ask(cluster, "check")[0] == 0)
    before = snapshot_of(cluster, tmp_path / "before")
    cluster.brokers[2].kill()
    leader = eventually(
        lambda: re.match(r"broker (\d)", said(cluster, "trio-0", "leader")), lambda found: found and found[1] != "2"
    )
    cluster.brokers[2].start()
    eventually(lambda: ask(cluster, "check")[0] == 0)
    after = snapshot_of(cluster, tmp_path / "after")
    (trio,) = (one for one in differences(str(before), str(after)) if one["subject"] == "trio-0")
    assert ("leader", 2, int(leader[1])) in [(field["name"], field["a"], field["b"]) for field in trio["fields"]]

    files = ["--zk-data", str(cluster.zookeeper.data_directory), "--json"]
    timeline = json.loads(CliRunner().invoke(main, ["timeline", *files]).stdout)
    changes = [change for event in timeline["events"] for change in event["changes"]]
    moves = [change["says"] for change in changes if change["subject"] == "broker 2"]
    # Where it was controller, nobody handled its first registration and its death as events of their own.
    assert moves in (["dead -> live", "live -> dead", "dead -> live"], ["dead -> live"])
    led = [change["says"] for change in changes if "trio-0" in change["partitions"] and ", leader " in change["says"]]
    assert [re.search(r"leader (\d)", words)[1] for words in led][:2] == ["2", leader[1]]
    joined = [change for change in changes if "broker 2 joined the ISR" in change["says"]]
    assert {"trio-0", "pair-0", "pair-1", "pair-2"} == {name for change in joined for name in change["partitions"]}
    lanes = {lane["name"]: [span["condition"] for span in lane["spans"]] for lane in timeline["pictured"]["lanes"]}
    assert lanes["broker 2"] == ["well", "offline, dead, or no controller", "well"]
    assert "refuses acks=all" in lanes["pair-1"]
    brokers_tell_another_leader_than_zookeeper(cluster)


def snapshot_of(cluster: KafkaCluster, file: Path) -> Path:
    done = CliRunner().invoke(main, ["snapshot", "--zookeeper", cluster.zookeeper.connect_string, "--json"])
    file.write_text(done.stdout)
    return file


def differences(*arguments: str) -> list[dict]:
    """What differs, where everything answers."""
    done = CliRunner().invoke(main, ["diff", *arguments, "--json"])
    found = [line for line in map(json.loads, done.stdout.splitlines()) if line["object"] == "difference"]
    assert done.exit_code == bool(found), done.stderr
    return found


def brokers_tell_another_leader_than_zookeeper(cluster: KafkaCluster) -> None:
    """Write a newer state by hand, of which the controller never tells the brokers."""
    asked = ["--zookeeper", cluster.zookeeper.connect_string, "--bootstrap", cluster.bootstrap_servers]
    assert differences(*asked) == []
    nobody = CliRunner().invoke(main, ["diff", *asked[:-1], f"127.0.0.1:{free_port()},{cluster.bootstrap_servers}"])
    assert (nobody.exit_code, nobody.stdout.count("the same"), "it is not compared" in nobody.stderr) == (3, 3, True)
    client = KazooClient(cluster.zookeeper.connect_string)
    client.start()
    path = "/brokers/topics/solo/partitions/0/state"
    state = json.loads(client.get(path)[0])
    client.set(path, json.dumps({**state, "leader_epoch": state["leader_epoch"] + 7}).encode())
    client.stop()
    client.close()
    found = differences(*asked)
    assert [one["subject"] for one in found] == ["solo-0"] * 3
    assert {one["b"] for one in found} == {f"broker at {each}" for each in cluster.bootstrap_servers.split(",")}
    (epochs,) = {(field["name"], field["a"] - field["b"]) for one in found for field in one["fields"][1:]}
    assert epochs == ("leader_epoch", 7)
