"""Clients of real servers, closed at the end of their `with`."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from kafka.admin import KafkaAdminClient
from kazoo.client import KazooClient


@contextmanager
def zookeeper_client(zookeeper_connect: str, timeout_seconds: float = 10) -> Iterator[KazooClient]:
    """Yield a client of HOST:PORT/CHROOT. `timeout_seconds` is that of its session."""
    client = KazooClient(zookeeper_connect, timeout=timeout_seconds)
    client.start(timeout=60)
    try:
        yield client
    finally:
        client.stop()
        client.close()


@contextmanager
def kafka_admin(bootstrap_servers: str | Sequence[str]) -> Iterator[KafkaAdminClient]:
    """Yield a client that changes and describes topics."""
    admin = KafkaAdminClient(bootstrap_servers=bootstrap_servers)
    try:
        yield admin
    finally:
        admin.close()
