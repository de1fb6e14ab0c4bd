"""A sequence of changes to a cluster, with the effect of each, and the effect of a completed reassignment on clients.

A reassignment of many partitions is judged by playing one partition of each kind.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from enum import Enum
from typing import NamedTuple

import msgspec

from controller.contract.ids import BrokerId, TopicPartition
from controller.view.types import Context, CountingRules
from questions.known_brokers import UnknownBrokersError, refuse_unknown
from questions.whatif.consequences import Consequences, PartitionChange, consequences
from questions.whatif.hypothetical_cluster import HypotheticalCluster
from questions.whatif.representatives import Targets, represent
from wording.sentences import counted, did_you_mean, listed, near, plural


class StepKind(Enum):
    """Kind of a change."""

    CRASH = "crash"
    SHUT_DOWN = "controlled shutdown"
    RESTORE = "restore"
    REASSIGN = "reassign"


class Step(NamedTuple):
    """One change of brokers at once, or of assignments."""

    change: StepKind
    brokers: tuple[BrokerId, ...] = ()
    targets: Mapping[TopicPartition, tuple[BrokerId, ...]] = {}

    @property
    def title(self) -> str:
        """Return the step as a condition."""
        if self.change is StepKind.REASSIGN:
            return f"if {counted(len(self.targets), 'partition', 'is')} reassigned"
        verbs = {StepKind.CRASH: "crashes", StepKind.SHUT_DOWN: "shuts down cleanly", StepKind.RESTORE: "returns"}
        return f"if {listed(self.brokers, verbs[self.change])}"


class StepOutcome(msgspec.Struct, frozen=True):
    """Effect of one step, compared with the moment before it."""

    title: str
    consequences: Consequences


class Scenario(msgspec.Struct, frozen=True):
    """The steps, and their common effect."""

    cluster: str
    steps: tuple[StepOutcome, ...]
    in_all: Consequences

    @property
    def is_harmless(self) -> bool:
        """Return whether no step costs reads, writes with acks=all, or acknowledged records."""
        return not any(
            step.consequences.newly_offline or step.consequences.newly_unwritable or step.consequences.unclean
            for step in self.steps
        )


def brokers_in(context: Context, rack: str) -> tuple[BrokerId, ...]:
    """Return the registered brokers of a rack. Raise UnknownBrokersError for an empty rack."""
    brokers, departed = context.header.brokers, context.header.departures.last
    found = tuple(sorted(broker for broker, each in brokers.items() if each.rack == rack))
    if found:
        return found
    away = sorted(broker for broker, departure in departed.items() if departure.rack == rack)
    if away:
        raise UnknownBrokersError(f"rack {rack} is lost already: {listed(away)} {plural(len(away), 'is', 'are')} away")
    known_racks = {each.rack for each in brokers.values()} | {each.rack for each in departed.values()}
    racks = sorted(filter(None, known_racks))
    known = f"the racks are {', '.join(racks)}" if racks else "no broker has a rack"
    raise UnknownBrokersError(f"no registered broker is in rack {rack}: {known}")


def play(context: Context, steps: Sequence[Step]) -> Scenario:
    """Play the steps in order. Raise NoControllerError or UnknownBrokersError."""
    for step in steps:
        _refuse_unknown_partitions(context, step)
    brokers_change = any(step.change is not StepKind.REASSIGN for step in steps)
    alike = represent(context, [step.targets for step in steps], brokers_change=brokers_change)
    cluster, outcomes = HypotheticalCluster(alike.context), []
    cluster.context = alike.count_all(alike.context, cluster.context, cluster.touched)
    touched = set(cluster.touched)
    for step in steps:
        before = cluster.context
        _refuse_unknown_brokers(before, step)
        cluster.touched.clear()
        _apply(cluster, step._replace(targets=alike.among_them(step.targets)))
        cluster.context = alike.count_all(before, cluster.context, cluster.touched)
        outcomes.append(StepOutcome(step.title, alike.name_all(consequences(before, cluster.context, cluster.touched))))
        touched |= cluster.touched
    in_all = alike.name_all(consequences(context, cluster.context, touched))
    return Scenario(context.header.cluster, tuple(outcomes), in_all)


def _apply(cluster: HypotheticalCluster, step: Step) -> None:
    if step.change is StepKind.CRASH:
        cluster.lose(step.brokers)
    elif step.change is StepKind.RESTORE:
        cluster.restore(step.brokers)
    elif step.change is StepKind.REASSIGN:
        cluster.reassign(dict(step.targets))
    for broker in step.brokers if step.change is StepKind.SHUT_DOWN else ():
        cluster.shut_down(broker)


def _refuse_unknown_brokers(context: Context, step: Step) -> None:
    registered = context.header.brokers.keys()
    if step.change in (StepKind.CRASH, StepKind.SHUT_DOWN):
        _refuse(set(step.brokers) - registered, "not registered, and only a registered broker can be lost")
    elif step.change is StepKind.RESTORE:
        refuse_unknown(context, step.brokers)
        _refuse(set(step.brokers) & registered, "registered already, and only an absent broker can return")
    for tp, to in step.targets.items():
        partition = context.topics.partition(tp)
        # Kafka refuses a new replica on a broker that is not live (`KafkaController.validateReplicas`, 3.9).
        added = set(to).difference(partition.replicas if partition is not None else ())
        _refuse(added - registered, f"not registered, and only a registered broker can get a replica of {tp}")


def _refuse(brokers: Collection[BrokerId], why: str) -> None:
    if brokers:
        raise UnknownBrokersError(f"{listed(brokers, 'is')} {why}")


def _refuse_unknown_partitions(context: Context, step: Step) -> None:
    for tp in step.targets:
        if context.topics.partition(tp) is None:
            names = [name for name, topic in context.topics if topic.exists]
            others = (TopicPartition(name, tp.partition) for name in near(tp.topic, names))
            similar = did_you_mean([str(each) for each in others if context.topics.partition(each) is not None])
            raise UnknownBrokersError(f"there is no partition {tp} to be reassigned{similar}")


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
    scenario = play(context, [Step(StepKind.REASSIGN, targets={tp: targets[tp] for tp in count_of})])

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
