"""The live question about losses of brokers, with the effect on each topic."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from typing import Annotated, Final

import msgspec

from controller.contract.ids import NO_LEADER, BrokerId
from controller.contract.problem import Problem
from questions.clients.groups import Impact
from questions.known_brokers import UnknownBrokersError
from questions.known_clusters import KnownCluster, LiveQuestion, UnknownClusterError
from questions.picture import Picture
from questions.question import meaning
from questions.whatif.consequences import PartitionChange, is_offline, troubled_by
from questions.whatif.hypothetical_cluster import NoControllerError
from questions.whatif.rolling import RollingOrder, rolling_order
from questions.whatif.scenario import Change, Scenario, Step, brokers_in, play

_NAMED: Final = 50


class TopicChanges(msgspec.Struct, frozen=True, kw_only=True):
    """The partitions of a topic that change, before and after."""

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


class WhatIf(msgspec.Struct, frozen=True):
    """Answer to a what-if: the scenario and its topics, the worst first, or why there is none."""

    doubts: tuple[str, ...]  # why the cluster may have changed since
    scenario: Scenario | None
    refused: str | None = None
    topics: tuple[TopicChanges, ...] = ()
    more_topics: int = 0
    rolling: RollingOrder | None = None  # of all brokers, for clean shutdowns
    impact: Impact | None = None  # on consumer groups and transactional ids, if any is known


class LoseBrokers(LiveQuestion, frozen=True):
    """Consequences of losing the named brokers or racks."""

    answer = WhatIf

    brokers: Annotated[tuple[int, ...], meaning("A lost broker. Name at least one broker or rack.")] = ()
    racks: Annotated[tuple[str, ...], meaning("A lost rack.")] = ()
    controlled: Annotated[
        str, meaning("1 shuts them down cleanly, one after the other. Otherwise they crash at once.")
    ] = ""

    def __post_init__(self) -> None:
        """Raise ValueError without a loss."""
        if not self.brokers and not self.racks:
            raise ValueError("Name brokers or racks, like ?broker=3&rack=eu-1. &controlled=1 shuts them down cleanly")

    def ask(self, cluster: KnownCluster) -> WhatIf:
        """Play the losses, or return why the cluster is not known. Raise UnknownBrokersError for an empty rack."""
        doubts, change = cluster.doubts(), Change.SHUT_DOWN if self.controlled == "1" else Change.CRASH
        try:
            context = cluster.snapshot().picture(()).context  # racks are known without the partitions
            of_racks = [broker for rack in self.racks for broker in brokers_in(context, rack)]
            return play_losses(cluster.whole(), {*map(BrokerId, self.brokers), *of_racks}, change, doubts)
        except UnknownClusterError as error:
            return WhatIf(doubts, None, str(error))


def play_losses(picture: Picture, brokers: Collection[BrokerId], change: Change, doubts: tuple[str, ...]) -> WhatIf:
    """Play the losses on the cluster, and group the changes by topic."""
    context = picture.context
    try:
        scenario = play(context, [Step(change, tuple(sorted(brokers)))])
        order = rolling_order(context) if change is Change.SHUT_DOWN else None
    except (UnknownBrokersError, NoControllerError) as error:
        return WhatIf(doubts, None, str(error))
    topics = _by_topic(scenario.in_all.changes)
    impact = picture.clients.hit_by(troubled_by(scenario.in_all, context))
    return WhatIf(doubts, scenario, None, topics[:_NAMED], len(topics[_NAMED:]), order, impact)


def _by_topic(changes: Iterable[PartitionChange]) -> tuple[TopicChanges, ...]:
    found: dict[str, list[PartitionChange]] = {}
    for change in changes:
        found.setdefault(change.topic, []).append(change)
    return tuple(sorted((_topic(name, each) for name, each in found.items()), key=lambda topic: topic.effect))


def _topic(name: str, changes: Sequence[PartitionChange]) -> TopicChanges:
    lost = [each for each in changes if each.problem not in (None, Problem.UNDER_REPLICATED.value)]
    return TopicChanges(
        topic=name,
        offline_before=sum(is_offline(each.problem_before) for each in changes),
        offline=sum(is_offline(each.problem) for each in changes),
        refusing_before=sum(each.problem_before == Problem.UNDER_MIN_ISR.value for each in changes),
        refusing=sum(each.problem == Problem.UNDER_MIN_ISR.value for each in changes),
        unclean=sum(each.unclean for each in changes),
        moved=sum(each.leader not in (each.leader_before, NO_LEADER) for each in changes),
        partitions=tuple(lost[:_NAMED]),
    )
