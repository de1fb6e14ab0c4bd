"""Consumer groups and transactional ids that lost partitions stop, by team, as far as brokers reported them."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from enum import Enum
from typing import Final, Protocol

import msgspec

from controller.contract.ids import PartitionId, TopicPartition
from controller.contract.problem import UNUSABLE_WORDS, Problem
from controller.view.types import Context
from questions.clients.known_groups import (
    CONSUMER_OFFSETS,
    NO_GROUPS,
    TRANSACTION_STATE,
    Group,
    KnownGroups,
    Troubled,
    coordinator_of,
)
from questions.clients.teams import NO_TEAMS, Team, Teams, named
from wording.said import Said, line
from wording.sentences import counted, joined
from wording.times import age

_NAMED: Final = 3
_INTERNAL: Final = (CONSUMER_OFFSETS, TRANSACTION_STATE)


class Effect(Enum):
    """What a group or a transactional id cannot do any more, the worst first."""

    CANNOT_READ = "cannot read"
    NO_COORDINATOR = "can neither join nor commit"
    NO_COMMITS = "cannot commit"  # its coordinator is there, but cannot write
    NO_TRANSACTIONS = "can neither begin nor commit transactions"


class Hit(msgspec.Struct, frozen=True):
    """A group or a transactional id, with its team and its trouble as a predicate."""

    name: str
    team: Team | None
    effects: tuple[Effect, ...]
    says: str  # cannot read orders-1 and orders-2, and can neither join nor commit


class Impact(msgspec.Struct, frozen=True, kw_only=True):
    """The running groups and the transactional ids that stop, by the importance of their teams.

    `told_ms` is the time of the oldest answer of a broker that describes one of them.
    """

    told_ms: int
    groups: tuple[Hit, ...] = ()
    transactional_ids: tuple[Hit, ...] = ()
    gaps: tuple[str, ...] = ()

    @property
    def sentence(self) -> str:
        """Return the effect as a predicate: "stops 3 groups of team payments (a, b and c) and 1 group (d)"."""
        kinds = (("group", self.groups), ("transactional id", self.transactional_ids))
        parts = [part for noun, hits in kinds for part in _by_team(noun, _names_by_team(hits))]
        return f"stops {joined(parts)}" if parts else ""

    def as_of(self, now_ms: int) -> str:
        """Return the age of the knowledge in half a sentence."""
        return answered_ago(self.told_ms, now_ms)

    def said(self, most: int | None) -> Said:
        """Yield a line for each hit group and transactional id, and for each fact that the brokers do not tell."""
        for hit in (*self.groups, *self.transactional_ids)[:most]:
            yield line(f"{hit.name}: {hit.says}", indent=4)
        for gap in self.gaps:
            yield line(gap, indent=4)


class Clients(msgspec.Struct, frozen=True):
    """A cluster's groups as brokers last described them, and the teams that own their names."""

    known: KnownGroups = NO_GROUPS
    teams: Teams = NO_TEAMS

    def hit_by(self, troubled: Troubled) -> Impact | None:
        """Return the groups and transactional ids that these partitions stop, None before the brokers' first answer."""
        return impact_of(self.known, troubled, self.teams) if self.known.asked_ms else None


NO_CLIENTS: Final = Clients()


def impact_of(known: KnownGroups, troubled: Troubled, teams: Teams) -> Impact:
    """Return the groups and transactional ids that these partitions stop."""
    groups = [hit for group in known.groups.values() if group.is_running and (hit := _hit(group, troubled, teams))]
    ids = [hit for name in known.transactional_ids if (hit := _hit_transactions(name, troubled, teams))]
    told_ms = (*(known.groups[hit.name].seen_ms for hit in groups), *(known.transactional_ids[hit.name] for hit in ids))
    return Impact(
        told_ms=min(told_ms, default=known.asked_ms),
        groups=_in_order(groups, teams),
        transactional_ids=_in_order(ids, teams),
        gaps=known.gaps,
    )


def readers_by_topic(known: KnownGroups, topics: Collection[str]) -> dict[str, list[str]]:
    """Return the running groups that read or subscribe to each of these topics, in order."""
    found: dict[str, list[str]] = {topic: [] for topic in topics}
    for name, group in sorted(known.groups.items()):
        for topic in {*group.read_ms, *group.subscribes}.intersection(topics) if group.is_running else ():
            found[topic].append(name)
    return found


def effects_on(group: Group, troubled: Troubled) -> tuple[tuple[Effect, ...], tuple[TopicPartition, ...]]:
    """Return the effects on a group, with the offline partitions that it reads.

    A subscription counts for every partition of its topic, because some clients leave partitions without a leader out
    of an assignment.
    """
    lost = tuple(
        TopicPartition(topic, number)
        for topic, number in sorted(troubled.offline)
        if topic in group.subscribes or number in group.reads.get(topic, ())
    )
    effects = [Effect.CANNOT_READ] if lost else []
    coordinator = coordinator_of(CONSUMER_OFFSETS, group.group, troubled.sizes)
    if coordinator in troubled.offline:
        effects.append(Effect.NO_COORDINATOR)
    elif coordinator in troubled.refusing:  # the coordinator writes commits and new members with acks=all
        effects.append(Effect.NO_COMMITS)
    return tuple(effects), lost


def effects_in_words(effects: Iterable[Effect], lost: Iterable[TopicPartition]) -> str:
    """Return the effects as a predicate: cannot read orders-1, and can neither join nor commit."""
    reads = f"{Effect.CANNOT_READ.value} {joined([str(tp) for tp in lost])}"
    return ", and ".join(reads if effect is Effect.CANNOT_READ else effect.value for effect in effects)


class _OfPartition(Protocol):
    """A row of a partition, or its change in an imagined cluster."""

    @property
    def topic(self) -> str: ...
    @property
    def partition(self) -> PartitionId: ...
    @property
    def problem(self) -> str | None: ...


def troubled_in(partitions: Iterable[_OfPartition], sizes: Mapping[str, int]) -> Troubled:
    """Return the troubled ones among these partitions."""
    return _troubled([((each.topic, each.partition), each.problem) for each in partitions], sizes)


def troubled_in_context(context: Context) -> Troubled:
    """Return the troubled partitions of a cluster with all its topics."""
    by_problem = [
        ((name, number), partition.problem.value)
        for name, topic in context.topics
        for number, partition in topic.partitions.items()
        if partition.problem is not None
    ]
    return _troubled(by_problem, sizes_in(context))


def sizes_in(context: Context) -> dict[str, int]:
    """Return the number of partitions of each internal topic."""
    found = {name: context.topics.get(name) for name in _INTERNAL}
    return {name: len(topic.partitions) for name, topic in found.items() if topic is not None}


def _troubled(by_problem: Collection[tuple[tuple[str, PartitionId], str | None]], sizes: Mapping[str, int]) -> Troubled:
    return Troubled(
        frozenset(name for name, problem in by_problem if problem in UNUSABLE_WORDS),
        frozenset(name for name, problem in by_problem if problem == Problem.UNDER_MIN_ISR.value),
        dict(sizes),
    )


def _hit(group: Group, troubled: Troubled, teams: Teams) -> Hit | None:
    effects, lost = effects_on(group, troubled)
    if not effects:
        return None
    return Hit(group.group, teams.team_of(group.group), effects, effects_in_words(effects, lost))


def _hit_transactions(name: str, troubled: Troubled, teams: Teams) -> Hit | None:
    if coordinator_of(TRANSACTION_STATE, name, troubled.sizes) not in troubled.offline | troubled.refusing:
        return None
    return Hit(name, teams.team_of(name), (Effect.NO_TRANSACTIONS,), Effect.NO_TRANSACTIONS.value)


def _names_by_team(hits: Iterable[Hit]) -> dict[Team | None, list[str]]:
    by_team: dict[Team | None, list[str]] = {}
    for hit in hits:
        by_team.setdefault(hit.team, []).append(hit.name)
    return by_team


def _in_order(hits: list[Hit], teams: Teams) -> tuple[Hit, ...]:
    by_name = {hit.name: hit for hit in hits}
    return tuple(by_name[name] for names in teams.teams_of(sorted(by_name)).values() for name in names)


def answered_ago(told_ms: int, now_ms: int) -> str:
    """Return the age of brokers' answers in half a sentence."""
    return f"as brokers answered {age(told_ms, now_ms)} ago"


def readers_in_words(names: Collection[str], clients: Clients) -> str:
    """Return known groups as an object: 2 groups of team payments (a and b)."""
    return joined(list(_by_team("group", clients.teams.teams_of(names))))


def readers_as_of(names: Collection[str], clients: Clients, now_ms: int) -> str:
    """Return known groups with the age of the oldest answer about them."""
    told_ms = min(clients.known.groups[name].seen_ms for name in names)
    return f"{readers_in_words(names, clients)}, {answered_ago(told_ms, now_ms)}"


def _by_team(noun: str, by_team: Mapping[Team | None, list[str]]) -> Iterator[str]:
    for team, names in by_team.items():
        of_team = f" of {named([team])}" if team is not None else ""
        yield f"{counted(len(names), noun)}{of_team} ({joined(names, most=_NAMED)})"
