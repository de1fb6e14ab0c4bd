"""Table of the modes of a Kafka node, by its answer before a login."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from enum import Enum
from types import MappingProxyType

_LEADER_AND_ISR, _DESCRIBE_QUORUM, _BROKER_REGISTRATION = 4, 55, 62


class Mode(Enum):
    """Role of a Kafka node on the way to KRaft."""

    ZOOKEEPER = "zookeeper"  # a broker without the migration's flag
    ZOOKEEPER_MIGRATING = "zookeeper-migrating"  # a broker with zookeeper.metadata.migration.enable
    KRAFT = "kraft"  # a broker
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

# A node with LeaderAndIsr, DescribeQuorum, BrokerRegistration and ZkMigrationReady as KEY is in this mode. "listeners"
# in Kafka 3.9's message definitions list the answering listeners. ApiVersionManager omits ZooKeeper's APIs in KRaft
# mode.
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
    """Return the mode of a node with these APIs. Other combinations are of no release, and give None."""
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
