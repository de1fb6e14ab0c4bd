from __future__ import annotations

import os
import subprocess
import sys

import pytest
from kazoo.client import KazooClient

from cli.embedded.process import EmbeddedError
from cli.embedded.zookeeper import ZooKeeper
from tests.processes import is_running
from tests.waiting import eventually


def client_of(zookeeper, timeout=10.0):
    client = KazooClient(hosts=zookeeper.connect_string, timeout=timeout)
    client.start(timeout=30)
    return client


def test_a_session_can_be_as_short_as_a_second(zookeeper):
    client = client_of(zookeeper, timeout=1.0)
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
