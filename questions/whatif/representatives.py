"""One partition stands for all equal ones, because a change of brokers affects them alike."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

import msgspec

from controller.contract.ids import BrokerId, PartitionId, TopicPartition
from controller.restore.altered_context import with_gauges, with_partitions
from controller.view.counting import GaugeIndex
from controller.view.types import Context, InTopic, Partition, Topic
from questions.whatif.consequences import Consequences, worst_first

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
        tuple(partition.replica_states.items()),
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
