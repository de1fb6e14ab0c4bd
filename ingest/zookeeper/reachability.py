"""Reasons why no session begins at an address, such as an unknown host, a refused connection, or a Kafka broker."""

from __future__ import annotations

import socket
import struct
from typing import Final

from kazoo.hosts import collect_hosts

_SECONDS: Final = 2.0
_CORRELATION: Final = 0x6B6F6E74
# ApiVersions, version 0, without a client id. Every broker since 0.10 answers it before a login (KIP-35), but ZooKeeper
# closes the connection.
_API_VERSIONS: Final = struct.pack(">ihhih", 10, 18, 0, _CORRELATION, -1)
_HEAD: Final = struct.Struct(">ii")


def why_unreachable(servers: str) -> str | None:
    """Return a sentence if no server of HOST:PORT,… can be ZooKeeper now, None if one may answer yet.

    Takes up to two seconds for a server that does not answer.
    """
    reasons = []
    for host, port in collect_hosts(servers)[0]:
        reason = _reason(host, port)
        if reason is None:
            return None
        reasons.append(reason)
    return "; ".join(reasons)


def _reason(host: str, port: int) -> str | None:
    address = f"{host}:{port}"
    try:
        with socket.create_connection((host, port), timeout=_SECONDS) as connection:
            if not _is_broker(connection):
                return None
    except socket.gaierror:
        return f"no host has the name {host}"
    except ConnectionRefusedError:
        return f"{address} refuses connections"
    except OSError:
        return None
    return (
        f"{address} is a Kafka broker, not ZooKeeper. Give the address in its zookeeper.connect. A cluster in KRaft "
        "mode has no ZooKeeper, and Kontrast is not for it"
    )


def _is_broker(connection: socket.socket) -> bool:
    try:
        connection.sendall(_API_VERSIONS)
        head = b""
        while len(head) < _HEAD.size and (block := connection.recv(_HEAD.size - len(head))):
            head += block
    except OSError:
        return False
    return len(head) == _HEAD.size and _HEAD.unpack(head)[1] == _CORRELATION
