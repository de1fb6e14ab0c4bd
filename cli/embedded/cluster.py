"""A whole Kafka cluster on loopback, one ZooKeeper server and a few brokers."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from types import MappingProxyType

from cli.embedded.kafka import KafkaBroker
from cli.embedded.server import StartedByWith
from cli.embedded.zookeeper import ZooKeeper


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

    def stop(self) -> None:
        """End everything at once, because a cluster that ends as a whole cannot move its leaderships."""
        self.kill()

    def kill(self) -> None:
        """End everything as a crash does."""
        for broker in self.brokers.values():
            broker.kill()
        self.zookeeper.kill()
