"""Reassignments as Kafka's tools read and write them (`kafka-reassign-partitions --reassignment-json-file`)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

import msgspec

from controller.contract.ids import BrokerId, PartitionId, TopicPartition


class _Entry(msgspec.Struct, frozen=True):
    topic: str
    partition: PartitionId
    replicas: tuple[BrokerId, ...]


class _File(msgspec.Struct, frozen=True):
    partitions: tuple[_Entry, ...]
    version: int = 1


_PROPOSED: Final = b"Proposed partition reassignment configuration"


class ReassignmentJsonError(ValueError):
    """Bytes that are not a reassignment, with the reason."""


def decode_reassignment(content: bytes) -> dict[TopicPartition, tuple[BrokerId, ...]]:
    """Return the target replicas of each partition. Raise ReassignmentJsonError."""
    if _PROPOSED in content:
        raise ReassignmentJsonError(
            "it is the output of kafka-reassign-partitions --generate. Keep only the JSON below "
            '"Proposed partition reassignment configuration"'
        )
    try:
        file = msgspec.json.decode(content, type=_File)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise ReassignmentJsonError(f"it is no reassignment in JSON: {error}") from error
    if not file.partitions:
        raise ReassignmentJsonError("it names no partition, so Kafka would have nothing to reassign")
    targets: dict[TopicPartition, tuple[BrokerId, ...]] = {}
    for entry in file.partitions:
        tp = TopicPartition(entry.topic, entry.partition)
        if tp in targets:
            raise ReassignmentJsonError(f"it names partition {tp} twice")
        if not entry.replicas or len(set(entry.replicas)) < len(entry.replicas):
            raise ReassignmentJsonError(f"partition {tp} needs replicas on different brokers, but has {entry.replicas}")
        targets[tp] = entry.replicas
    return targets


def encode_reassignment(targets: Mapping[TopicPartition, tuple[BrokerId, ...]]) -> bytes:
    """Return the JSON, a partition a line, in order."""
    entries = [_Entry(tp.topic, tp.partition, replicas) for tp, replicas in sorted(targets.items())]
    lines = b",\n  ".join(map(msgspec.json.encode, entries))
    return b'{"version":1,"partitions":[' + (b"\n  " + lines + b"\n" if entries else b"") + b"]}"
