"""Embedded servers, with their ports, the archives of their classes, and the patience with which they start."""

from __future__ import annotations

import os
import socket
import subprocess
import sys

import pytest
from kazoo.client import KazooClient

from cli.embedded import process
from cli.embedded.class_archives import make
from cli.embedded.kafka import KafkaBroker
from cli.embedded.process import EmbeddedError, Patience, free_port, processor_seconds
from cli.embedded.zookeeper import ZooKeeper
from streaming.java import class_archive
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


@pytest.fixture
def archives(java, tmp_path, monkeypatch):
    """Return an empty directory of archives."""
    monkeypatch.setattr(class_archive, "_directory", lambda: tmp_path / "archives")
    return tmp_path / "archives"


@pytest.mark.nightly
def test_they_are_made_once_and_servers_load_their_classes_from_them(archives, tmp_path, monkeypatch):
    make()
    made = {archive: archive.stat().st_mtime_ns for archive in archives.glob("*.jsa")}
    assert len(made) == 2
    make()
    assert {archive: archive.stat().st_mtime_ns for archive in archives.glob("*.jsa")} == made
    monkeypatch.setenv("JAVA_TOOL_OPTIONS", "-Xlog:class+load")
    with ZooKeeper(tmp_path / "zookeeper") as server:
        loaded = [line for line in server.log.read_text().splitlines() if "org.apache.zookeeper.server." in line]
    assert sum("source: shared objects file (top)" in line for line in loaded) > 100


@pytest.fixture
def moments(monkeypatch):
    """Return a function that sets the wall clock and the processor time of the process."""
    now = {"wall": 0.0, "worked": 0.0}
    monkeypatch.setattr(process.time, "monotonic", lambda: now["wall"])
    monkeypatch.setattr(process, "processor_seconds", lambda pid: now["worked"])
    return lambda wall, worked: now.update(wall=wall, worked=worked)


def test_a_process_without_the_processor_is_waited_for(moments):
    patience = Patience(1, 60)
    for minute in range(1, 20):
        moments(wall=50.0 * minute, worked=2.0 * minute)
        assert not patience.is_over()


def test_a_process_that_works_in_vain_or_hangs_is_given_up(moments):
    patience = Patience(1, 60)
    moments(wall=61, worked=0.9)
    assert patience.is_over()
    moments(wall=61, worked=61)
    assert patience.is_over()


def test_the_work_of_a_process_and_of_those_below_it_counts():
    busy = "while True: pass"
    below = f"import subprocess, sys; subprocess.run([sys.executable, '-c', {busy!r}])"
    with subprocess.Popen([sys.executable, "-c", below], start_new_session=True) as working:
        eventually(lambda: processor_seconds(working.pid), lambda seconds: seconds > 0.5)
        for pid in (*process.descendants(working.pid), working.pid):
            process.os.kill(pid, 9)
    assert processor_seconds(working.pid) == 0
    assert processor_seconds(None) == 0
