"""Losses of brokers, with the effect on each topic."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final

import msgspec

from controller.contract.ids import NO_LEADER, BrokerId
from controller.contract.problem import Problem
from questions.clients.groups import Impact
from questions.known_brokers import UnknownBrokersError
from questions.picture import Picture
from questions.whatif.consequences import PartitionChange, is_offline, troubled_by
from questions.whatif.hypothetical_cluster import NoControllerError
from questions.whatif.rolling import RollingOrder, rolling_order
from questions.whatif.scenario import Change, Scenario, Step, play

_NAMED: Final = 50


class Losses(msgspec.Struct, frozen=True):
    """Brokers lost at once by a crash, or by controlled shutdowns one after the other."""

    brokers: tuple[BrokerId, ...]
    controlled: bool = False


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


def play_losses(picture: Picture, losses: Losses, doubts: tuple[str, ...]) -> WhatIf:
    """Play the losses on the cluster, and group the changes by topic."""
    context, change = picture.context, Change.SHUT_DOWN if losses.controlled else Change.CRASH
    try:
        scenario = play(context, [Step(change, losses.brokers)])
        order = rolling_order(context) if losses.controlled else None
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
