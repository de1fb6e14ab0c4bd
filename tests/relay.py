"""A network between clients and a server that tests can cut, slow down, or half-open."""

from __future__ import annotations

import random
import socket
import threading
import time
from contextlib import suppress

_BLOCK_BYTES = 65536
_SENT_AGAIN_SECONDS = (0.2, 0.6)  # Linux waits at least 0.2 s for an acknowledgement, and twice as long the next time


class Relay:
    """A TCP proxy before a server on loopback.

    `delay_seconds` passes before each block is handed on, and more where `bytes_per_second` bounds the link. A share
    of `lost` blocks waits until TCP sends it once or twice more, because both ends see a lost packet as such a pause.
    """

    def __init__(
        self, port: int, *, delay_seconds: float = 0.0, bytes_per_second: float = float("inf"), lost: float = 0.0
    ) -> None:
        self._server_port = port
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port = self._listener.getsockname()[1]
        self.delay_seconds = delay_seconds
        self.bytes_per_second = bytes_per_second
        self.lost = lost
        self.accepted = 0  # connections since the beginning
        self._open = True
        self._silent = False
        self._connections: list[_Connection] = []
        threading.Thread(target=self._accept, daemon=True).start()

    def __enter__(self) -> Relay:
        return self

    def __exit__(self, *_: object) -> None:
        self.close_door()
        self._listener.close()

    @property
    def open_connections(self) -> int:
        """Return the number of connections that neither side has closed."""
        return sum(not connection.ended for connection in self._connections)

    def lead_to(self, port: int) -> None:
        """Connect clients that come from now on to another server."""
        self._server_port = port

    def close_door(self) -> None:
        """Cut every connection and refuse new ones."""
        self._open = False
        for connection in self._connections:
            connection.cut()
        self._connections.clear()

    def open_door(self) -> None:
        """Accept connections again."""
        self._open = True

    def go_silent(self) -> None:
        """Leave connections open without carrying data, as after the loss of a router's table."""
        self._silent = True
        for connection in self._connections:
            connection.silent = True

    def speak(self) -> None:
        """Carry the bytes of new connections. Silent ones stay silent."""
        self._silent = False

    def say_to_clients(self, block: bytes) -> None:
        """Send this to the newest client, as if the server had."""
        self._connections[-1].client.sendall(block)

    def hand_on(self, block: bytes) -> None:
        """Take the time that the block needs on this link."""
        again_seconds = random.choice(_SENT_AGAIN_SECONDS) if random.random() < self.lost else 0.0
        time.sleep(self.delay_seconds + len(block) / self.bytes_per_second + again_seconds)

    def _accept(self) -> None:
        while True:
            try:
                client, _ = self._listener.accept()
            except OSError:
                return
            if not self._open:
                client.close()
                continue
            connection = _Connection(self, client, socket.create_connection(("127.0.0.1", self._server_port)))
            connection.silent = self._silent
            self.accepted += 1
            self._connections.append(connection)
            connection.start()


class _Connection:
    """A client's connection and the one to the server, with a thread for each direction."""

    def __init__(self, relay: Relay, client: socket.socket, server: socket.socket) -> None:
        self.client = client
        self.silent = False
        self.ended = False
        self._relay = relay
        self._server = server

    def start(self) -> None:
        for source, target in ((self.client, self._server), (self._server, self.client)):
            threading.Thread(target=self._pump, args=(source, target), daemon=True).start()

    def cut(self) -> None:
        self.ended = True
        for end in (self.client, self._server):
            with suppress(OSError):
                end.shutdown(socket.SHUT_RDWR)

    def _pump(self, source: socket.socket, target: socket.socket) -> None:
        with suppress(OSError):
            while block := source.recv(_BLOCK_BYTES):
                self._relay.hand_on(block)
                if not self.silent:
                    target.sendall(block)
        self.cut()
