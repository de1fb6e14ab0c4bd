"""A real KRaft controller of Kafka 3.9.2 that migrates a cluster from ZooKeeper, and its brokers.

    controller = KRaftController(3001, zookeeper, directory / "controller")
    broker = migrating_broker(1, zookeeper, directory / "broker", controller)
    controller.launch()
    broker.launch()
    broker.wait_until_ready()  # an empty cluster is in the dual write about now, 3 s after its processes began
    broker.stop()
    KRaftBroker(1, directory / "broker", controller).start()

`zookeeper` is HOST:PORT/CHROOT. The first start formats the controller's disk with the id in `/cluster/id`, and creates
this id if it is missing. A start after the removal of the directory formats it again.
"""

from __future__ import annotations

import json
import subprocess
from collections.abc import Mapping
from pathlib import Path

from cli.embedded.java import EmbeddedServer, java_command, write_configuration
from cli.embedded.kafka import KafkaBroker, kafka_class_path
from cli.embedded.process import ChildProcess, EmbeddedError, free_port
from streaming.java.artifacts import KAFKA_BROKER, jars
from tests.clients import zookeeper_client

METADATA_VERSION = "3.9"  # for the registration of brokers of 3.9. A broker with another IBP is refused
CLUSTER_ID = "S29udHJhc3QtbWlncmF0ZQ"  # any 16 bytes

_START_SECONDS = 120
_FORMAT_SECONDS = 120
_READY = "Kafka Server started"
_QUORUM = {
    "controller.listener.names": "CONTROLLER",
    "listener.security.protocol.map": "CONTROLLER:PLAINTEXT,PLAINTEXT:PLAINTEXT",
    "zookeeper.metadata.migration.enable": "true",
    "zookeeper.session.timeout.ms": "6000",
}


class KRaftController(EmbeddedServer):
    """The only voter of its quorum, started with the migration's flag. `properties` are added to its settings."""

    def __init__(
        self,
        node_id: int,
        zookeeper_connect: str,
        directory: Path,
        *,
        metadata_version: str = METADATA_VERSION,
        properties: Mapping[str, str] | None = None,
    ) -> None:
        self.node_id = node_id
        self.port = free_port()
        self._directory = directory = directory.absolute()
        self._zookeeper_connect = zookeeper_connect
        self._metadata_version = metadata_version
        self._properties = dict(properties or {})
        self._configuration = directory / "controller.properties"
        self._log_begin = 0
        super().__init__(f"controller {node_id}", self._java("kafka.Kafka"), directory / "controller.log")

    @property
    def voters(self) -> str:
        """Return the quorum, as `controller.quorum.voters` names it."""
        return f"{self.node_id}@127.0.0.1:{self.port}"

    @property
    def quorum_settings(self) -> dict[str, str]:
        """Return a broker's settings for the quorum and the migration."""
        return {**_QUORUM, "controller.quorum.voters": self.voters}

    def text(self) -> str:
        """Return the controller's log since its last start."""
        if not self.log.exists():
            return ""
        return self.log.read_bytes()[self._log_begin :].decode(errors="replace")

    def launch(self) -> None:
        """Start the controller without waiting for it. Raise EmbeddedError."""
        self.format()
        self._log_begin = self.log.stat().st_size if self.log.exists() else 0
        super().launch()

    def finalize(self) -> None:
        """Restart it without the migration's flag. Raise EmbeddedError."""
        self.stop()
        self._properties["zookeeper.metadata.migration.enable"] = "false"
        self.start()

    def wait_until_ready(self) -> None:
        """Wait until it has started. Raise EmbeddedError."""
        self.wait_until(lambda: _READY in self.text(), timeout_seconds=_START_SECONDS)

    def _java(self, main_class: str) -> list[str | Path]:
        class_path = kafka_class_path(jars(KAFKA_BROKER))
        return java_command(main_class, self._configuration, class_path=class_path, heap_mb=256)

    def format(self) -> None:
        """Write its settings, and format its disk unless that is done. Raise EmbeddedError."""
        settings = {
            "process.roles": "controller",
            "node.id": str(self.node_id),
            "listeners": f"CONTROLLER://127.0.0.1:{self.port}",
            "log.dirs": str(self._directory / "data"),
            "zookeeper.connect": self._zookeeper_connect,
            "zookeeper.connection.timeout.ms": "30000",
            **self.quorum_settings,
            **self._properties,
        }
        write_configuration(self._configuration, settings)
        if (self._directory / "data" / "meta.properties").exists():
            return
        *java, configuration = self._java("kafka.tools.StorageTool")
        wanted = ("format", "-t", cluster_id(self._zookeeper_connect), "-r", self._metadata_version, "-c")
        done = subprocess.run(
            [str(part) for part in (*java, *wanted, configuration)],
            capture_output=True,
            timeout=_FORMAT_SECONDS,
            text=True,
        )
        if done.returncode:
            raise EmbeddedError(f"controller {self.node_id} cannot be formatted: {done.stdout}{done.stderr}")


def migrating_broker(
    broker_id: int,
    zookeeper_connect: str,
    directory: Path,
    controller: KRaftController,
    *,
    properties: Mapping[str, str] | None = None,
) -> KafkaBroker:
    """Return a broker in ZooKeeper mode with the migration's flag."""
    settings = {**controller.quorum_settings, "inter.broker.listener.name": "PLAINTEXT", **(properties or {})}
    return KafkaBroker(broker_id, zookeeper_connect, directory, properties=settings)


class KRaftBroker(KafkaBroker):
    """A broker in KRaft mode, on the data of one that was in ZooKeeper mode if that is its directory."""

    def __init__(
        self,
        broker_id: int,
        directory: Path,
        controller: KRaftController,
        *,
        properties: Mapping[str, str] | None = None,
    ) -> None:
        settings = {
            "process.roles": "broker",
            "node.id": str(broker_id),
            "controller.listener.names": "CONTROLLER",
            "listener.security.protocol.map": _QUORUM["listener.security.protocol.map"],
            "controller.quorum.voters": controller.voters,
            "inter.broker.listener.name": "PLAINTEXT",
            **(properties or {}),
        }
        super().__init__(broker_id, "", directory, properties=settings)

    def launch(self) -> None:
        """Start the broker without waiting for it. Raise EmbeddedError."""
        self._write_configuration()
        self._log_begin = self.log.stat().st_size if self.log.exists() else 0
        ChildProcess.launch(self)

    def _write_configuration(self) -> None:
        of_kraft = {key: value for key, value in self.settings.items() if not key.startswith("zookeeper.")}
        settings = {
            "listeners": f"PLAINTEXT://{self.bootstrap_server}",
            "log.dirs": str(self._directory / "data"),
            **of_kraft,
        }
        write_configuration(self._configuration, settings)

    def _has_started(self) -> bool:
        with self.log.open("rb") as log:
            log.seek(self._log_begin)
            return _READY.encode() in log.read()


def cluster_id(zookeeper_connect: str) -> str:
    """Return the id in `/cluster/id`, and create it if it is missing."""
    with zookeeper_client(zookeeper_connect) as client:
        if not client.exists("/cluster/id"):
            client.create("/cluster/id", json.dumps({"version": "1", "id": CLUSTER_ID}).encode(), makepath=True)
        found: str = json.loads(client.get("/cluster/id")[0])["id"]
        return found
