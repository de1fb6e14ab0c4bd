"""The request in /admin/reassign_partitions, which releases read differently."""

from __future__ import annotations

from typing import Final

from controller.contract.znodes import ReassignmentEntry, ReassignmentZnode, ZnodeContent, decode

_REFUSES_FURTHER_FIELDS: Final = (2, 0)  # by Jackson's data binding


class _OldEntry(ReassignmentEntry, frozen=True, forbid_unknown_fields=False):
    """Partition with its target replicas, and perhaps with fields that Kafka does not read."""


class _OldZnode(ZnodeContent, frozen=True):
    """The request as Kafka reads it up to 1.1."""

    partitions: tuple[_OldEntry, ...]


def requested(data: bytes | str | None, release: tuple[int, int]) -> tuple[ReassignmentEntry, ...]:
    """Return the partitions and target replicas in a request, as this release reads it. Raise ZnodeError."""
    if release >= _REFUSES_FURTHER_FIELDS:
        return decode(data, ReassignmentZnode).partitions
    old = decode(data, _OldZnode).partitions
    return tuple(ReassignmentEntry(each.topic, each.partition, each.replicas) for each in old)
