"""Settings of a forwarder, the sentences for wrong ones, and addresses where nothing or another server answers."""

from __future__ import annotations

import socket
import threading
import time
from pathlib import Path

import pytest

from ingest.complete_read import read_once
from ingest.config import IngestConfig, ZooKeeperConfig
from ingest.errors import IngestError, UnreachableError
from ingest.zookeeper.four_letter_words import why_unreachable
from transport.address import JournalAddress


def config(**settings: object) -> IngestConfig:
    values = {"cluster": "blue", "zookeeper": "zk:2181", "to": JournalAddress(Path("j")), **settings}
    return IngestConfig(**values)


@pytest.mark.parametrize(
    ("zookeeper", "servers", "chroot"),
    [
        ("zk:2181", "zk:2181", ""),
        ("zk:2181/", "zk:2181", ""),
        ("a:1,b.example:2,[::1]:3/kafka/blue", "a:1,b.example:2,[::1]:3", "/kafka/blue"),
        ("zk:2181/kafka/", "zk:2181", "/kafka"),
    ],
)
def test_an_address_has_servers_and_a_chroot(zookeeper: str, servers: str, chroot: str) -> None:
    assert (config(zookeeper=zookeeper).servers, config(zookeeper=zookeeper).chroot) == (servers, chroot)


@pytest.mark.parametrize("zookeeper", ["", "zk", "zk:", "zk:2181,", "zk:2181//x", "zk:2181/a b", "/kafka", "zk:2181\n"])
def test_what_is_no_address_is_refused_by_name(zookeeper: str) -> None:
    with pytest.raises(IngestError, match="is no address. Give HOST:PORT"):
        config(zookeeper=zookeeper)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("cluster", ""),
        ("cluster", "two words"),
        ("coalesce_ms", -1),
        ("heartbeat_seconds", 0),
        ("heartbeat_seconds", float("nan")),
        ("connect_timeout_seconds", 0),
        ("session_timeout_seconds", 0),
        ("multi_read_paths", 0),
        ("read_budget_znodes_per_second", 0),
        ("journal_retain_bytes", 0),
        ("journal_retain_seconds", 0),
    ],
)
def test_a_value_that_cannot_work_is_refused_by_name(name: str, value: object) -> None:
    with pytest.raises(IngestError, match=name):
        config(**{name: value})


@pytest.fixture
def closed_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port: int = listener.getsockname()[1]
    return port


def test_a_closed_port_and_an_unknown_host_are_told_at_once(closed_port):
    asked = ZooKeeperConfig(zookeeper=f"127.0.0.1:{closed_port},no-such-host.invalid:2181/kafka")
    began = time.monotonic()
    with pytest.raises(UnreachableError) as refused:
        read_once(asked, threading.Event())
    assert time.monotonic() - began < asked.connect_timeout_seconds / 2
    assert f"127.0.0.1:{closed_port} refuses connections; no host has the name no-such-host.invalid." in str(
        refused.value
    )


def test_a_kafka_broker_is_not_taken_for_zookeeper(shared_broker):
    why = why_unreachable(shared_broker)
    assert why is not None
    assert why.startswith(f"{shared_broker} is a Kafka broker, not ZooKeeper.")
    assert "A cluster in KRaft mode has no ZooKeeper" in why


def test_one_server_that_may_answer_is_enough(shared_zookeeper, closed_port):
    assert why_unreachable(f"127.0.0.1:{closed_port},{shared_zookeeper}") is None


def test_a_server_that_accepts_and_says_nothing_may_still_answer():
    with socket.create_server(("127.0.0.1", 0)) as silent:
        assert why_unreachable(f"127.0.0.1:{silent.getsockname()[1]}") is None
