"""Brokers that are registered and never answer, so that a cluster becomes large at the cost of one process.

Their sessions, in as few bytes as ZooKeeper needs, and their ports without a reader belong here. A controller connects,
sends, waits for its socket timeout and tries again, as with a broker that hangs. kazoo's client cannot stop without
closing its session, so this module does not use it.
"""

from __future__ import annotations

import json
import socket
import struct
import threading
import time
from collections.abc import Sequence
from contextlib import suppress

from kazoo.protocol.serialization import Close, Connect, Create, Ping
from kazoo.security import OPEN_ACL_UNSAFE

SESSION_MS = 6_000
_PING_SECONDS = SESSION_MS / 4_000
_TIMEOUT_SECONDS = 30
_PING_XID = -2
_EPHEMERAL = 1


class RegisteredBroker:
    """A broker's registration, with a session of its own and an endpoint that accepts and never answers."""

    def __init__(self, broker_id: int, zookeeper: tuple[str, int], znode_version: int) -> None:
        self.broker_id = broker_id
        self._zookeeper = zookeeper
        self._znode_version = znode_version
        self._endpoint = socket.create_server(("127.0.0.1", 0), backlog=1_024)
        self._session: socket.socket | None = None
        self._sending = threading.Lock()

    @property
    def registered(self) -> bool:
        """Return whether it keeps a session."""
        return self._session is not None

    def register(self) -> None:
        """Open a session and create the broker's znode. The znode of its last session must be gone."""
        session = socket.create_connection(self._zookeeper, timeout=_TIMEOUT_SECONDS)
        _send(session, bytes(Connect(0, 0, SESSION_MS, 0, bytes(16), False).serialize()))
        _receive(session)
        create = Create(f"/brokers/ids/{self.broker_id}", self._znode(), OPEN_ACL_UNSAFE, _EPHEMERAL)
        _send(session, struct.pack("!ii", 1, Create.type) + bytes(create.serialize()))
        _, _, error = struct.unpack_from("!iqi", _receive(session))
        if error:
            raise OSError(f"ZooKeeper refused to register broker {self.broker_id}: error {error}")
        self._session = session

    def live_on(self) -> None:
        """Send a ping, and drop ZooKeeper's earlier answer."""
        with self._sending:
            if self._session is not None:
                try:
                    _send(self._session, struct.pack("!ii", _PING_XID, Ping.type))
                    _receive(self._session)
                except OSError:
                    self._session = None
                    raise

    def crash(self) -> None:
        """Fall silent. ZooKeeper ends the session after its timeout, counted from now."""
        self.live_on()
        self._leave()

    def close(self) -> None:
        """Close the session, if there is one. The registration is gone at once."""
        with self._sending:
            if self._session is not None:
                _send(self._session, struct.pack("!ii", 2, Close.type))
                _receive(self._session)
        self._leave()

    def _leave(self) -> None:
        with self._sending:
            if self._session is not None:
                self._session.close()
                self._session = None

    def _znode(self) -> bytes:
        host, port = self._endpoint.getsockname()
        znode = {
            "listener_security_protocol_map": {"PLAINTEXT": "PLAINTEXT"},
            "endpoints": [f"PLAINTEXT://{host}:{port}"],
            "jmx_port": -1,
            "host": host,
            "timestamp": str(time.time_ns() // 1_000_000),
            "port": port,
            "version": self._znode_version,
        }
        if self._znode_version >= _VERSION_WITH_FEATURES:
            znode["features"] = {}
        return json.dumps(znode, separators=(",", ":")).encode()


_VERSION_WITH_FEATURES = 5


def znode_version(protocol: tuple[int, int]) -> int:
    """Return the version of a broker's znode under this inter.broker.protocol.version. 2.7 adds features (KIP-584)."""
    return _VERSION_WITH_FEATURES if protocol >= (2, 7) else _VERSION_WITH_FEATURES - 1


class Heartbeats:
    """One thread that keeps the sessions of all registered brokers alive."""

    def __init__(self, brokers: Sequence[RegisteredBroker]) -> None:
        self._brokers = brokers
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._beat, daemon=True)

    def start(self) -> None:
        """Begin."""
        self._thread.start()

    def end(self) -> None:
        """Silence all brokers."""
        self._ended.set()
        if self._thread.is_alive():
            self._thread.join()

    def _beat(self) -> None:
        while not self._ended.wait(_PING_SECONDS):
            for broker in self._brokers:
                with suppress(OSError):  # its session has expired, as it does for a broker without processor time
                    broker.live_on()


def _send(session: socket.socket, content: bytes) -> None:
    session.sendall(struct.pack("!i", len(content)) + content)


def _receive(session: socket.socket) -> bytes:
    (length,) = struct.unpack("!i", _read(session, 4))
    return _read(session, length)


def _read(session: socket.socket, length: int) -> bytes:
    content = b""
    while len(content) < length:
        part = session.recv(length - len(content))
        if not part:
            raise OSError("ZooKeeper closed the session of a registered broker")
        content += part
    return content
