"""The catalogue of alerts, with all kinds by name, in the order and the sections of docs/reference/alerts.md.

Each kind has a runbook in docs/runbooks/. `alerts/lifecycle.py` decides when an alert of a kind is open.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType, ModuleType
from typing import Final

from controller.says.alert_kinds import (
    brokers as of_brokers,
    controller as of_controller,
    divergences as of_divergences,
    migration as of_migration,
    partitions as of_partitions,
    replica as of_replica,
    topics as of_topics,
    zookeeper as of_zookeeper,
)

# Importers use every kind as `kinds.NAME`, whichever file defines it. Each file also brings the names of its remedies,
# such as `topics`, so the files themselves have names of their own here.
from controller.says.alert_kinds.brokers import *  # noqa: F403
from controller.says.alert_kinds.controller import *  # noqa: F403
from controller.says.alert_kinds.divergences import *  # noqa: F403
from controller.says.alert_kinds.kind import AlertKind as AlertKind
from controller.says.alert_kinds.migration import *  # noqa: F403
from controller.says.alert_kinds.partitions import *  # noqa: F403
from controller.says.alert_kinds.replica import *  # noqa: F403
from controller.says.alert_kinds.topics import *  # noqa: F403
from controller.says.alert_kinds.zookeeper import *  # noqa: F403


def _kinds_of(subject: ModuleType) -> tuple[AlertKind, ...]:
    return tuple(kind for kind in vars(subject).values() if isinstance(kind, AlertKind))


SECTIONS: Final[Mapping[str, tuple[AlertKind, ...]]] = MappingProxyType(
    {
        "Partitions": _kinds_of(of_partitions),
        "Brokers": _kinds_of(of_brokers),
        "The controller": _kinds_of(of_controller),
        "The way to KRaft": _kinds_of(of_migration),
        "Topics": _kinds_of(of_topics),
        "ZooKeeper": _kinds_of(of_zookeeper),
        "Writes that differ from the prediction": _kinds_of(of_divergences),
        "Kontrast itself": _kinds_of(of_replica),
    }
)

ALERT_KINDS: Final[Mapping[str, AlertKind]] = MappingProxyType(
    {kind.name: kind for kinds in SECTIONS.values() for kind in kinds}
)
