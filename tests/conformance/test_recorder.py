"""Risks of the recorder for a recording, which are brokers without an answer and shortened logs."""

from __future__ import annotations

import json
import random
import shutil
import time
from pathlib import Path

import pytest

from lab.record.__main__ import read_options
from lab.record.filling import fill, first_topics
from lab.record.keeping import keep_what_is_counted
from lab.record.registered import SESSION_MS, Heartbeats, RegisteredBroker
from tests.clients import zookeeper_client
from tests.conformance.causes import read_causes
from tests.waiting import eventually


@pytest.fixture
def client(zookeeper):
    with zookeeper_client(zookeeper.connect_string) as client:
        client.ensure_path("/brokers/ids")
        yield client


def test_registered_brokers_live_until_they_crash_or_say_goodbye(zookeeper, client):
    lives, crashes, leaves = brokers = [RegisteredBroker(at, ("127.0.0.1", zookeeper.port), 5) for at in (7, 8, 9)]
    for broker in brokers:
        broker.register()
    heartbeats = Heartbeats(brokers)
    heartbeats.start()
    assert json.loads(client.get("/brokers/ids/7")[0])["version"] == 5
    leaves.close()
    assert set(client.get_children("/brokers/ids")) == {"7", "8"}
    crashes.crash()
    fell_silent = time.monotonic()
    assert client.exists("/brokers/ids/8")  # its session is not closed
    eventually(lambda: not client.exists("/brokers/ids/8"))
    assert time.monotonic() - fell_silent > SESSION_MS / 1000 - 1
    assert client.get_children("/brokers/ids") == ["7"]
    crashes.register()
    assert client.exists("/brokers/ids/8").owner_session_id != client.exists("/brokers/ids/7").owner_session_id
    heartbeats.end()
    assert lives.registered


def test_a_cluster_is_filled_with_as_many_partitions_as_asked_for(client):
    topics = list(first_topics(random.Random(1), (1, 2, 3), (101, 102, 103, 104), 1_030, 130))
    fill(client, iter(topics))
    states = {
        (topic.name, partition): json.loads(
            client.get(f"/brokers/topics/{topic.name}/partitions/{partition}/state")[0]
        )["isr"]
        for topic in topics
        for partition in topic.assignment
    }
    assert len(states) == 1_030
    near = [set(isr) for (name, _), isr in states.items() if name.startswith("near-")]
    assert near == [{1, 2, 3}] * 130
    assert sorted(client.get_children("/brokers/topics")) == sorted(topic.name for topic in topics)


@pytest.mark.parametrize("name", ["dev11", "fuzz28a", "hard39"])
def test_what_is_kept_of_the_logs_gives_the_same_account_and_causes(name, recordings, tmp_path: Path):
    recording, _ = recordings(name)
    directory = tmp_path / name
    shutil.copytree(recording.directory, directory)
    logs = sorted(directory.glob("logs*"))
    before = sum(file.stat().st_size for log in logs for file in log.iterdir())
    causes = read_causes(logs)
    for log in logs:
        keep_what_is_counted(log)
    assert type(recording)(name, directory).account() == recording.account()
    assert read_causes(logs) == causes
    assert sum(file.stat().st_size for log in logs for file in log.iterdir()) < before


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["--partitions", "9"], "--registered and --partitions need each other"),
        (["--setting", "unclean"], "--setting unclean: expected KEY=VALUE"),
        (["--out", "there.zip"], "--out there.zip must end in .tar.xz"),
    ],
)
def test_what_makes_no_sense_is_said_at_once(arguments, sentence, capsys):
    with pytest.raises(SystemExit):
        read_options(["1", "--out", "x.tar.xz", *arguments])
    assert sentence in capsys.readouterr().err


def test_registered_brokers_speak_the_protocol_that_is_set():
    options = read_options(["1", "--setting", "inter.broker.protocol.version=2.6-IV0", "--out", "x.tar.xz"])
    assert options.protocol == (2, 6)
    assert options.settings == {"inter.broker.protocol.version": "2.6-IV0"}
