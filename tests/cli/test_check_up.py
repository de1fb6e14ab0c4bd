"""`kontrast up --check` reaches what only `[serve.probe]` and the questions to the ensemble name; `up` runs once."""

from __future__ import annotations

import fcntl
import json
import os
import re
import subprocess
import sys
import threading
from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest
from click.testing import CliRunner
from kafka.protocol.metadata import MetadataRequest

from cli import checks
from cli.checks import of_watch
from cli.embedded.process import free_port
from cli.embedded.zookeeper import ZooKeeper
from cli.main import main
from dashboards.probe.config import KafkaLoginConfig
from ingest.config import IngestConfig
from ingest.errors import IngestError
from tests.clients import zookeeper_client
from tests.kraft import KRaftController
from tests.secured_broker import SecuredBroker
from transport.address import JournalAddress

Check = Callable[..., dict[str, str]]


@pytest.fixture
def check(shared_chroot: str, shared_broker: str, tmp_path: Path) -> Check:
    """Return the lines of `kontrast up --check` by object, for a cluster whose only broker is the shared one."""
    with zookeeper_client(shared_chroot) as kafka:
        registration = {"version": 5, "jmx_port": -1, "endpoints": [f"PLAINTEXT://{shared_broker}"]}
        kafka.create("/brokers/ids/1", json.dumps(registration).encode(), makepath=True)
    file = tmp_path / "kontrast.toml"

    def run(zookeeper: str = shared_chroot, *, watch: str = "", probe: str = "") -> dict[str, str]:
        file.write_text(
            f'[clusters.a]\nzookeeper = "{zookeeper}"\n[watch]\nto = "journal:{tmp_path}/c"\n{watch}\n'
            f'[stream]\nfrom = "journal:{tmp_path}/c"\nto = "journal:{tmp_path}/o"\ncheckpoint = "{tmp_path}/p"\n'
            f'[serve]\nfrom = "journal:{tmp_path}/o"\nlisten = "127.0.0.1:0"\n[serve.probe]\n{probe}\n'
        )
        lines = CliRunner().invoke(main, ["up", "--config", str(file), "--check"]).stdout.splitlines()
        named = ("a: questions to", "a: quorum", "a: brokers to compare")
        return {what: line for line in lines for what in named if what in line}

    return run


def test_brokers_and_quorum_are_asked(check):
    assert check().keys() == {"a: questions to"}
    asked = check(probe='brokers = true\nkafka_quorum = ["127.0.0.1:1"]')
    assert asked["a: brokers to compare"] == "ok     a: brokers to compare: 1 node answered"
    assert asked["a: quorum"].startswith("wrong  a: quorum 127.0.0.1:1: 127.0.0.1:1 does not answer: ")
    other = check(probe='brokers = true\nkafka_listener = "CLIENTS"')
    assert "no listener CLIENTS among PLAINTEXT://" in other["a: brokers to compare"]


@pytest.mark.nightly
def test_a_controller_answers_and_brokers_are_asked_with_their_login(check, zookeeper, tmp_path):
    with KRaftController(3001, zookeeper.connect_string, tmp_path / "controller") as controller:
        quorum = f"127.0.0.1:{controller.port}"
        asked = check(probe=f'kafka_quorum = ["{quorum}"]')
        assert asked["a: quorum"] == f"ok     a: quorum {quorum}: 1 node answered"
    secured = f"{zookeeper.connect_string}/secured"
    with SecuredBroker(secured, tmp_path / "kafka") as broker:
        login = broker.login("serve", "PLAIN")
        probe = f'brokers = true\nkafka_tls = true\nkafka_ca_file = "{login.ca_file}"\nkafka_sasl_mechanism = "PLAIN"\n'
        probe += f'kafka_password_file = "{login.password_file}"\nkafka_username = '
        known = check(secured, probe=f'{probe}"serve"')
        assert known["a: brokers to compare"] == "ok     a: brokers to compare: 1 node answered"
        unknown = check(secured, probe=f'{probe}"somebody"')
        assert unknown["a: brokers to compare"].startswith("wrong  a: brokers to compare: ")


def test_questions_that_a_server_does_not_allow_are_named(check, tmp_path):
    port = free_port()
    settings = {"4lw.commands.whitelist": "srvr"}
    with ZooKeeper(tmp_path / "zookeeper", properties=settings) as server:
        asked = check(server.connect_string)["a: questions to"]
        assert asked.endswith(": 1 server answered; refused: dump, mntr")
        wrong = check(server.connect_string, watch=f"zookeeper_admin_port = {port}")["a: questions to"]
        assert wrong.endswith(f": {server.connect_string} does not allow mntr, and has no AdminServer at port {port}")
    assert check(server.connect_string, watch="connect_timeout_seconds = 1")["a: questions to"].startswith("wrong")


@pytest.mark.parametrize(
    ("allowed", "said"),
    [
        ("srvr, conf", "^12 clusters need a connection each, .* accepts 12 of an address. Set maxClientCnxns to 24"),
        ("srvr", "^12 of 60 that a server accepts"),
    ],
)
def test_an_ensembles_clusters_are_compared_with_the_connections_of_an_address(allowed, said, tmp_path):
    settings = {"4lw.commands.whitelist": allowed, "maxClientCnxns": "12"}
    with ZooKeeper(tmp_path / "zookeeper", properties=settings) as server:
        to = JournalAddress(tmp_path / "changes")
        watched = [
            IngestConfig(cluster=f"c{number}", zookeeper=f"{server.connect_string}/{number}", to=to)
            for number in range(12)
        ]
        (ask,) = [ask for what, ask in of_watch(watched) if what == f"connections to {server.connect_string}"]
        try:
            found = ask(threading.Event())
        except IngestError as error:
            found = str(error)
        assert re.match(said, found)


def test_a_second_up_names_the_process_of_the_first_one(tmp_path):
    file = tmp_path / "kontrast.toml"
    file.write_text(
        f"""
        [watch]
        cluster = "orders"
        zookeeper = "127.0.0.1:1"
        to = "journal:{tmp_path}/changes"
        [stream]
        from = "journal:{tmp_path}/changes"
        to = "journal:{tmp_path}/outputs"
        checkpoint = "{tmp_path}/checkpoint"
        [serve]
        from = "journal:{tmp_path}/outputs"
        """
    )
    with file.open() as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        command = [sys.executable, "-m", "cli", "up", "--config", file]
        second = subprocess.run(command, capture_output=True, text=True, timeout=60)
    assert second.returncode == 3
    assert f"kontrast up already runs with {file}, as process {os.getpid()} (" in second.stderr
    assert not (tmp_path / "changes").exists()


def test_each_broker_is_asked_by_a_request_of_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    """A request keeps the version that the first broker chose, which a broker of an older release may not know."""
    asked: dict[str, object] = {}

    class Node:
        def __init__(self, address: str, *_: object, **__: object) -> None:
            self.address = address

        def ask(self, request: MetadataRequest) -> None:
            assert request.API_VERSION is None, "another broker's version"
            asked[self.address] = request
            request.API_VERSION = 9 if len(asked) == 1 else 12

        def close(self) -> None:
            pass

    monkeypatch.setattr("outputs.kafka_node.KafkaNode", Node)
    request = partial(MetadataRequest, topics=MetadataRequest.NO_TOPICS, allow_auto_topic_creation=False)
    assert checks._ask_nodes(("a:1", "b:1"), request, KafkaLoginConfig(), 1.0) == "2 nodes answered"
    assert len(set(map(id, asked.values()))) == len(asked) == 2
