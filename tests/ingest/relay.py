"""A network between a client and a server that tests can break."""

from __future__ import annotations

import socket
import threading
from contextlib import suppress


class Relay:
    """A door between a client and a server that can be closed, as a broken network would."""

    def __init__(self, port: int) -> None:
        self._server_port = port
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port = self._listener.getsockname()[1]
        self._open = True
        self._connections: list[socket.socket] = []
        self._clients: list[socket.socket] = []
        threading.Thread(target=self._accept, daemon=True).start()

    def __enter__(self) -> Relay:
        return self

    def __exit__(self, *_: object) -> None:
        self.close_door()
        self._listener.close()

    def close_door(self) -> None:
        self._open = False
        for connection in self._connections:
            shut(connection)
        self._connections.clear()

    def open_door(self) -> None:
        self._open = True

    def say_to_clients(self, block: bytes) -> None:
        for client in self._clients:
            client.sendall(block)

    def _accept(self) -> None:
        while True:
            try:
                client, _ = self._listener.accept()
            except OSError:
                return
            if not self._open:
                client.close()
                continue
            server = socket.create_connection(("127.0.0.1", self._server_port))
            self._connections += [client, server]
            self._clients = [client]
            for source, target in ((client, server), (server, client)):
                threading.Thread(target=pump, args=(source, target), daemon=True).start()


def pump(source: socket.socket, target: socket.socket) -> None:
    with suppress(OSError):
        while block := source.recv(65536):
            target.sendall(block)
    shut(target)


def shut(connection: socket.socket) -> None:
    with suppress(OSError):
        connection.shutdown(socket.SHUT_RDWR)
