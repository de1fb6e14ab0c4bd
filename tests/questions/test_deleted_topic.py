"""A topic whose deletion stopped half-way is explained by the znodes that are left, in a real ZooKeeper."""

from __future__ import annotations

import json

import pytest
from click.testing import CliRunner
from kazoo.client import KazooClient

from cli.main import main

ENTRY, SETTINGS = "/admin/delete_topics/orders", "/config/topics/orders"
GONE = {
    "/brokers/ids": b"",
    "/brokers/topics": b"",
    "/config/topics": b"",
    "/admin/delete_topics": b"",
    "/controller_epoch": b"7",
}
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


def test_each_znode_that_is_left_is_named_with_the_commands_in_the_safe_order(client, shared_chroot):
    assert explain(shared_chroot)[0] == 2
    client.create(SETTINGS, ONE_SETTING)
    code, said = explain(shared_chroot)
    assert (code, "it does not exist, but its settings are left over" in said, ENTRY in said) == (1, True, False)
    client.create(ENTRY, b"")
    code, said = explain(shared_chroot, "--json")
    answer = json.loads(said)
    assert (code, answer["headline"]) == (1, "its deletion stopped half-way")
    commands = [each["says"] for each in answer["statements"] if each["says"].startswith("zookeeper-shell.sh")]
    assert [command.partition(" delete ")[2] for command in commands] == [ENTRY, SETTINGS]
    for command in commands:
        client.delete(command.partition(" delete ")[2])
    assert explain(shared_chroot)[0] == 2
