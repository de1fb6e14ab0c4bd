"""Order in which absent brokers should return, so that each return gives clients back as much as possible."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator
from typing import NamedTuple

from controller.contract.ids import BrokerId
from controller.model.context import Header
from wording.sentences import listed, plural


def bring_back(brokers: Collection[BrokerId], header: Header, *, briefly: bool = False) -> str:
    """Return the step that brings absent brokers back, as a clause: a process that hangs must be restarted.

    A broker that left without a shutdown may hang, which is left out of a brief step.
    """
    departures = [header.departures.last.get(broker) for broker in brokers]
    crashed = [departure for departure in departures if departure is not None and not departure.in_order]
    if crashed and len(crashed) == len(brokers) and all(departure.hangs for departure in crashed):
        return f"restart {listed(brokers)}"
    if_it_hangs = plural(len(brokers), "restart it if it hangs", "restart one that hangs")
    return f"start {listed(brokers)}" + (f" ({if_it_hangs})" if crashed and not briefly else "")


class Waiting(NamedTuple):
    """Partitions that clients can use again once `lacking` of the brokers have returned."""

    brokers: frozenset[BrokerId]
    lacking: int
    partitions: int
    is_offline: bool  # otherwise they reject acks=all
    internal: int = 0  # partitions of internal topics among them
    topic: str = ""  # the topic of all, if they have the same


class NextReturn(NamedTuple):
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


def order_of_return(waiting: Iterable[Waiting], away: Collection[BrokerId]) -> Iterator[NextReturn]:
    """Yield the absent broker whose return restores most, then the best broker for the rest, until no return helps.

    Offline partitions weigh more than any number that reject acks=all. Between equal brokers, internal topics decide,
    because consumer groups and transactions depend on them, then the lower id. If no broker restores a partition alone,
    the broker comes first that brings most partitions nearer.
    """
    rest = _Rest(waiting, away)
    while rest.weights:
        best = min(rest.weights, key=lambda broker: (*(-weight for weight in rest.weights[broker]), broker))
        if not any(rest.weights[best]):
            return
        yield NextReturn(best, tuple(rest.restored_by(best)))


class _Rest:
    """Groups that wait for absent brokers, and each broker's weight among them.

    A weight is the number of partitions that the broker restores alone, by kind, then of those that it brings nearer.
    A return changes the weights of the brokers that share a group with it. If a hundred brokers are away, nearly every
    partition is a group of its own at random placement.
    """

    def __init__(self, waiting: Iterable[Waiting], away: Collection[BrokerId]) -> None:
        self.weights = {broker: [0] * 6 for broker in away}
        self._groups = [group for group in waiting if group.lacking]
        self._lacking = [group.lacking for group in self._groups]
        self._of_broker = defaultdict[BrokerId, list[int]](list)
        for at in range(len(self._groups)):
            for broker in self._weigh(at):
                self._of_broker[broker].append(at)

    def restored_by(self, broker: BrokerId) -> Iterator[Waiting]:
        """Let the broker return. Yield the groups that its return restores."""
        del self.weights[broker]
        for at in self._of_broker[broker]:
            if not self._lacking[at]:
                continue
            self._weigh(at, sign=-1)
            self._lacking[at] -= 1
            if self._lacking[at]:
                self._weigh(at)
            else:
                yield self._groups[at]

    def _weigh(self, at: int, *, sign: int = 1) -> list[BrokerId]:
        """Add the group to the weights of its absent brokers, or take it out again. Return these brokers."""
        group, brokers = self._groups[at], [broker for broker in self._groups[at].brokers if broker in self.weights]
        of_kind = 0 if self._lacking[at] == 1 else 3
        for broker in brokers:
            self.weights[broker][of_kind + (not group.is_offline)] += sign * group.partitions
            self.weights[broker][of_kind + 2] += sign * group.internal
        return brokers
