"""The two clusters that a soak watches, and the Kafka that carries the changes.

Starting and filling belong here, events in `operations`.
"""

from __future__ import annotations

import random
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from kazoo.client import KazooClient

from cli.embedded.java import StartedByWith
from cli.embedded.kafka import KafkaBroker
from cli.embedded.zookeeper import ZooKeeper
from lab.record.broker import RecordedBroker
from lab.record.filling import fill, topics_on
from lab.record.topics import encoded
from tests.ingest.ensemble import Ensemble
from tests.waiting import eventually

REAL, SYNTHETIC = "real", "synthetic"  # the clusters' names, and their chroots
BROKERS = (1, 2, 3, 4)
SYNTHETIC_BROKERS = tuple(range(101, 131))
SYNTHETIC_CONTROLLER = SYNTHETIC_BROKERS[0]
RELEASE = "3.9.2"
CHANGES = "changes"  # the topic

_ENSEMBLE_HEAP_MB = 256  # 30,000 znodes of 10,000 partitions, and their snapshots
_BROKER_HEAP_MB = 192
_STREAM_SETTINGS = {
    "log.retention.bytes": str(64 * 1024 * 1024),
    "log.retention.check.interval.ms": "30000",
    "log.segment.bytes": str(16 * 1024 * 1024),
}
_CLIENT_SECONDS = 30


class PatientClient(KazooClient):
    """A ZooKeeper client whose requests outlive the end of the server that it is connected to."""

    def __init__(self, hosts: str) -> None:
        super().__init__(hosts=hosts, timeout=_CLIENT_SECONDS, command_retry={"max_tries": -1, "max_delay": 2})

    def get(self, *arguments: Any, **options: Any) -> Any:
        return self.retry(super().get, *arguments, **options)

    def get_children(self, *arguments: Any, **options: Any) -> Any:
        return self.retry(super().get_children, *arguments, **options)

    def exists(self, *arguments: Any, **options: Any) -> Any:
        return self.retry(super().exists, *arguments, **options)

    def create(self, *arguments: Any, **options: Any) -> Any:
        return self.retry(super().create, *arguments, **options)

    def set(self, *arguments: Any, **options: Any) -> Any:
        return self.retry(super().set, *arguments, **options)

    def delete(self, *arguments: Any, **options: Any) -> Any:
        return self.retry(super().delete, *arguments, **options)


class Clusters(StartedByWith):
    """An ensemble of three with a cluster of four brokers and a made-up one, and another Kafka for the changes."""

    def __init__(self, directory: Path, seed: int, partitions: int) -> None:
        self._directory = directory
        self._draw = random.Random(seed)
        self._partitions = partitions
        self._ending = ExitStack()
        self.ensemble = Ensemble(directory / "ensemble", heap_mb=_ENSEMBLE_HEAP_MB)
        self.stream_zookeeper = ZooKeeper(directory / "stream-zookeeper")
        self.stream_broker = KafkaBroker(
            1, self.stream_zookeeper.connect_string, directory / "stream-broker", properties=_STREAM_SETTINGS
        )
        self.brokers = [
            RecordedBroker(
                number,
                RELEASE,
                self.address_of(REAL),
                directory / f"broker-{number}",
                directory / f"broker-{number}" / "logs",
                heap_mb=_BROKER_HEAP_MB,
            )
            for number in BROKERS
        ]

    def address_of(self, cluster: str) -> str:
        """Return the ensemble with the cluster's chroot."""
        return f"{self.ensemble.connect_string}/{cluster}"

    def client_of(self, cluster: str) -> KazooClient:
        """Return a started client below the cluster's chroot, which ends with the clusters."""
        client = PatientClient(self.address_of(cluster))
        client.start(timeout=_CLIENT_SECONDS)
        self._ending.callback(client.close)
        self._ending.callback(client.stop)
        return client

    def start(self) -> None:
        """Start the servers, fill the made-up cluster, and wait for the brokers' registrations."""
        self.ensemble.start()
        self.stream_zookeeper.start()
        self.stream_broker.start()
        root = PatientClient(self.ensemble.connect_string)
        root.start(timeout=_CLIENT_SECONDS)
        for chroot in (REAL, SYNTHETIC):
            root.ensure_path(f"/{chroot}")
        root.stop()
        root.close()
        self._fill()
        for broker in self.brokers:
            broker.launch()
        client = self.client_of(REAL)
        eventually(lambda: all(client.exists(f"/brokers/ids/{broker}") for broker in BROKERS), pause_seconds=0.5)

    def _fill(self) -> None:
        client = self.client_of(SYNTHETIC)
        fill(client, topics_on(self._draw, "synthetic-", SYNTHETIC_BROKERS, self._partitions))
        for broker in SYNTHETIC_BROKERS:
            endpoint = {
                "version": 2,
                "jmx_port": -1,
                "host": "127.0.0.1",
                "port": 1,
                "endpoints": ["PLAINTEXT://127.0.0.1:1"],
            }
            protocol = {"listener_security_protocol_map": {"PLAINTEXT": "PLAINTEXT"}, "jmx_port": -1, "version": 5}
            client.create(f"/brokers/ids/{broker}", encoded({**endpoint, **protocol, "features": {}, "timestamp": "1"}))
        client.create("/controller", encoded({"version": 2, "brokerid": SYNTHETIC_CONTROLLER, "timestamp": "1"}))
        client.ensure_path("/admin/delete_topics")

    def stop(self) -> None:
        """End everything at once."""
        self.kill()

    def kill(self) -> None:
        """End everything at once."""
        self._ending.close()
        for broker in (*self.brokers, self.stream_broker):
            broker.kill()
        self.stream_zookeeper.kill()
        self.ensemble.kill()
