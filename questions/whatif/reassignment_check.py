"""Effect of a completed reassignment of many partitions on clients, found by playing one partition of each kind."""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from controller.contract.ids import BrokerId, TopicPartition
from controller.view.types import Context, CountingRules
from questions.whatif.consequences import PartitionChange
from questions.whatif.representatives import Targets
from questions.whatif.scenario import Change, Step, play


class Taken(msgspec.Struct, frozen=True):
    """Number of partitions that a reassignment leaves offline, and that reject acks=all."""

    offline: int
    unwritable: int
    is_harmless: bool


def check_reassignment(context: Context, targets: Targets) -> Taken:
    """Return the effect of the reassignment. Raise NoControllerError or UnknownBrokersError."""
    kinds: dict[object, list[TopicPartition]] = {}
    rules = context.header.counting_rules
    for tp, target in targets.items():
        kinds.setdefault(_kind(context, rules, tp, target), []).append(tp)
    count_of = {tps[0]: len(tps) for tps in kinds.values()}
    scenario = play(context, [Step(Change.REASSIGN, targets={tp: targets[tp] for tp in count_of})])

    def counted(changes: Iterable[PartitionChange]) -> int:
        return sum(count_of.get(TopicPartition(each.topic, each.partition), 1) for each in changes)

    after = scenario.in_all
    return Taken(counted(after.newly_offline), counted(after.newly_unwritable), scenario.is_harmless)


def _kind(context: Context, rules: CountingRules, tp: TopicPartition, target: tuple[BrokerId, ...]) -> object:
    """Return a key of partitions with equal ends, because neither the controller nor a leader depends on brokers' ids.

    A partition with a due write or a failed log directory is a kind of its own.
    """
    topic, partition = context.topics.get(tp.topic), context.topics.partition(tp)
    value = None if partition is None else partition.zk_state
    if topic is None or partition is None or value is None:
        return tp
    if partition.queue or partition.reassigning or partition.pending_assignments or partition.offline_dirs:
        return tp
    live = context.header.brokers
    number_of: dict[BrokerId, int] = {}
    roles = tuple(
        tuple(number_of.setdefault(broker, len(number_of)) for broker in brokers)
        for brokers in (partition.replicas, target, value.isr, (value.leader,))
    )
    brokers = tuple((broker in live, rules.least_in_sync_under(broker)) for broker in number_of)
    settings = (topic.min_insync_replicas, topic.unclean_election, topic.queued_for_deletion)
    judged = (partition.problem, partition.passed_over, partition.cached)
    return roles, brokers, settings, judged
