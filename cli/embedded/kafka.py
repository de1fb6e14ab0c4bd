"""Configure, start and end one real Kafka broker in ZooKeeper mode, 3.9.2 unless another class path is given."""

from __future__ import annotations

import re
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from types import MappingProxyType

from kazoo.client import KazooClient
from kazoo.handlers.threading import KazooTimeoutError

from cli.embedded.java import (
    LOGGING_JARS,
    EmbeddedServer,
    StartedByWith,
    java_command,
    pyspark_jars,
    write_configuration,
)
from cli.embedded.process import EmbeddedError, accepts_connections, free_port
from cli.embedded.zookeeper import ZooKeeper
from streaming.java.artifacts import KAFKA_BROKER, jars

_START_SECONDS = 120
_ZOOKEEPER_SECONDS = 30
_OLD_SESSION_SECONDS = 60
_STARTED = re.compile(rb"\],? started")  # KafkaServer logs it once it can stop in order, before 1.0 with a comma
_SETTINGS = {
    "auto.create.topics.enable": "false",
    "background.threads": "2",
    "controlled.shutdown.max.retries": "2",
    "controlled.shutdown.retry.backoff.ms": "500",
    "group.initial.rebalance.delay.ms": "0",
    "log.cleaner.enable": "false",
    "num.io.threads": "2",
    "num.network.threads": "2",
    "num.recovery.threads.per.data.dir": "1",
    "offsets.topic.num.partitions": "1",
    "offsets.topic.replication.factor": "1",
    "transaction.state.log.min.isr": "1",
    "transaction.state.log.num.partitions": "1",
    "transaction.state.log.replication.factor": "1",
    "zookeeper.connection.timeout.ms": "30000",
    "zookeeper.session.timeout.ms": "6000",
}


class KafkaBroker(EmbeddedServer):
    """A broker with its data in `directory`. Its server.properties get the `properties`, too.

    `class_path` has the jars of another release.
    """

    def __init__(
        self,
        broker_id: int,
        zookeeper_connect: str,
        directory: Path,
        *,
        properties: Mapping[str, str] | None = None,
        class_path: Sequence[Path] = (),
    ) -> None:
        self.broker_id = broker_id
        self.port = free_port()
        self._zookeeper_connect = zookeeper_connect
        self._directory = directory = directory.absolute()
        self.settings = {**_SETTINGS, **(properties or {})}
        self._configuration = directory / "server.properties"
        command = java_command(
            "kafka.Kafka",
            self._configuration,
            class_path=class_path or kafka_class_path(jars(KAFKA_BROKER)),
            heap_mb=256,
        )
        super().__init__(f"broker {broker_id}", command, directory / "broker.log")
        self._log_begin = 0  # where the log of the newest start begins

    @property
    def bootstrap_server(self) -> str:
        """Return HOST:PORT for clients."""
        return f"127.0.0.1:{self.port}"

    def launch(self) -> None:
        """Start the broker without waiting until it serves. Raise EmbeddedError.

        Wait only for the end of its former registration, because a killed broker leaves its znode until its session
        expires, and a successor that finds the znode gives up.
        """
        if accepts_connections(self.port):
            raise EmbeddedError(f"{self.name} cannot listen on {self.bootstrap_server}: the port is in use")
        self._wait_for_the_old_session()
        self._write_configuration()
        self._log_begin = self.log.stat().st_size if self.log.exists() else 0
        super().launch()

    def wait_until_ready(self) -> None:
        """Wait until the broker listens and is registered in ZooKeeper. Raise EmbeddedError.

        Do not stop a broker before that, because it would refuse and leave its registration behind.
        """
        self.wait_until(self._has_started, timeout_seconds=_START_SECONDS)

    def _write_configuration(self) -> None:
        settings = {
            "broker.id": str(self.broker_id),
            "listeners": f"PLAINTEXT://{self.bootstrap_server}",
            "log.dirs": str(self._directory / "data"),
            "zookeeper.connect": self._zookeeper_connect,
            **self.settings,
        }
        write_configuration(self._configuration, settings)

    @contextmanager
    def _zookeeper(self) -> Iterator[KazooClient]:
        client = KazooClient(hosts=self._zookeeper_connect, timeout=10)
        try:
            client.start(timeout=_ZOOKEEPER_SECONDS)
            yield client
        except KazooTimeoutError as error:
            raise EmbeddedError(f"ZooKeeper at {self._zookeeper_connect} does not answer. Start it first") from error
        finally:
            client.stop()
            client.close()

    @property
    def _znode(self) -> str:
        return f"/brokers/ids/{self.broker_id}"

    def _wait_for_the_old_session(self) -> None:
        deadline = time.monotonic() + _OLD_SESSION_SECONDS
        with self._zookeeper() as client:
            while client.exists(self._znode):
                if time.monotonic() > deadline:
                    raise EmbeddedError(
                        f"{self.name} is still registered in {self._zookeeper_connect} after "
                        f"{_OLD_SESSION_SECONDS} seconds. End the other broker with this id"
                    )
                time.sleep(0.1)

    def _has_started(self) -> bool:
        with self.log.open("rb") as log:
            log.seek(self._log_begin)
            return _STARTED.search(log.read()) is not None


def kafka_class_path(release: Iterable[Path]) -> list[Path]:
    """Return the class path of a broker with the jars of its release. Raise EmbeddedError."""
    # Leave out Kafka's own SLF4J, because it is bound to no logger, or to Log4j 1.
    kafka = [jar for jar in release if not jar.name.startswith(("org.slf4j_", "log4j_"))]
    # Spark's Ivy does not fetch Scala's library, because pyspark has it.
    scala = () if any("scala-library-" in jar.name for jar in kafka) else ("scala-library-*.jar",)
    return [*kafka, *pyspark_jars((*scala, *LOGGING_JARS))]


class KafkaCluster(StartedByWith):
    """ZooKeeper and the brokers with these ids, started by `with`. Every broker gets the `properties`."""

    def __init__(
        self, directory: Path, *, broker_ids: Iterable[int] = (1,), properties: Mapping[str, str] | None = None
    ) -> None:
        self.zookeeper = ZooKeeper(directory / "zookeeper")
        self.brokers: Mapping[int, KafkaBroker] = MappingProxyType(
            {
                broker_id: KafkaBroker(
                    broker_id,
                    self.zookeeper.connect_string,
                    directory / f"broker-{broker_id}",
                    properties=properties,
                )
                for broker_id in broker_ids
            }
        )

    @property
    def bootstrap_servers(self) -> list[str]:
        """Return HOST:PORT of every broker."""
        return [broker.bootstrap_server for broker in self.brokers.values()]

    def start(self) -> None:
        """Start ZooKeeper and then all brokers at once, and wait until all serve. Raise EmbeddedError."""
        self.zookeeper.start()
        for broker in self.brokers.values():
            broker.launch()
        for broker in self.brokers.values():
            broker.wait_until_ready()

    def kill(self) -> None:
        """End everything as a crash does, because a cluster that ends as a whole cannot move its leaderships."""
        for broker in self.brokers.values():
            broker.kill()
        self.zookeeper.kill()
