"""Questions to one ZooKeeper server, as four-letter words or to its AdminServer, and reasons why no session begins.

All of them only read. A word is plain text on the client port. On a TLS port, it goes through TLS with the watcher's
certificate.
"""

from __future__ import annotations

import http.client
import re
import socket
import struct
import time
from collections.abc import Callable, Mapping
from typing import Final, NamedTuple

from kazoo.handlers.utils import create_tcp_connection
from kazoo.hosts import collect_hosts

from controller.contract.decoding import JsonDecoder
from controller.contract.records import LATEST_MS
from transport.kafka_login import host_and_port

TIMEOUT_SECONDS: Final = 2.0
# `mntr` has 19 kB, `dump` some 100 bytes for each session and connection.
_LARGEST_ANSWER_BYTES: Final = 4 * 1024**2
_BLOCK_BYTES: Final = 65_536
_REFUSAL: Final = "is not executed because it is not in the whitelist"
_DECODER: Final = JsonDecoder(dict[str, object])
_NOT_SERVING: Final = "not currently serving requests"

Tls = tuple[tuple[str, object], ...]
"""kazoo's options of TLS."""


MOST_CONNECTIONS: Final = 60
"""Connections of one address that a server accepts by default (maxClientCnxns). It closes others at once."""


class UnansweredError(Exception):
    """The server does not answer a question, or not usefully. The text is a predicate of the server."""


class NotAllowedError(UnansweredError):
    """The server does not allow the question."""


class NotServingError(UnansweredError):
    """The server runs but serves no client, because it has no quorum."""


class Server(NamedTuple):
    """Address of a server."""

    host: str
    port: int

    def __str__(self) -> str:
        return host_and_port(self.host, self.port)


def ask(word: str, server: Server, tls: Tls) -> str:
    """Return the answer to a four-letter word. Raise UnansweredError."""
    try:
        with create_tcp_connection(
            socket,
            (server.host, server.port),
            hostname=server.host,
            timeout=TIMEOUT_SECONDS,
            **dict(tls),
        ) as connection:
            connection.settimeout(TIMEOUT_SECONDS)
            connection.sendall(word.encode())
            answer = _read(connection.recv).decode("utf-8", "replace")
    except TimeoutError:
        raise UnansweredError(f"does not answer within {TIMEOUT_SECONDS:g} s") from None
    except (OSError, UnicodeError) as error:
        reason = getattr(error, "strerror", None) or str(error) or type(error).__name__
        raise UnansweredError(f"does not answer ({reason})") from error
    if _REFUSAL in answer:
        raise NotAllowedError(f"does not allow {word}")
    if _NOT_SERVING in answer:
        raise NotServingError("has no quorum")
    if not answer:
        raise UnansweredError(f"closes the connection without an answer to {word}")
    return answer


def _read(receive: Callable[[int], bytes]) -> bytes:
    """Return the answer up to a limit. Raise TimeoutError if it trickles."""
    answer, deadline = bytearray(), time.monotonic() + TIMEOUT_SECONDS
    while len(answer) < _LARGEST_ANSWER_BYTES and (part := receive(_BLOCK_BYTES)):
        answer += part
        if time.monotonic() > deadline:
            raise TimeoutError(f"no whole answer within {TIMEOUT_SECONDS:g} s")
    return bytes(answer)


def ask_admin_server(server: Server, port: int) -> Mapping[str, str]:
    """Return the values of `mntr` from the AdminServer. Raise UnansweredError."""
    connection = http.client.HTTPConnection(server.host, port, timeout=TIMEOUT_SECONDS)
    try:
        connection.request("GET", "/commands/monitor")
        answer = connection.getresponse()
        values = _DECODER.decode(_read(answer.read1)) if answer.status == http.HTTPStatus.OK else {}
    except (OSError, http.client.HTTPException, ValueError) as error:
        raise UnansweredError(f"does not answer at port {port} ({error or type(error).__name__})") from error
    finally:
        connection.close()
    if not values:
        raise NotAllowedError(f"does not allow monitor at port {port}")
    return {f"zk_{name}": str(value) for name, value in values.items()}


def most_connections(server: Server, tls: Tls) -> int:
    """Return how many connections of one address the server accepts, 0 for any, ZooKeeper's default if it is silent."""
    try:
        found = re.search(r"^maxClientCnxns=(\d+)", ask("conf", server, tls), re.MULTILINE)
    except UnansweredError:
        found = None
    return MOST_CONNECTIONS if found is None else int(found[1])


def read_srvr(answer: str) -> Mapping[str, str]:
    """Return the values of `srvr` by name."""
    pairs = (line.partition(": ") for line in answer.splitlines())
    return {name: value.strip() for name, _, value in pairs}


def read_mntr(answer: str) -> Mapping[str, str]:
    """Return the values of `mntr` by name."""
    pairs = (line.partition("\t") for line in answer.splitlines())
    return {name: value for name, _, value in pairs}


def number(text: str | None, base: int = 10) -> int:
    """Return a whole number that fits 64 bits, else -1."""
    try:
        value = int(text or "", base)
    except ValueError:
        return -1
    return value if -1 <= value < 2**63 else -1


def milliseconds(text: str | None) -> float:
    """Return a duration as a server states it, else -1."""
    try:
        value = float(text or "")
    except ValueError:
        return -1
    return value if 0 <= value <= LATEST_MS else -1


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
        with socket.create_connection((host, port), timeout=TIMEOUT_SECONDS) as connection:
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
