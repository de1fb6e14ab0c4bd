"""A topic whose deletion stopped half-way, or whose id is gone, is explained by its znodes in a real ZooKeeper."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner
from kazoo.client import KazooClient

from cli.main import main

LEFTOVERS = (
    "deletion-of-no-topic",
    "unloadable-topic",
    "orphan-state",
    "settings-of-no-topic",
    "topic-without-settings",
)
RUNBOOK = Path(__file__).parents[2] / "docs" / "runbooks" / "KontrastDeletionStuck.md"
TOPIC, STATE = "/brokers/topics/orders", "/brokers/topics/orders/partitions/0/state"
ENTRY, SETTINGS = "/admin/delete_topics/orders", "/config/topics/orders"
GONE = {
    "/brokers/ids": b"",
    "/brokers/topics": b"",
    "/config/topics": b"",
    "/admin/delete_topics": b"",
    "/controller_epoch": b"7",
}
ORPHAN = json.dumps({"version": 1, "controller_epoch": 7, "leader": -1, "leader_epoch": 4, "isr": [1]}).encode()
ONE_SETTING = json.dumps({"version": 1, "config": {"retention.ms": "1"}}).encode()


def explain(zookeeper: str, *words: str) -> tuple[int, str]:
    done = CliRunner().invoke(main, ["explain", "orders", "--zookeeper", zookeeper, *words])
    return done.exit_code, done.stdout + done.stderr


@pytest.fixture
def client(shared_chroot):
    client = KazooClient(shared_chroot)
    client.start()
    for path, content in GONE.items():
        client.create(path, content, makepath=True)
    yield client
    client.stop()
    client.close()


def lint(zookeeper: str) -> dict[str, list[str]]:
    done = CliRunner().invoke(main, ["lint", "--json", "--zookeeper", zookeeper])
    findings = json.loads(done.stdout)["findings"]
    return {finding["check"]: finding["examples"] for finding in findings if finding["check"] in LEFTOVERS}


def commands_of(answer: dict) -> list[str]:
    said = [each["says"] for each in answer["statements"] if each["says"].startswith("zookeeper-shell.sh ZOOKEEPER ")]
    return [command.removeprefix("zookeeper-shell.sh ZOOKEEPER ") for command in said]


def test_each_znode_that_is_left_is_named_with_the_commands_in_the_safe_order(client, shared_chroot):
    assert explain(shared_chroot)[0] == 2
    client.create(SETTINGS, ONE_SETTING)
    code, said = explain(shared_chroot)
    assert (code, "it does not exist, but its settings are left over" in said, ENTRY in said) == (1, True, False)
    client.create(STATE, ORPHAN, makepath=True)
    client.create(ENTRY, b"")
    code, said = explain(shared_chroot, "--json")
    answer = json.loads(said)
    assert (code, answer["headline"]) == (1, "its deletion stopped half-way")
    assert lint(shared_chroot) == {
        "unloadable-topic": [TOPIC],
        "orphan-state": ["orders-0"],
        "settings-of-no-topic": ["orders"],
    }
    commands = commands_of(answer)
    assert commands == [f"delete {ENTRY}", f"deleteall {TOPIC}", f"delete {SETTINGS}"]
    printed = RUNBOOK.read_text(encoding="utf-8")
    places = [printed.index(f"zookeeper-shell.sh zk1:2181 {command}\n") for command in commands]
    assert places == sorted(places)
    for command in commands:
        verb, path = command.split()
        client.delete(path, recursive=verb == "deleteall")
    assert explain(shared_chroot)[0] == 2
    assert lint(shared_chroot) == {}


def test_an_old_release_deletes_an_empty_topic_znode_by_its_own_command(client, shared_chroot):
    # Kafka 1.1 takes the znode for a topic without partitions, so it ends no controller, but it is left over as well.
    client.create(STATE, ORPHAN, makepath=True)
    client.create(ENTRY, b"")
    answer = json.loads(explain(shared_chroot, "--json", "--kafka-version", "1.1")[1])
    assert commands_of(answer) == [f"delete {ENTRY}", f"rmr {TOPIC}"]
    says = [each["says"] for each in answer["statements"]]
    assert f"{TOPIC} is left over without an assignment" in says
    assert not any("does not exist" in each for each in says)


def test_a_topic_whose_znode_cannot_be_read_is_no_leftover(client, shared_chroot):
    client.create(TOPIC, b"not JSON")
    code, said = explain(shared_chroot)
    assert (code, "loads a topic without partitions" in said, "left over" in said) == (1, True, False)
    assert lint(shared_chroot) == {}


def test_a_deletion_that_goes_on_shows_how_far_it_came(client, shared_chroot):
    client.create(TOPIC, json.dumps({"version": 1, "partitions": {"0": [1], "1": [1]}}).encode())
    client.create(STATE, ORPHAN, makepath=True)
    client.create(ENTRY, b"")
    client.create(f"{SETTINGS[:-6]}other", ONE_SETTING)
    code, said = explain(shared_chroot, "--json")
    statements = [each["says"] for each in json.loads(said)["statements"]]
    assert code == 1
    assert "1 of 2 partition states left in ZooKeeper" in statements
    assert "0 of 2 replicas deleted on their brokers" in statements
    client.delete(ENTRY)
    assert lint(shared_chroot)["topic-without-settings"] == ["orders"]


def test_a_topic_that_lost_its_id_is_explained_beside_a_topic_that_has_one(client, shared_chroot):
    def znode(**fields: str) -> bytes:
        replicas = {"partitions": {"0": [1]}, "adding_replicas": {}, "removing_replicas": {}}
        return json.dumps({"version": 3, **replicas, **fields}).encode()

    client.create(TOPIC, znode())
    client.create(f"{TOPIC}-too", znode())
    said = explain(shared_chroot, "--json")[1]
    assert "topic_id" not in said, "no topic has an id, so none is missing"
    client.set(f"{TOPIC}-too", znode(topic_id="AAAAAAAAAAAAAAAAAAAAAA"))
    (command,) = commands_of(json.loads(explain(shared_chroot, "--json")[1]))
    assert command.startswith(f"set {TOPIC} ")
    assert '"topic_id":"ID"' in command
