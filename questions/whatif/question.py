"""The questions about what would happen: a scenario, losses by topic, a ranking of losses, and an order of restarts."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from itertools import zip_longest
from typing import Annotated, Final

import msgspec
from msgspec.structs import asdict, replace

from controller.contract.ids import NO_LEADER, BrokerId, TopicPartition
from controller.contract.problem import Problem
from controller.view.flawed_znodes import harming_failovers
from controller.view.types import Context
from questions.check.damage import TopicDamage, damage_of, groups_in
from questions.clients.groups import Impact
from questions.explain.subject import read_partition
from questions.picture import Picture
from questions.question import NotFoundError, Question, meaning
from questions.whatif.consequences import PartitionChange, is_offline, troubled_by
from questions.whatif.rolling import Loss, RollingOrder, failing_starts, rank_losses, rolling_order
from questions.whatif.scenario import Scenario, Step, StepKind, brokers_in, play
from wording.said import Said, Table, line

_NAMED: Final = 10
_RANKED: Final = ("lost", "offline", "reject acks=all", "unclean", "leaders move", "most leaders then", "topics")


class PlayedScenario(Scenario, frozen=True, omit_defaults=True):
    """The steps, their common effect, and the impact of each step on consumer groups, if any is known."""

    impacts: tuple[Impact, ...] = ()

    def said(self, as_of_ms: int, *, is_all: bool) -> Said:
        """Yield each step, its impact on consumer groups if they are known, and the common effect."""
        most = None if is_all else _NAMED
        for step, impact in zip_longest(self.steps, self.impacts):
            yield from step.consequences.said(step.title, most)
            if impact is not None and impact.sentence:
                yield line((impact.sentence, "page"), f", {impact.as_of(as_of_ms)}", indent=2)
                yield from impact.said(most)
        yield line(f"In the end: {self.in_all.totals}")


class PlannedStep(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One change: a loss, a return or a reassignment. A wrong one raises ValueError."""

    lose_brokers: Annotated[tuple[int, ...], meaning("Brokers that are lost at once.")] = ()
    lose_racks: Annotated[tuple[str, ...], meaning("Racks whose brokers are lost at the same time.")] = ()
    restore: Annotated[tuple[int, ...], meaning("Brokers that return and catch up.")] = ()
    reassign: Annotated[
        Mapping[str, tuple[int, ...]], meaning("Target replicas of partitions, such as {'orders-7': [1, 2]}.")
    ] = {}

    def __post_init__(self) -> None:
        """Raise ValueError for a step of two kinds or none, and for words that name no partition."""
        if sum(map(bool, (self.lose_brokers or self.lose_racks, self.restore, self.reassign))) != 1:
            raise ValueError("a step loses brokers or racks, or restores brokers, or reassigns partitions")
        self._targets()

    def in_cluster(self, context: Context, lost: StepKind) -> Step:
        """Return the step with the brokers of its racks. Raise UnknownBrokersError for an empty rack."""
        if self.reassign:
            return Step(StepKind.REASSIGN, targets=self._targets())
        if self.restore:
            return Step(StepKind.RESTORE, tuple(dict.fromkeys(_brokers(self.restore))))
        racks = (broker for rack in self.lose_racks for broker in brokers_in(context, rack))
        return Step(lost, tuple(dict.fromkeys((*_brokers(self.lose_brokers), *racks))))

    def _targets(self) -> dict[TopicPartition, tuple[BrokerId, ...]]:
        return {read_partition(name): _brokers(replicas) for name, replicas in self.reassign.items()}


class WhatIf(Question, frozen=True):
    """Simulate losses and returns of brokers or racks, and reassignments, by the controller's own rules.

    Each step is played to its end before the next one.
    """

    answer = PlayedScenario
    tool = "whatif"
    asks_clients = True

    steps: Annotated[tuple[PlannedStep, ...], meaning("The changes, one after the other."), msgspec.Meta(min_length=1)]
    controlled: Annotated[bool, meaning("Lost brokers shut down cleanly. By default they crash.")] = False

    def ask(self, picture: Picture) -> PlayedScenario:
        """Play the steps, and say whom each of them hits. Raise NotFoundError."""
        context, lost = picture.context, StepKind.SHUT_DOWN if self.controlled else StepKind.CRASH
        steps = [step.in_cluster(context, lost) for step in self.steps]
        if context.header.controller in {broker for step in steps if step.change is lost for broker in step.brokers}:
            # The next controller would fail at a znode, or take an old partition for new.
            for flawed in harming_failovers(context.header):
                raise NotFoundError(f"nobody knows what follows the loss of the controller: {flawed.with_mend}")
        scenario = play(context, steps)
        hit = (picture.clients.hit_by(troubled_by(step.consequences, context)) for step in scenario.steps)
        return PlayedScenario(**asdict(scenario), impacts=tuple(filter(None, hit)))


def _brokers(numbers: Iterable[int]) -> tuple[BrokerId, ...]:
    return tuple(map(BrokerId, numbers))


class Ranking(msgspec.Struct, frozen=True):
    """Losses of each broker and rack, the worst first."""

    cluster: str
    losses: tuple[Loss, ...]

    def said(self) -> Said:
        """Yield a table of the losses."""
        yield Table(_RANKED, [loss.cells for loss in self.losses], below=1)


class WhatIfEach(Question, frozen=True):
    """Rank every broker and rack by the effect of its loss."""

    answer = Ranking
    tool = "whatif_each"

    def ask(self, picture: Picture) -> Ranking:
        """Return the losses of the cluster. Raise NotFoundError."""
        return Ranking(picture.header.cluster, rank_losses(picture.context))


class WhatIfRolling(Question, frozen=True):
    """Propose an order of restarts without an effect on clients, and name the topics that prevent one."""

    answer = RollingOrder
    tool = "whatif_rolling"

    at_once: Annotated[Annotated[int, msgspec.Meta(ge=1)] | None, meaning("Restart at most N brokers at once.")] = None

    def ask(self, picture: Picture) -> RollingOrder:
        """Return the order. Raise NotFoundError."""
        order = rolling_order(picture.context, at_once=self.at_once)
        return replace(order, failing_starts=tuple(row.cause for row in failing_starts(picture)))


_NAMED_ON_A_PAGE: Final = 50


class TopicChanges(msgspec.Struct, frozen=True, kw_only=True):
    """A topic with partitions that change. Counts of trouble are of all its partitions, before and after."""

    topic: str
    offline_before: int
    offline: int
    refusing_before: int  # partitions that rejected acks=all
    refusing: int
    unclean: int  # partitions that may lose records
    moved: int  # partitions with a new leader
    partitions: tuple[PartitionChange, ...]  # some of those that clients lose

    @property
    def effect(self) -> int:
        """Return the order of the topics by their effect: those that clients lose, then refusing ones, then others."""
        return 0 if self.offline > self.offline_before else 1 if self.refusing > self.refusing_before else 2


class Losses(msgspec.Struct, frozen=True):
    """Answer to a what-if: the scenario and its topics, the worst first, or why there is none."""

    doubts: tuple[str, ...]  # why the cluster may have changed since
    scenario: Scenario | None
    refused: str | None = None
    topics: tuple[TopicChanges, ...] = ()
    more_topics: int = 0
    rolling: RollingOrder | None = None  # of all brokers, for clean shutdowns
    impact: Impact | None = None  # on consumer groups and transactional ids, if any is known


def play_losses(picture: Picture, brokers: Collection[BrokerId], change: StepKind, doubts: tuple[str, ...]) -> Losses:
    """Play the losses on the cluster, and group the changes by topic."""
    context = picture.context
    try:
        scenario = play(context, [Step(change, tuple(sorted(brokers)))])
        order = rolling_order(context) if change is StepKind.SHUT_DOWN else None
    except NotFoundError as error:
        return Losses(doubts, None, str(error))
    topics = _by_topic(scenario.in_all.changes, context)
    impact = picture.clients.hit_by(troubled_by(scenario.in_all, context))
    return Losses(doubts, scenario, None, topics[:_NAMED_ON_A_PAGE], len(topics[_NAMED_ON_A_PAGE:]), order, impact)


def _by_topic(changes: Iterable[PartitionChange], context: Context) -> tuple[TopicChanges, ...]:
    found: dict[str, list[PartitionChange]] = {}
    for change in changes:
        found.setdefault(change.topic, []).append(change)
    damaged = {each.topic: each for each in damage_of(groups_in(context)).topics}
    topics = (_topic(name, each, damaged.get(name, TopicDamage(name, 0, 0, 0))) for name, each in found.items())
    return tuple(sorted(topics, key=lambda topic: topic.effect))


def _topic(name: str, changes: Sequence[PartitionChange], now: TopicDamage) -> TopicChanges:
    least = Problem.UNDER_MIN_ISR.value
    lost = [each for each in changes if each.problem not in (None, Problem.UNDER_REPLICATED.value)]
    return TopicChanges(
        topic=name,
        offline_before=now.offline,
        offline=now.offline + sum(is_offline(each.problem) - is_offline(each.problem_before) for each in changes),
        refusing_before=now.refusing,
        refusing=now.refusing + sum((each.problem == least) - (each.problem_before == least) for each in changes),
        unclean=sum(each.unclean for each in changes),
        moved=sum(each.leader not in (each.leader_before, NO_LEADER) for each in changes),
        partitions=tuple(lost[:_NAMED_ON_A_PAGE]),
    )
