"""The table of all remedies by name, in the order and the sections of docs/reference/remedies.md."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType, ModuleType
from typing import Final

from controller.contract.remedies import brokers, controllership, migration, partitions, reassignments, topics
from controller.contract.remedies.remedy import Remedy


def _remedies_of(subject: ModuleType) -> tuple[Remedy, ...]:
    return tuple(remedy for remedy in vars(subject).values() if isinstance(remedy, Remedy))


SECTIONS: Final[Mapping[str, tuple[Remedy, ...]]] = MappingProxyType(
    {
        "The controller": _remedies_of(controllership),
        "Brokers": _remedies_of(brokers),
        "Partitions": _remedies_of(partitions),
        "Topics": _remedies_of(topics),
        "Reassignments": _remedies_of(reassignments),
        "The way to KRaft": _remedies_of(migration),
    }
)
REMEDIES: Final[Mapping[str, Remedy]] = MappingProxyType(
    {remedy.name: remedy for remedies in SECTIONS.values() for remedy in remedies}
)
