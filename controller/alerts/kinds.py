"""The catalogue of alerts: all kinds by name, in the order and the sections of docs/alerts.md.

Each kind has a runbook in docs/runbooks/; `lifecycle` decides when an alert of a kind is open.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType, ModuleType
from typing import Final

from controller.alerts import (
    broker_kinds,
    controller_kinds,
    divergence_kinds,
    migration_kinds,
    partition_kinds,
    replica_kinds,
    topic_kinds,
)

# Every kind is at hand as `kinds.NAME`, whichever file it is in.
from controller.alerts.alert_kind import AlertKind as AlertKind
from controller.alerts.broker_kinds import *  # noqa: F403
from controller.alerts.controller_kinds import *  # noqa: F403
from controller.alerts.divergence_kinds import *  # noqa: F403
from controller.alerts.migration_kinds import *  # noqa: F403
from controller.alerts.partition_kinds import *  # noqa: F403
from controller.alerts.replica_kinds import *  # noqa: F403
from controller.alerts.topic_kinds import *  # noqa: F403


def _kinds_of(subject: ModuleType) -> tuple[AlertKind, ...]:
    return tuple(kind for kind in vars(subject).values() if isinstance(kind, AlertKind))


SECTIONS: Final[Mapping[str, tuple[AlertKind, ...]]] = MappingProxyType(
    {
        "Partitions": _kinds_of(partition_kinds),
        "Brokers": _kinds_of(broker_kinds),
        "The controller": _kinds_of(controller_kinds),
        "The way to KRaft": _kinds_of(migration_kinds),
        "Topics": _kinds_of(topic_kinds),
        "Writes that differ from what was predicted": _kinds_of(divergence_kinds),
        "Kontrast itself": _kinds_of(replica_kinds),
    }
)

ALERT_KINDS: Final[Mapping[str, AlertKind]] = MappingProxyType(
    {kind.name: kind for kinds in SECTIONS.values() for kind in kinds}
)
