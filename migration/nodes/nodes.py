"""Answers of nodes about themselves and the quorum, and their modes."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field
from enum import Enum
from types import MappingProxyType

from controller.contract.ids import BrokerId

_LEADER_AND_ISR, _DESCRIBE_QUORUM, _BROKER_REGISTRATION = 4, 55, 62


class Mode(Enum):
    """Role of a Kafka node on the way to KRaft."""

    ZOOKEEPER = "zookeeper"  # a broker in ZooKeeper mode without the migration flag
    ZOOKEEPER_MIGRATING = "zookeeper-migrating"  # a broker in ZooKeeper mode with zookeeper.metadata.migration.enable
    KRAFT = "kraft"  # a broker in KRaft mode
    CONTROLLER_MIGRATING = "controller-migrating"  # a KRaft controller with the flag, also before the migration
    CONTROLLER = "controller"  # a KRaft controller without the flag, after finalization or without a migration

    @property
    def is_controller(self) -> bool:
        """Return whether it is a KRaft controller."""
        return self in (Mode.CONTROLLER_MIGRATING, Mode.CONTROLLER)

    @property
    def words(self) -> str:
        """Return the mode for people."""
        return _WORDS[self]


_WORDS: Mapping[Mode, str] = MappingProxyType(
    {
        Mode.ZOOKEEPER: "broker in ZooKeeper mode, without the migration's flag",
        Mode.ZOOKEEPER_MIGRATING: "broker in ZooKeeper mode, with the migration's flag",
        Mode.KRAFT: "broker in KRaft mode",
        Mode.CONTROLLER_MIGRATING: "KRaft controller, with the migration's flag",
        Mode.CONTROLLER: "KRaft controller, without the migration's flag",
    }
)

# The mode by whether a node has LeaderAndIsr, DescribeQuorum, BrokerRegistration and ZkMigrationReady. "listeners" in
# Kafka 3.9's message definitions name the kinds of nodes that have an API. In KRaft mode, ApiVersionManager omits
# ZooKeeper's APIs.
_MODES: Mapping[tuple[bool, bool, bool, bool], Mode] = MappingProxyType(
    {
        (True, False, False, False): Mode.ZOOKEEPER,
        (True, False, False, True): Mode.ZOOKEEPER_MIGRATING,
        (False, True, False, False): Mode.KRAFT,
        (False, True, True, True): Mode.CONTROLLER_MIGRATING,
        (False, True, True, False): Mode.CONTROLLER,
    }
)


def mode_of(apis: Collection[int], *, zk_migration_ready: bool) -> Mode | None:
    """Return the mode of a node with these APIs. No release has other combinations, so they give None."""
    has = (_LEADER_AND_ISR in apis, _DESCRIBE_QUORUM in apis, _BROKER_REGISTRATION in apis)
    return _MODES.get((*has, zk_migration_ready))


# The levels of metadata.version with their names, as in inter.broker.protocol.version (MetadataVersion of Kafka 3.9).
METADATA_VERSIONS: Mapping[int, str] = MappingProxyType(
    dict(
        enumerate(
            (
                *("3.0-IV1", "3.1-IV0", "3.2-IV0", "3.3-IV0", "3.3-IV1", "3.3-IV2", "3.3-IV3", "3.4-IV0"),
                *("3.5-IV0", "3.5-IV1", "3.5-IV2", "3.6-IV0", "3.6-IV1", "3.6-IV2"),
                *("3.7-IV0", "3.7-IV1", "3.7-IV2", "3.7-IV3", "3.7-IV4", "3.8-IV0", "3.9-IV0"),
            ),
            start=1,
        )
    )
)


VOTERS = "controller.quorum.voters"


@dataclass(frozen=True, slots=True)
class Node:
    """A node that was asked, with its id and mode, or the reason why its mode is unknown.

    `settings` has the settings that were asked for, only for brokers.
    """

    address: str
    node_id: BrokerId | None = None
    mode: Mode | None = None
    apis: frozenset[int] = frozenset()
    metadata_version: int | None = None
    settings: Mapping[str, str] = field(default_factory=dict)
    reason: str = ""

    @property
    def name(self) -> str:
        """Return the node for people."""
        kind = "controller" if self.mode is not None and self.mode.is_controller else "broker"
        return f"node {self.address}" if self.node_id is None else f"{kind} {self.node_id} at {self.address}"


@dataclass(frozen=True, slots=True)
class Quorum:
    """The answer to DescribeQuorum, with the controllers' addresses if the answer has them.

    `log_ends` is each voter's and broker's position in the quorum's log, as the leader knows it.
    """

    leader: BrokerId
    leader_epoch: int
    high_watermark: int
    voters: tuple[BrokerId, ...]
    addresses: Mapping[BrokerId, str] = field(default_factory=dict)
    log_ends: Mapping[BrokerId, int] = field(default_factory=dict)

    @property
    def observers(self) -> frozenset[BrokerId]:
        """Return the brokers that read the quorum's log, in KRaft mode or with the migration's flag."""
        return frozenset(self.log_ends) - frozenset(self.voters)


@dataclass(frozen=True, slots=True)
class Nodes:
    """All nodes that were asked, and the quorum, None if no node reports it."""

    nodes: tuple[Node, ...]
    quorum: Quorum | None

    @property
    def voter_addresses(self) -> Iterator[tuple[BrokerId, str]]:
        """Yield each voter with each of its addresses, as the quorum and the brokers' settings name them."""
        yield from (self.quorum.addresses if self.quorum else {}).items()
        for node in self.nodes:
            for voter, address in re.findall(r"(\d{1,10})@([^,\s]+)", node.settings.get(VOTERS, "")):
                yield BrokerId(int(voter)), address

    def in_mode(self, *modes: Mode) -> list[Node]:
        """Return the nodes in one of these modes."""
        return [node for node in self.nodes if node.mode in modes]
