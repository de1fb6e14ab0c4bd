"""The catalogue of alerts, with all kinds by name, in the order and the sections of docs/reference/alerts.md.

Each kind has a runbook in docs/runbooks/. `alerts/lifecycle.py` decides when an alert of a kind is open.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType, ModuleType
from typing import Final

from controller.contract.alert_kinds import (
    brokers,
    controller,
    divergences,
    migration,
    partitions,
    replica,
    topics,
    zookeeper,
)
from controller.contract.alert_kinds.brokers import (
    BROKER_ABSENT as BROKER_ABSENT,
    BROKER_BOUNCED as BROKER_BOUNCED,
    BROKER_CRASHED as BROKER_CRASHED,
    BROKER_FLAPPING as BROKER_FLAPPING,
    BROKER_SHUT_DOWN as BROKER_SHUT_DOWN,
    BROKER_UNKNOWN as BROKER_UNKNOWN,
    BROKER_WITHOUT_SESSION as BROKER_WITHOUT_SESSION,
    LOG_DIR_FAILED as LOG_DIR_FAILED,
    START_WILL_FAIL as START_WILL_FAIL,
)
from controller.contract.alert_kinds.controller import (
    BROKER_POISONED as BROKER_POISONED,
    CONTROLLER_EPOCH_WENT_BACK as CONTROLLER_EPOCH_WENT_BACK,
    CONTROLLER_FLAPPING as CONTROLLER_FLAPPING,
    CONTROLLER_MOVED as CONTROLLER_MOVED,
    CONTROLLER_NOT_PREFERRED as CONTROLLER_NOT_PREFERRED,
    CONTROLLER_OVERDUE as CONTROLLER_OVERDUE,
    CONTROLLER_POISONED as CONTROLLER_POISONED,
    DUPLICATE_TOPIC_ID as DUPLICATE_TOPIC_ID,
    ELECTION_STORM as ELECTION_STORM,
    GHOST_CONTROLLER as GHOST_CONTROLLER,
    NO_CONTROLLER as NO_CONTROLLER,
    NOTIFICATION_BACKLOG as NOTIFICATION_BACKLOG,
    STALE_CONTROLLER as STALE_CONTROLLER,
)
from controller.contract.alert_kinds.divergences import (
    CONTROLLER_DISAGREES as CONTROLLER_DISAGREES,
    DIFFERENT_LEADER as DIFFERENT_LEADER,
)

# Importers use every kind as `kinds.NAME`, whichever file defines it.
from controller.contract.alert_kinds.kind import AlertKind as AlertKind
from controller.contract.alert_kinds.migration import (
    DELETED_BY_SYNC as DELETED_BY_SYNC,
    DUAL_WRITE_STALLED as DUAL_WRITE_STALLED,
    KRAFT_LEADER_FLAPPING as KRAFT_LEADER_FLAPPING,
    LEADERS_NEVER_ELECTED as LEADERS_NEVER_ELECTED,
    MIGRATION_COPY_FAILS as MIGRATION_COPY_FAILS,
    MIGRATION_SYNC_STUCK as MIGRATION_SYNC_STUCK,
    MIGRATION_UNDER_WAY as MIGRATION_UNDER_WAY,
    OLD_MIGRATION as OLD_MIGRATION,
    OLD_MIGRATION_CLAIMED as OLD_MIGRATION_CLAIMED,
    SECOND_CONTROLLER as SECOND_CONTROLLER,
    WRITTEN_PAST_KRAFT as WRITTEN_PAST_KRAFT,
)
from controller.contract.alert_kinds.partitions import (
    CREATION_DUE as CREATION_DUE,
    ELECTION_DUE as ELECTION_DUE,
    PARTITIONS_LEADERLESS as PARTITIONS_LEADERLESS,
    PARTITIONS_OFFLINE as PARTITIONS_OFFLINE,
    UNCLEAN_ELECTION as UNCLEAN_ELECTION,
    UNDER_MIN_ISR as UNDER_MIN_ISR,
    UNDER_REPLICATED as UNDER_REPLICATED,
)
from controller.contract.alert_kinds.replica import (
    CLOCK_STEPPED as CLOCK_STEPPED,
    CLUSTER_QUARANTINED as CLUSTER_QUARANTINED,
    OLDER_GENERATION as OLDER_GENERATION,
    REPLICA_DISCONNECTED as REPLICA_DISCONNECTED,
    REPLICA_LACKS_RECORDS as REPLICA_LACKS_RECORDS,
    ZNODE_REFUSED as ZNODE_REFUSED,
    ZOOKEEPER_ROLLED_BACK as ZOOKEEPER_ROLLED_BACK,
)
from controller.contract.alert_kinds.topics import (
    ASSIGNMENT_EDITED as ASSIGNMENT_EDITED,
    DELETION_GIVEN_UP as DELETION_GIVEN_UP,
    DELETION_IGNORED as DELETION_IGNORED,
    DELETION_STUCK as DELETION_STUCK,
    INVALID_REASSIGNMENT as INVALID_REASSIGNMENT,
    MISSING_TOPIC_ID as MISSING_TOPIC_ID,
    PREFERRED_IMBALANCE as PREFERRED_IMBALANCE,
    REASSIGNMENT_STUCK as REASSIGNMENT_STUCK,
    TOPIC_ID_CHANGED as TOPIC_ID_CHANGED,
    TOPIC_REMOVED_BY_HAND as TOPIC_REMOVED_BY_HAND,
    TOPIC_UNLOADABLE as TOPIC_UNLOADABLE,
    TOPIC_WITH_DEAD_REPLICA as TOPIC_WITH_DEAD_REPLICA,
    TOPIC_WITH_ONE_REPLICA as TOPIC_WITH_ONE_REPLICA,
)
from controller.contract.alert_kinds.zookeeper import (
    BROKER_BLOCKED as BROKER_BLOCKED,
    SESSIONS_EXPIRED as SESSIONS_EXPIRED,
    ZNODE_NEAR_LIMIT as ZNODE_NEAR_LIMIT,
    ZOOKEEPER_NO_ENSEMBLE as ZOOKEEPER_NO_ENSEMBLE,
    ZOOKEEPER_NO_QUORUM as ZOOKEEPER_NO_QUORUM,
    ZOOKEEPER_QUORUM_AT_RISK as ZOOKEEPER_QUORUM_AT_RISK,
    ZOOKEEPER_SERVER_LAGS as ZOOKEEPER_SERVER_LAGS,
    ZOOKEEPER_SLOW as ZOOKEEPER_SLOW,
    ZXID_ROLLOVER as ZXID_ROLLOVER,
)


def _kinds_of(subject: ModuleType) -> tuple[AlertKind, ...]:
    return tuple(kind for kind in vars(subject).values() if isinstance(kind, AlertKind))


SECTIONS: Final[Mapping[str, tuple[AlertKind, ...]]] = MappingProxyType(
    {
        "Partitions": _kinds_of(partitions),
        "Brokers": _kinds_of(brokers),
        "The controller": _kinds_of(controller),
        "The way to KRaft": _kinds_of(migration),
        "Topics": _kinds_of(topics),
        "ZooKeeper": _kinds_of(zookeeper),
        "Writes that differ from the prediction": _kinds_of(divergences),
        "Kontrast itself": _kinds_of(replica),
    }
)

ALERT_KINDS: Final[Mapping[str, AlertKind]] = MappingProxyType(
    {kind.name: kind for kinds in SECTIONS.values() for kind in kinds}
)
