"""The settings of a report: what it is made of, of which time, and what Spark may use for it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from streaming.config import BrokersConfig, check_resources
from transport.address import Address


@dataclass(frozen=True, slots=True)
class ZooKeeperFiles:
    """Directories of ZooKeeper servers by cluster: a dataDir each, and a dataLogDir where that is another one."""

    directories: Mapping[str, tuple[Path, ...]]
    chroot: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Resources:
    """Resources of Spark on one machine, and how long Kafka may be unreachable; raises StreamError."""

    master: str = "local[*]"
    driver_memory: str = "1g"
    connect_timeout_seconds: float = 30.0

    def __post_init__(self) -> None:
        check_resources(self.master, self.driver_memory)


@dataclass(frozen=True, slots=True, kw_only=True)
class ReportConfig:
    """A report: its source, its window (None: no end), the clusters (empty: all), and how clusters' brokers are set."""

    source: ZooKeeperFiles | Address
    since_ms: int | None = None
    until_ms: int | None = None
    clusters: frozenset[str] = frozenset()
    brokers: Mapping[str, BrokersConfig] = field(default_factory=dict)
    other_brokers: BrokersConfig = field(default_factory=BrokersConfig)
    resources: Resources = field(default_factory=Resources)

    def brokers_of(self, cluster: str) -> BrokersConfig:
        """The configuration of a cluster's brokers."""
        return self.brokers.get(cluster, self.other_brokers)
