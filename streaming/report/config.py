"""Settings of a report: source, time window, and resources of Spark."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from streaming.config import BrokersConfig, check_resources
from transport.address import Address


@dataclass(frozen=True, slots=True)
class ZooKeeperFiles:
    """Directories of ZooKeeper servers by cluster, with a dataDir each, and a dataLogDir if it is separate."""

    directories: Mapping[str, tuple[Path, ...]]
    chroot: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Resources:
    """Resources of Spark on one machine, and the permitted outage of Kafka. Raise StreamError."""

    master: str = "local[*]"
    driver_memory: str = "1g"
    connect_timeout_seconds: float = 30.0

    def __post_init__(self) -> None:
        check_resources(self.master, self.driver_memory)


@dataclass(frozen=True, slots=True, kw_only=True)
class ReportConfig:
    """A report: source, window (None is open), clusters (empty is all), and settings of the clusters' brokers."""

    source: ZooKeeperFiles | Address
    since_ms: int | None = None
    until_ms: int | None = None
    clusters: frozenset[str] = frozenset()
    brokers: Mapping[str, BrokersConfig] = field(default_factory=dict)
    other_brokers: BrokersConfig = field(default_factory=BrokersConfig)
    resources: Resources = field(default_factory=Resources)

    def brokers_of(self, cluster: str) -> BrokersConfig:
        """Return the configuration of a cluster's brokers."""
        return self.brokers.get(cluster, self.other_brokers)
