"""Addresses without ZooKeeper, where nothing or another server answers, are recognized at once."""

from __future__ import annotations

import socket
import threading
import time

import pytest

from ingest.complete_read import read_once
from ingest.config import ZooKeeperConfig
from ingest.errors import UnreachableError
from ingest.zookeeper.four_letter_words import why_unreachable


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
