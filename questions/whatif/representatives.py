"""One partition stands for all equal ones, because a change of brokers affects them alike.

Clusters place many partitions on the same brokers, so the fate of these is judged once and counted.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Hashable, Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

import msgspec

from controller.contract.ids import NO_LEADER, BrokerId, PartitionId, TopicPartition
from controller.restore.altered_context import with_gauges, with_partitions
from controller.rules.election import elect_offline
from controller.view.counting import GaugeIndex
from controller.view.health import needed_in_sync
from controller.view.types import Context, Header, InTopic, Partition, Topic
from questions.whatif.consequences import Consequences, worst_first


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


class EqualPartitions(NamedTuple):
    """A number of equal partitions with their topics."""

    partitions: int
    topics: frozenset[str]


def partitions_alike(context: Context) -> dict[Alike, EqualPartitions]:
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
    return {alike: EqualPartitions(len(names), frozenset(names)) for alike, names in found.items()}


Targets = Mapping[TopicPartition, tuple[BrokerId, ...]]


class Representatives(NamedTuple):
    """A cluster with these partitions only, and the partitions that each represents.

    The header is the whole cluster's, so its gauges count every partition.
    """

    context: Context
    others: Mapping[TopicPartition, Sequence[TopicPartition]]

    def count_all(self, before: Context, after: Context, touched: Iterable[TopicPartition]) -> Context:
        """Return the moment after a change, with gauges that count every partition."""
        index = GaugeIndex(after.header.tally.gauges, after.header.counting_rules)
        for tp in touched:
            if others := len(self._others(tp)):
                index.recount(_in_topic(before, tp), _in_topic(after, tp), others)
        return with_gauges(after, index.counts)

    def among_them(self, targets: Targets) -> Targets:
        """Return targets of the representatives alone."""
        return {tp: to for tp, to in targets.items() if self.context.topics.partition(tp) is not None}

    def name_all(self, found: Consequences) -> Consequences:
        """Return these consequences with every partition that changed."""
        changes = []
        for change in found.changes:
            changes.append(change)
            for other in self._others(TopicPartition(change.topic, change.partition)):
                changes.append(msgspec.structs.replace(change, topic=other.topic, partition=other.partition))
        return msgspec.structs.replace(found, changes=worst_first(changes, self.context))

    def _others(self, tp: TopicPartition) -> Sequence[TopicPartition]:
        return self.others.get(tp, ())


def _in_topic(context: Context, tp: TopicPartition) -> InTopic:
    return context.topics.get(tp.topic), context.topics.partition(tp)


def represent(context: Context, targets: Sequence[Targets], *, brokers_change: bool = True) -> Representatives:
    """Return one partition of each kind. Reassigned partitions are equal only with equal new replicas.

    If the controller has work in progress, every partition is a kind of its own. While all brokers stay, topics outside
    the reassignment keep all their partitions.
    """
    header = context.header
    if header.events or header.triggers.reassign or header.triggers.preferred:
        return Representatives(context, {})
    of_kind: dict[Hashable, list[TopicPartition]] = {}
    reassigned = [each for each in targets if each]
    kept: dict[str, dict[PartitionId, Partition]] = {}
    may_change = context.topics if brokers_change else _topics_in(context, reassigned)
    for name, topic in may_change:
        kept[name] = {}
        for number, partition in topic.partitions.items():
            tp = TopicPartition(name, number)
            kind = _kind(context, topic, partition) or tp, *(each.get(tp) for each in reassigned)
            members = of_kind.setdefault(kind, [])
            if not members:
                kept[name][number] = partition
            members.append(tp)
    others = {first: rest for first, *rest in of_kind.values() if rest}
    return Representatives(with_partitions(context, kept), others)


def _topics_in(context: Context, targets: Iterable[Targets]) -> Iterator[tuple[str, Topic]]:
    for name in dict.fromkeys(tp.topic for each in targets for tp in each):
        if topic := context.topics.get(name):
            yield name, topic


def _kind(context: Context, topic: Topic, partition: Partition) -> Hashable:
    """Return everything that decides a partition's fate, unless it has a due write of its own."""
    value = partition.zk_state
    if value is None or partition.queue or partition.adding or partition.removing or partition.pending_assignments:
        return None
    if partition.cached or partition.offline_dirs or partition.zk_assignment or partition.passed_over:
        return None
    if topic.queued_for_deletion or not topic.exists or topic.refused or topic.unproven:
        return None
    return (
        partition.replicas,
        tuple(partition.all_replica_states.items()),
        partition.state,
        partition.problem,
        partition.in_sync_lacking,
        value.leader,
        value.isr,
        value.recovering,
        value.is_refused_in(context.header.controller_epoch),
        topic.min_insync_replicas,
        topic.unclean_election,
    )
