"""Comparison of a broker's metadata with the rows of its cluster. Pure, without connection or clock."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from enum import Enum

from controller.contract.ids import BrokerId, PartitionId
from controller.contract.metadata_rows import PartitionRow
from controller.rules.states import PartitionState
from dashboards.probe.broker import BrokerView, Leader

_NOBODY = -1

PartitionName = tuple[str, PartitionId]  # topic and partition


class DifferenceKind(Enum):
    """Kind of a partition's difference in a broker's metadata."""

    STALE = "stale"  # an older leader epoch, or another leader in the same epoch
    MISSING = "missing"  # the broker does not know the partition
    UNEXPECTED = "unexpected"  # the broker knows it, though its topic is gone or being deleted


@dataclass(frozen=True, slots=True)
class PartitionDifference:
    """A difference, with the leader on both sides, None where a side has no leader."""

    difference: DifferenceKind
    expected: Leader | None
    seen: Leader | None


def differences(
    rows: Mapping[PartitionName, PartitionRow], view: BrokerView, live: Collection[BrokerId]
) -> dict[PartitionName, PartitionDifference]:
    """Return every partition whose view by the broker differs from these rows. `live` are the registered brokers.

    A broker ahead of the rows is right, because the rows come later.
    """
    found = {}
    for name, row in rows.items():
        if row.state == PartitionState.NEW.word or row.leader_epoch < 0:
            continue  # brokers get no UpdateMetadata before the first leader
        expected, seen = Leader(row.leader, row.leader_epoch), view.get(name)
        if seen is None:
            found[name] = PartitionDifference(DifferenceKind.MISSING, expected, None)
        elif _is_stale(expected, seen, live):
            found[name] = PartitionDifference(DifferenceKind.STALE, expected, seen)
    for name in view.keys() - rows.keys():
        found[name] = PartitionDifference(DifferenceKind.UNEXPECTED, None, view[name])
    return found


def lasting(
    earlier: Mapping[PartitionName, PartitionDifference], later: Mapping[PartitionName, PartitionDifference]
) -> dict[PartitionName, PartitionDifference]:
    """Return the later differences that existed earlier, too, with the same expected leader."""
    return {
        name: found
        for name, found in later.items()
        if name in earlier and (earlier[name].difference, earlier[name].expected) == (found.difference, found.expected)
    }


def _is_stale(expected: Leader, seen: Leader, live: Collection[BrokerId]) -> bool:
    if seen.epoch >= 0 and seen.epoch != expected.epoch:
        return seen.epoch < expected.epoch
    if seen.broker == _NOBODY:  # a broker also answers so for a leader that is not live, because it has no address then
        return expected.broker in live
    return seen.broker != expected.broker
