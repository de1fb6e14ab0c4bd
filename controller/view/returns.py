"""Order in which absent brokers should return, so that each return gives clients back as much as possible."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from typing import NamedTuple

from controller.contract.ids import BrokerId


class Waiting(NamedTuple):
    """Partitions that clients can use again once `lacking` of the brokers have returned."""

    brokers: frozenset[BrokerId]
    lacking: int
    partitions: int
    is_offline: bool  # otherwise they reject acks=all
    internal: int = 0  # partitions of internal topics among them
    topic: str = ""  # the topic of all, if they have the same


class Return(NamedTuple):
    """A broker, and the partitions that its return restores after the returns before it."""

    broker: BrokerId
    restored: tuple[Waiting, ...]

    @property
    def offline(self) -> int:
        """Return how many partitions come online."""
        return sum(group.partitions for group in self.restored if group.is_offline)

    @property
    def partitions(self) -> int:
        """Return how many partitions come online or take acks=all again."""
        return sum(group.partitions for group in self.restored)


def is_restored(brokers: Collection[BrokerId], lacking: int, returned: Collection[BrokerId]) -> bool:
    """Return whether `lacking` of the brokers have returned. A `lacking` of 0 means that no return can help."""
    return 0 < lacking <= len(set(brokers).intersection(returned))


def order_of_return(waiting: Iterable[Waiting], away: Collection[BrokerId]) -> Iterator[Return]:
    """Yield the absent broker whose return restores most, then the best broker for the rest, until no return helps.

    Offline partitions weigh more than any number that reject acks=all. Between equal brokers, internal topics decide,
    because consumer groups and transactions depend on them, then the lower id. If no broker restores a partition alone,
    the broker comes first that brings most partitions nearer.
    """
    left, rest = set(away), [group for group in waiting if not group.brokers.isdisjoint(away)]
    while left and rest:
        weights = {broker: _weight(broker, rest) for broker in left}
        best = min(left, key=lambda broker: (*(-weight for weight in weights[broker]), broker))
        if not any(weights[best]):
            return
        left.discard(best)
        yield Return(best, tuple(group for group in rest if best in group.brokers and group.lacking == 1))
        nearer = [group._replace(lacking=group.lacking - (best in group.brokers)) for group in rest]
        rest = [group for group in nearer if group.lacking]


def _weight(broker: BrokerId, waiting: Iterable[Waiting]) -> tuple[int, ...]:
    """Return the partitions that the broker restores alone, by weight, then those that it brings nearer."""
    weights = [0] * 6
    for group in waiting:
        if broker in group.brokers:
            of_kind = 0 if group.lacking == 1 else 3
            weights[of_kind + (not group.is_offline)] += group.partitions
            weights[of_kind + 2] += group.internal
    return tuple(weights)
