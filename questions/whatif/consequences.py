"""Consequences of a change: partitions with another leader, offline, or rejecting acks=all."""

from __future__ import annotations

from collections.abc import Collection, Iterable

import msgspec

from controller.contract.ids import NO_LEADER, BrokerId, ControllerEpoch, LeaderEpoch, PartitionId, TopicPartition
from controller.contract.leader_and_isr import LeaderAndIsr
from controller.contract.problem import UNUSABLE, Problem
from controller.rules.topic_ranks import place_in_sentence
from controller.view.types import Context
from questions.clients.groups import sizes_in, troubled_in
from questions.clients.known_groups import Troubled
from questions.picture import reason_of
from wording.facts import Fact
from wording.said import Said, line
from wording.sentences import counted, joined, plural, verb

_NONE = LeaderAndIsr(NO_LEADER, LeaderEpoch(-1), (), ControllerEpoch(-1))


class PartitionChange(msgspec.Struct, frozen=True, omit_defaults=True):
    """A partition before and after a change. Leader -1 is none."""

    topic: str
    partition: PartitionId
    replicas: tuple[BrokerId, ...]
    leader_before: BrokerId
    leader: BrokerId
    isr_before: tuple[BrokerId, ...]
    isr: tuple[BrokerId, ...]
    problem_before: str | None = None
    problem: str | None = None
    reason: str | None = None
    unclean: bool = False  # a replica outside the ISR leads, so records may be lost

    @property
    def words(self) -> str:
        """Return the partition with its leader and its problem."""
        led = f"leader {self.leader_before} → {self.leader}" if self.leader >= 0 else "no leader"
        return f"{self.topic}-{self.partition}: {led}; {self.reason or 'in sync'}"


class Consequences(msgspec.Struct, frozen=True):
    """Partitions that changed, the worst first, and the counts of the whole cluster before and after."""

    changes: tuple[PartitionChange, ...]
    brokers: tuple[BrokerId, ...]
    controller: BrokerId
    offline_before: int
    offline: int
    under_min_isr_before: int
    under_min_isr: int
    leaders_before: dict[BrokerId, int]  # by broker
    leaders: dict[BrokerId, int]

    @property
    def newly_offline(self) -> tuple[PartitionChange, ...]:
        """Return partitions that clients can use only before the change."""
        return tuple(each for each in self.changes if is_offline(each.problem) and not is_offline(each.problem_before))

    @property
    def newly_online(self) -> tuple[PartitionChange, ...]:
        """Return partitions that clients can use only after the change."""
        return tuple(each for each in self.changes if is_offline(each.problem_before) and not is_offline(each.problem))

    @property
    def newly_unwritable(self) -> tuple[PartitionChange, ...]:
        """Return partitions that accept acks=all only before the change, but have a leader after it."""
        least = Problem.UNDER_MIN_ISR.value
        return tuple(
            each
            for each in self.changes
            if each.problem == least and each.problem_before != least and not is_offline(each.problem_before)
        )

    @property
    def moved_leaders(self) -> tuple[PartitionChange, ...]:
        """Return partitions with another leader."""
        return tuple(each for each in self.changes if each.leader not in (each.leader_before, NO_LEADER))

    @property
    def unclean(self) -> tuple[PartitionChange, ...]:
        """Return partitions that lose records of their former ISR."""
        return tuple(each for each in self.changes if each.unclean)

    @property
    def sentence(self) -> str:
        """Return what clients lose, as a clause: 26 more partitions go offline and 42 more reject acks=all."""
        facts = (("goes offline", self.newly_offline), (Fact.REJECTS_ACKS_ALL.singular, self.newly_unwritable))
        lost = [(len(changes), singular) for singular, changes in facts if changes]
        nouns = ("more partition", *["more"] * len(lost))
        said = [
            f"{count:,} {noun if noun == 'more' else plural(count, noun, f'{noun}s')} {verb(count, singular)}"
            for (count, singular), noun in zip(lost, nouns, strict=False)
        ]
        return joined(said) or "clients lose nothing"

    def said(self, title: str, most: int | None) -> Said:
        """Yield the effect on clients, the moved leaders, and so many partitions of each kind of trouble."""
        troubles = (
            ("page", "offline", self.newly_offline),
            ("page", "led uncleanly (acknowledged records may be lost)", self.unclean),
            ("warn", Fact.REJECTS_ACKS_ALL.word, self.newly_unwritable),
        )
        harmless = not any(changes for _, _, changes in troubles)
        back = f"clients can use {counted(len(self.newly_online), 'partition')} again" if self.newly_online else ""
        yield line((title, "strong"), ": ", (back or "no effect on clients", "ok") if harmless else back)
        who = f"broker {self.controller} is controller" if self.controller >= 0 else "no broker is left"
        yield line(f"{counted(len(self.moved_leaders), 'leader')} moved, {who}", indent=2)
        for meaning, what, changes in troubles:
            if changes:
                yield line((f"{counted(len(changes), 'partition')} {what}", meaning), indent=2)
            for change in changes[:most]:
                yield line(change.words, indent=4)
            if most is not None and len(changes) > most:
                yield line(f"and {len(changes) - most} more (--all names them)", indent=4)

    @property
    def totals(self) -> str:
        """Return the counts of the whole cluster after the change and before it."""
        then, now = self.leaders, self.leaders_before
        brokers = sorted({*self.brokers, *now})
        leaders = ", ".join(f"{broker}: {now.get(broker, 0)} → {then.get(broker, 0)}" for broker in brokers)
        return (
            f"{self.offline} offline ({self.offline_before} now), "
            f"{self.under_min_isr} {Fact.REJECTS_ACKS_ALL.word} ({self.under_min_isr_before} now). "
            f"Leaders by broker: {leaders}"
        )


def is_offline(problem: str | None) -> bool:
    """Return whether this problem of a partition keeps all clients from it."""
    return problem is not None and Problem(problem) in UNUSABLE


def consequences(before: Context, after: Context, touched: Iterable[TopicPartition]) -> Consequences:
    """Compare two moments, with the changes in any order. `touched` are the partitions that may differ."""
    changes = tuple(change for tp in touched if (change := _change(before, after, tp)) is not None)
    then, now = before.header.tally, after.header.tally
    return Consequences(
        changes,
        tuple(sorted(after.header.brokers)),
        after.header.controller,
        then.gauges.leaderless,
        now.gauges.leaderless,
        then.gauges.under_min_isr_partitions,
        now.gauges.under_min_isr_partitions,
        _led_by(before),
        _led_by(after),
    )


def _led_by(context: Context) -> dict[BrokerId, int]:
    """Return how many partitions each live broker leads. A partition's state may still name a lost leader."""
    live, led = context.header.brokers, context.header.tally.gauges.led_by
    return {broker: count for broker, count in sorted(led.items()) if broker in live}


def _change(before: Context, after: Context, tp: TopicPartition) -> PartitionChange | None:
    topic, now = after.topics.get(tp.topic), after.topics.partition(tp)
    then = before.topics.partition(tp)
    if topic is None or now is None or then is None:
        return None
    was, value = then.zk_state or _NONE, now.zk_state or _NONE
    if (was.leader, was.isr, then.replicas, then.problem) == (value.leader, value.isr, now.replicas, now.problem):
        return None
    return PartitionChange(
        tp.topic,
        tp.partition,
        now.replicas,
        was.leader,
        value.leader,
        was.isr,
        value.isr,
        then.problem.value if then.problem else None,
        now.problem.value if now.problem else None,
        reason_of(now, topic, after.header),
        value.leader != NO_LEADER and value.recovering and value.leader not in was.isr,
    )


def troubled_by(taken: Consequences, context: Context) -> Troubled:
    """Return the partitions that a change takes from clients."""
    return troubled_in((*taken.newly_offline, *taken.newly_unwritable), sizes_in(context))


def worst_first(changes: Collection[PartitionChange], context: Context) -> tuple[PartitionChange, ...]:
    """Return the changes by their problem, then by the importance of their topics."""
    ranks: dict[str | None, int] = {None: len(Problem), **{problem.value: rank for rank, problem in enumerate(Problem)}}
    replicas: dict[str, int] = {}
    for change in changes:
        replicas[change.topic] = max(replicas.get(change.topic, 0), len(change.replicas))
    places = {topic: place_of(topic, context, most) for topic, most in replicas.items()}
    return tuple(sorted(changes, key=lambda each: (ranks[each.problem], places[each.topic], each.partition)))


def place_of(name: str, context: Context, replicas: int | None = None) -> tuple[int, str]:
    """Return the place of a topic among others, the most important first. The context may lack its partitions."""
    topic, header = context.topics.get(name), context.header
    own = None if topic is None else topic.min_insync_replicas
    in_sync = header.counting_rules.least_in_sync if own is None else own
    if replicas is None and topic is not None:
        replicas = max((len(each.replicas) for each in topic.partitions.values()), default=0)
    return place_in_sentence(name, in_sync, replicas or 0, header.topic_ranks), name
