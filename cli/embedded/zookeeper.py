"""Configure, start and end one real ZooKeeper server, from pyspark's jars unless other jars are given."""

from __future__ import annotations

import socket
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path

from cli.embedded.java import LOGGING_JARS, EmbeddedServer, java_command, pyspark_jars, write_configuration
from cli.embedded.process import EmbeddedError, accepts_connections, free_port

_START_SECONDS = 60
# With `server.N` among its properties the server is part of an ensemble, otherwise it stands alone.
_MAIN_CLASS = "org.apache.zookeeper.server.quorum.QuorumPeerMain"
_JARS = (
    "zookeeper-[0-9]*.jar",
    "zookeeper-jute-*.jar",
    "netty-buffer-*.jar",
    "netty-codec-[0-9]*.jar",
    "netty-codec-base-*.jar",
    "netty-common-*.jar",
    "netty-handler-[0-9]*.jar",
    "netty-resolver-[0-9]*.jar",
    "netty-transport-[0-9]*.jar",
    "netty-transport-classes-epoll-*.jar",
    "netty-transport-native-unix-common-*.jar",
    *LOGGING_JARS,
    "metrics-core-*.jar",
    "snappy-java-*.jar",
)
# A tick of half a second allows sessions from 1 s. Writes are not synced, because a test's data may be lost.
_PROPERTIES = {
    "tickTime": "500",
    "maxSessionTimeout": "60000",
    "admin.enableServer": "false",
    "maxClientCnxns": "0",
    "4lw.commands.whitelist": "*",
    "forceSync": "no",
}


class ZooKeeper(EmbeddedServer):
    """A ZooKeeper server with its data in `directory`.

    Its zoo.cfg gets the `properties`, its Java the `system_properties`. `jars` are all jars of another release, with
    its dependencies.
    """

    def __init__(
        self,
        directory: Path,
        *,
        port: int | None = None,
        properties: Mapping[str, str] | None = None,
        system_properties: Mapping[str, str] | None = None,
        heap_mb: int = 128,
        jars: Sequence[Path] = (),
    ) -> None:
        self.port = port or free_port()
        self._directory = directory = directory.absolute()
        self._properties = dict(properties or {})
        self._configuration = directory / "zoo.cfg"
        command = java_command(
            _MAIN_CLASS,
            self._configuration,
            class_path=jars or zookeeper_class_path(),
            heap_mb=heap_mb,
            system_properties=system_properties,
        )
        super().__init__("ZooKeeper", command, directory / "zookeeper.log")

    @property
    def connect_string(self) -> str:
        """Return HOST:PORT for clients."""
        return f"127.0.0.1:{self.port}"

    @property
    def data_directory(self) -> Path:
        """Return the directory whose folder version-2 has the transaction logs and snapshot files."""
        return self._directory / "data"

    def launch(self) -> None:
        """Start the server without waiting for it. Raise EmbeddedError if the port is taken."""
        if accepts_connections(self.port):
            raise EmbeddedError(f"ZooKeeper cannot listen on 127.0.0.1:{self.port}: the port is in use, choose another")
        self._write_configuration()
        super().launch()

    def wait_until_ready(self) -> None:
        """Wait until the server answers. Raise EmbeddedError."""
        self.wait_until(self._answers, timeout_seconds=_START_SECONDS)

    def _write_configuration(self) -> None:
        self.data_directory.mkdir(parents=True, exist_ok=True)
        settings = {
            **_PROPERTIES,
            "dataDir": str(self.data_directory),
            "clientPort": str(self.port),
            "clientPortAddress": "127.0.0.1",
            **self._properties,
        }
        write_configuration(self._configuration, settings)

    def ask(self, word: str) -> str:
        """Return the answer to one of ZooKeeper's four-letter words, empty if the server does not answer."""
        with suppress(OSError), socket.create_connection(("127.0.0.1", self.port), timeout=5) as connection:
            connection.sendall(word.encode())
            return b"".join(iter(lambda: connection.recv(65536), b"")).decode()
        return ""

    def _answers(self) -> bool:
        return self.ask("srvr").startswith("Zookeeper version")


def zookeeper_class_path() -> list[Path]:
    """Return the class path of the newest server from pyspark's jars. Raise EmbeddedError."""
    return pyspark_jars(_JARS)
