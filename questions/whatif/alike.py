"""The fate of a partition whose brokers are lost, and partitions of one fate, counted.

Clusters place many partitions on the same brokers, so these are judged once.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection
from typing import NamedTuple

from controller.contract.ids import NO_LEADER, BrokerId
from controller.rules.election import elect_offline
from controller.view.health import needed_in_sync
from controller.view.types import Context, Header


class Alike(NamedTuple):
    """Everything that decides the fate of a partition whose brokers are lost."""

    replicas: tuple[BrokerId, ...]
    isr: tuple[BrokerId, ...]  # its online replicas
    leader: BrokerId
    needed: int  # in-sync replicas that acks=all takes
    unclean: bool  # whether a replica that is not in sync may lead

    def after(self, left: Collection[BrokerId]) -> Fate:
        """Return the fate of the partition if only these brokers are left."""
        isr = tuple(member for member in self.isr if member in left)
        leader, is_unclean = self.leader, False
        if leader not in left:
            elected = elect_offline(self.replicas, self.isr, left, allow_unclean=self.unclean)
            if elected is None:
                return Fate(NO_LEADER, rejects=False)
            leader, isr, is_unclean = elected.leader, elected.isr, elected.unclean
        return Fate(leader, len(isr) < self.needed, is_unclean)


class Fate(NamedTuple):
    """A partition's leader after a loss, -1 if it is offline, and whether it rejects acks=all or may lose records."""

    leader: BrokerId
    rejects: bool
    is_unclean: bool = False


class Judge:
    """Facts outside a partition that decide its fate: the live brokers and the brokers' settings."""

    def __init__(self, header: Header) -> None:
        self.live = frozenset(header.brokers)
        self._rules, self._unclean = header.counting_rules, header.allows_unclean_election

    def alike(  # noqa: PLR0913 (all that decides the fate)
        self,
        replicas: tuple[BrokerId, ...],
        isr: tuple[BrokerId, ...],
        leader: BrokerId,
        offline_dirs: Collection[BrokerId],
        least_of_topic: int | None,
        unclean_of_topic: bool | None,
    ) -> Alike:
        """Return what decides the fate of a led partition. The last two are None if the brokers' own settings hold."""
        if offline_dirs or not self.live.issuperset(isr):
            isr = tuple(member for member in isr if member in self.live and member not in offline_dirs)
        needed = needed_in_sync(least_of_topic, leader, len(replicas), self._rules)
        unclean = self._unclean if unclean_of_topic is None else unclean_of_topic
        return Alike(replicas, isr, leader, max(needed, 1), unclean)

    def most_needed(self, least_of_topic: int | None) -> int:
        """Return how many in-sync replicas suffice for acks=all in any partition of the topic."""
        rules = self._rules
        return max(1, least_of_topic or max(rules.least_in_sync, *(least for _, least in rules.least_in_sync_on), 1))


class Group(NamedTuple):
    """A number of equal partitions with their topics."""

    partitions: int
    topics: frozenset[str]


def partitions_alike(context: Context) -> dict[Alike, Group]:
    """Return all led partitions by the facts that decide their fate, without topics in the deletion queue."""
    judge = Judge(context.header)
    found: dict[Alike, list[str]] = defaultdict(list)
    for name, topic in context.topics:
        if not topic.exists or topic.queued_for_deletion:
            continue
        for partition in topic.partitions.values():
            value = partition.zk_state
            if value is not None and value.leader in judge.live:
                place = partition.replicas, value.isr, value.leader, partition.offline_dirs
                found[judge.alike(*place, topic.min_insync_replicas, topic.unclean_election)].append(name)
    return {alike: Group(len(names), frozenset(names)) for alike, names in found.items()}
