"""Counts of the partitions that an incident affects, by issue, and sentences about these partitions.

Counts are exact, names are a few examples. Groups with an excuse (a maintenance, a controlled shutdown) are kept apart,
so that an outage behind a planned restart remains visible.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator
from itertools import accumulate
from operator import itemgetter
from typing import Final

import msgspec

from controller.alerts.conditions import excuse_of, explanation
from controller.alerts.incidents import causes, incident_by_broker, newest_of
from controller.contract.ids import BrokerId
from controller.model.alert_state import EXAMPLES_NAMED, Outage
from controller.model.context import Header
from controller.model.tally import IssueGroup
from controller.view.health import never_registered
from controller.view.partition_issues import LAST_ONES, LOST, OFFLINE_ISSUES, PartitionIssue, parse_group
from controller.view.returns import NextReturn, Waiting, bring_back, order_of_return
from wording.facts import Fact, down, keep_up, without_trace
from wording.sentences import capital, counted, in_brackets, listed, one_of, plural

_RETURNS_IN_A_SENTENCE: Final = 3

_ENDED_BY_ANY_RETURN: Final = (*LOST, PartitionIssue.NEVER_CREATED)
WAITING_ISSUES: Final = (PartitionIssue.ELECTION_OWED, PartitionIssue.ELECTION_DUE)


class Blamed(msgspec.Struct, frozen=True):
    """Partitions with one issue and one set of brokers that causes it. `excuse` is a reason not to page."""

    issue: PartitionIssue
    brokers: tuple[BrokerId, ...]
    others: tuple[BrokerId, ...]
    count: int
    since_ms: int
    examples: tuple[str, ...]
    excuse: str | None
    lacking: int = 1  # how many of the brokers must return before the issue ends
    internal: int = 0  # partitions of internal topics
    ranks: tuple[int, ...] = ()  # of the examples' topics

    @property
    def has_empty_isr(self) -> bool:
        """Return whether any replica brings the partitions back, and each only by an unclean election."""
        return bool(self.brokers) and self.brokers == self.others


def read_group(key: str, group: IssueGroup, header: Header) -> Blamed:
    """Decode the key of a group of the header, and look up its excuse."""
    issue, brokers, others, lacking = parse_group(key)
    count, since_ms, examples, internal, ranks = msgspec.structs.astuple(group)
    is_explained = not _in_failed_log_dirs(issue, brokers, since_ms, header)
    takes_partitions = issue in OFFLINE_ISSUES or issue is PartitionIssue.UNDER_MIN_ISR
    excuse = explanation(brokers, header, takes_partitions=takes_partitions) if is_explained else None
    return Blamed(issue, brokers, others, count, since_ms, examples, excuse, lacking, internal, ranks)


def _in_failed_log_dirs(issue: PartitionIssue, brokers: Collection[BrokerId], since_ms: int, header: Header) -> bool:
    """Return whether the partitions went offline while their brokers were live, which no later shutdown explains."""
    if issue not in LOST:
        return False
    departures, away = header.departures.last, [broker for broker in brokers if broker not in header.brokers]
    return all(broker in departures and since_ms < departures[broker].time_ms for broker in away)


class Affected(msgspec.Struct, frozen=True):
    """Partitions of several groups."""

    groups: tuple[Blamed, ...]

    @property
    def with_empty_isr(self) -> Affected:
        """Return the partitions that only an unclean election brings back, whichever replica returns."""
        return self.where(lambda group: group.has_empty_isr)

    @property
    def count(self) -> int:
        """Return the number of partitions."""
        return sum(group.count for group in self.groups)

    @property
    def partitions(self) -> str:
        """Return the number of partitions with its noun."""
        return counted(self.count, "partition")

    @property
    def since_ms(self) -> int:
        """Return the time when the first partition got the issue."""
        return min(group.since_ms for group in self.groups)

    @property
    def brokers(self) -> tuple[BrokerId, ...]:
        """Return the brokers that cause the issues, in order."""
        return tuple(sorted({broker for group in self.groups for broker in group.brokers}))

    @property
    def others(self) -> tuple[BrokerId, ...]:
        """Return the other brokers of the groups, in order."""
        return tuple(sorted({broker for group in self.groups for broker in group.others}))

    @property
    def examples(self) -> tuple[str, ...]:
        """Return the names of some partitions, the most important topics first.

        Among equally important topics, each group gives one name before any group gives a second.
        """
        return tuple(self.ranked)[:EXAMPLES_NAMED]

    @property
    def ranked(self) -> dict[str, int]:
        """Return the examples with the ranks of their topics, the most important first."""
        rounds = range(max((len(group.examples) for group in self.groups), default=0))
        found = [
            (group.ranks[at], group.examples[at]) for at in rounds for group in self.groups if at < len(group.examples)
        ]
        return {name: rank for rank, name in sorted(found, key=itemgetter(0))}

    @property
    def rank(self) -> int:
        """Return the rank of the most important topic, the smallest of all."""
        return min(self.ranked.values(), default=0)

    @property
    def excuse(self) -> str | None:
        """Return why these partitions shall not page, None if any group has no excuse."""
        return excuse_of(group.excuse for group in self.groups)

    def of(self, *issues: PartitionIssue) -> Affected:
        """Return the partitions with one of these issues."""
        return Affected(tuple(group for group in self.groups if group.issue in issues))

    def where(self, condition: Callable[[Blamed], bool]) -> Affected:
        """Return the partitions of the groups that meet the condition."""
        return Affected(tuple(filter(condition, self.groups)))

    def unexcused(self) -> Affected:
        """Return the partitions without an excuse, or all partitions if every group has an excuse."""
        left = self.where(lambda group: group.excuse is None)
        return left if left.groups else self


def affected_by_incident(header: Header) -> Iterator[tuple[Outage | None, Affected]]:
    """Yield the partitions by incident. The last, with None, are partitions that no broker's absence explains."""
    incidents = incident_by_broker(header.alerts.incidents)
    groups: dict[str | None, list[Blamed]] = {}
    for key, group in header.tally.issues.items():
        read = read_group(key, group, header)
        incident = newest_of(causes(read.issue, read.brokers, header), incidents, header)
        groups.setdefault(incident.name if incident else None, []).append(read)
    for incident in header.alerts.incidents:
        if incident.name in groups:
            yield incident, Affected(tuple(groups[incident.name]))
    if None in groups:
        yield None, Affected(tuple(groups[None]))


def where_they_are(brokers: Collection[BrokerId], header: Header) -> str:
    """Return a clause such as "brokers 1 and 3 are down, broker 4 lags behind"."""
    gone = [broker for broker in brokers if broker not in header.brokers]
    live = [broker for broker in brokers if broker in header.brokers]
    parts = [down(gone)] if gone else []
    return ", ".join([*parts, listed(live, "lags behind")] if live else parts)


def _order_of(groups: Iterable[Blamed], header: Header) -> Iterator[NextReturn]:
    """Yield the absent brokers whose return helps clients, first the broker that restores most."""
    waiting = [
        Waiting(
            frozenset(group.brokers), group.lacking, group.count, group.issue in _ENDED_BY_ANY_RETURN, group.internal
        )
        for group in groups
    ]
    away = {broker for group in waiting for broker in group.brokers}.difference(header.brokers)
    return order_of_return(waiting, away)


def next_step(groups: Iterable[Blamed], header: Header) -> str:
    """Return the broker to start first, as a clause, empty if no broker's return helps."""
    first = next(_order_of(groups, header), None)
    return "" if first is None else bring_back((first.broker,), header, briefly=True)


def returns(lost: Affected, refusing: Affected, header: Header) -> str:
    """Return the brokers whose return brings lost partitions back, most first, as a clause or sentences.

    If two brokers bring back equally many, the partitions that reject acks=all decide.
    """
    if not lost.brokers:
        return ". No in-sync broker is assigned, so no return and no failover elects a leader"
    if all(never_registered(header, broker) for broker in lost.brokers):
        without = without_trace(lost.brokers)
        return f". {capital(without)}"
    away = [frozenset(group.brokers).difference(header.brokers) for group in lost.groups]
    enough = frozenset.intersection(*filter(None, away)) if any(away) else frozenset()
    said = (
        f" until {one_of(enough)} returns" if enough else _in_order(_order_of((*lost.groups, *refusing.groups), header))
    )
    on_live = lost.where(
        lambda group: bool(group.brokers) and not group.has_empty_isr and header.brokers.keys() >= set(group.brokers)
    )
    empty = lost.with_empty_isr.count
    if empty:
        of = "" if empty == lost.count else f" of {empty}"
        isr_is = plural(empty, "ISR", "ISRs") + of + plural(empty, " is", " are")
        said += f". The {isr_is} empty, so only an unclean election makes a replica leader"
    if on_live.count:
        all_are = on_live.count == lost.count
        which = "Replicas" if all_are else f"{on_live.count} {plural(on_live.count, 'has', 'have')} replicas"
        verb = "are" if all_are else "that are"
        said += f". {which} {verb} in sync only in failed log directories of {listed(on_live.brokers)}"
    return said


def _in_order(order: Iterable[NextReturn]) -> str:
    """Return the first brokers with the number of partitions online by then, empty if no return brings any back."""
    helpful = [each for each in order if each.offline]
    by_then = list(accumulate(each.offline for each in helpful))
    steps = [(each.broker, back) for each, back in zip(helpful, by_then, strict=True)]
    if not steps:
        return ""
    (first, restored), rest = steps[0], steps[1:]
    said = [f"Broker {first} brings back {restored}"]
    said += [f"then broker {broker} makes it {back}" for broker, back in rest[: _RETURNS_IN_A_SENTENCE - 1]]
    if len(steps) <= _RETURNS_IN_A_SENTENCE:
        said[-1] = f"then broker {steps[-1][0]} makes it all {steps[-1][1]}"
    else:
        said.append(f"all {steps[-1][1]} need {len(steps)} brokers")
    return ". " + ", ".join(said)


def damage_in_words(affected: Affected, header: Header, fewer: int | None = None) -> str:
    """Return a clause with the partitions' damage, the worst first, and a sentence with the brokers that must stay up.

    `fewer` is the number of usable partitions that lack replicas, by default that of these groups.
    """
    fewer = affected.of(PartitionIssue.UNDER_REPLICATED).count if fewer is None else fewer
    offline, waiting = affected.of(*OFFLINE_ISSUES), affected.of(*WAITING_ISSUES)
    named = in_brackets(offline.examples, offline.count)
    parts = [f"{Fact.OFFLINE.counted(offline.count)}{named}"] if offline.count else []
    for fact, count in ((Fact.WITHOUT_LEADER, waiting.count), (Fact.UNDER_REPLICATED, fewer)):
        if count:
            parts.append(f"{count:,} {fact.predicate(count)}" if parts else fact.of(count))
    return ", ".join(parts) + (f"{_of_which(affected)}{must_stay_up(affected, header)}" if fewer else "")


def must_stay_up(affected: Affected, header: Header) -> str:
    """Return sentences with the brokers that have the only in-sync replica of a partition, and must stay up.

    Where an unclean election is allowed and a lagging replica is live, the loss of such a broker loses records at once.
    """
    alone = affected.of(*LAST_ONES)
    if not alone.count:
        return ""
    unclean = alone if header.allows_unclean_election else alone.of(PartitionIssue.ONE_LEFT_UNCLEAN)
    is_urgent = not header.brokers.keys().isdisjoint(unclean.brokers)
    its = plural(len(unclean.others), "Its", "Their")
    loses = f". {its} loss loses records by an unclean election. {FORBID_FIRST}" if is_urgent else ""
    return f". {keep_up(alone.others, alone.count)}{loses}"


FORBID_FIRST: Final = "Set unclean.leader.election.enable=false first"


def _of_which(affected: Affected) -> str:
    under, at = affected.of(PartitionIssue.UNDER_MIN_ISR).count, affected.of(PartitionIssue.AT_MIN_ISR).count
    facts = ((Fact.REJECTS_ACKS_ALL, under), (Fact.ONE_LOSS_FROM_REJECTING, at))
    said = [f"{count:,} {fact.predicate(count)}" for fact, count in facts if count]
    return f". {', '.join(said)}" if said else ""
