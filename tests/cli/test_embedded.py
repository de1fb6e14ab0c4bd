"""Embedded servers and their ports, which the demo and the tests share."""

from __future__ import annotations

import os
import socket
import subprocess
import sys

import pytest
from kazoo.client import KazooClient

from cli.embedded.kafka import KafkaBroker
from cli.embedded.process import EmbeddedError, free_port
from cli.embedded.zookeeper import ZooKeeper
from tests.processes import is_running
from tests.waiting import eventually


def test_a_session_can_be_as_short_as_a_second(zookeeper):
    client = KazooClient(hosts=zookeeper.connect_string, timeout=1.0)
    client.start(timeout=30)
    assert client._session_timeout == 1000
    client.stop()


def test_a_port_in_use_is_refused_by_number(zookeeper, tmp_path):
    second = ZooKeeper(tmp_path / "second", port=zookeeper.port)
    with pytest.raises(EmbeddedError, match=f"127.0.0.1:{zookeeper.port}: the port is in use"):
        second.start()
    assert not second.running


def test_a_server_that_cannot_start_says_why_with_the_end_of_its_log(java, tmp_path):
    server = ZooKeeper(tmp_path, properties={"tickTime": "soon"})
    with pytest.raises(EmbeddedError, match=r"ended with status \d+(.|\n)*soon"):
        server.start()
    assert not server.running


def test_a_server_dies_with_a_parent_that_was_killed(tmp_path):
    program = (
        "import sys, time; from pathlib import Path; from cli.embedded.zookeeper import ZooKeeper\n"
        "server = ZooKeeper(Path(sys.argv[1])); server.start(); print(server._process.pid, flush=True); time.sleep(600)"
    )
    with subprocess.Popen([sys.executable, "-c", program, str(tmp_path)], stdout=subprocess.PIPE, text=True) as parent:
        server = int(parent.stdout.readline())
        os.kill(server, 0)
        parent.kill()
    eventually(lambda: not is_running(server))


def test_no_process_of_a_cluster_remains(start_kafka_cluster):
    cluster = start_kafka_cluster()
    cluster.kill()
    assert not cluster.zookeeper.running
    assert not cluster.brokers[1].running


def test_a_broker_without_zookeeper_is_refused_by_address(java, tmp_path, monkeypatch):
    monkeypatch.setattr("cli.embedded.kafka._ZOOKEEPER_SECONDS", 1)
    broker = KafkaBroker(1, "127.0.0.1:1", tmp_path)
    with pytest.raises(EmbeddedError, match="ZooKeeper at 127.0.0.1:1 does not answer"):
        broker.start()


def test_a_port_is_reserved_for_servers_that_come_and_go():
    port = free_port()
    for _ in range(2):
        with socket.create_server(("127.0.0.1", port)) as server:
            socket.create_connection(server.getsockname()).close()
    with socket.socket() as other, pytest.raises(OSError, match="in use"):  # another process that looks for a free one
        other.bind(("127.0.0.1", port))
