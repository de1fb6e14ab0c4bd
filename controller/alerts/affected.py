"""The partitions that an incident affects: counted by trouble from the groups of the header, and put into words.

A count is exact; names are a few examples. What excuses a group (a maintenance, a shutdown in order) is kept apart, so
that an outage behind a planned restart is still seen.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from typing import Final

import msgspec

from controller.alerts.conditions import counted, either, excuse_of, explanation, plural
from controller.alerts.incidents import causes, incident_by_broker
from controller.derived.partition_issues import OFFLINE_ISSUES, PartitionIssue, parse_group
from controller.model.alert_state import EXAMPLES_NAMED, Incident
from controller.model.context import Header
from controller.model.tally import IssueGroup

_NAMED_IN_A_SENTENCE: Final = 2
_TOPICS_IN_A_SENTENCE: Final = 3
_BROKERS_IN_A_SENTENCE: Final = 10
_RETURNS_IN_A_SENTENCE: Final = 3

_WAITING: Final = (PartitionIssue.ELECTION_OWED, PartitionIssue.ELECTION_DUE)


class Group(msgspec.Struct, frozen=True):
    """Partitions with one trouble and one set of brokers that is its cause; `excuse`: why nobody is to be woken."""

    trouble: PartitionIssue
    brokers: tuple[int, ...]
    others: tuple[int, ...]
    count: int
    since_ms: int
    examples: tuple[str, ...]
    excuse: str | None


def read_group(key: str, group: IssueGroup, header: Header) -> Group:
    """A group of the header with what its key says."""
    trouble, brokers, others = parse_group(key)
    in_failed_dirs = trouble is PartitionIssue.OFFLINE and header.brokers.keys() >= set(brokers)
    excuse = None if in_failed_dirs else explanation(brokers, header)
    return Group(trouble, brokers, others, group.count, group.since_ms, group.examples, excuse)


class Affected(msgspec.Struct, frozen=True):
    """The partitions of some groups together."""

    groups: tuple[Group, ...]

    @property
    def count(self) -> int:
        """How many there are."""
        return sum(group.count for group in self.groups)

    @property
    def partitions(self) -> str:
        """How many there are, in words."""
        return counted(self.count, "partition")

    @property
    def verb(self) -> str:
        """The verb that goes with their number."""
        return plural(self.count, "has", "have")

    @property
    def since_ms(self) -> int:
        """When the first of them came into this."""
        return min(group.since_ms for group in self.groups)

    @property
    def brokers(self) -> tuple[int, ...]:
        """The brokers that are the cause, in order."""
        return tuple(sorted({broker for group in self.groups for broker in group.brokers}))

    @property
    def others(self) -> tuple[int, ...]:
        """The other brokers of the groups, in order."""
        return tuple(sorted({broker for group in self.groups for broker in group.others}))

    @property
    def examples(self) -> tuple[str, ...]:
        """Some of them by name, one of each group before the second of any."""
        turns = range(max((len(group.examples) for group in self.groups), default=0))
        named = [group.examples[tx] for tx in turns for group in self.groups if tx < len(group.examples)]
        return tuple(dict.fromkeys(named))[:EXAMPLES_NAMED]

    @property
    def excuse(self) -> str | None:
        """Why nobody is to be woken for any of them; None where one group has no excuse."""
        return excuse_of(group.excuse for group in self.groups)

    def of(self, *issues: PartitionIssue) -> Affected:
        """Those with one of these troubles."""
        return Affected(tuple(group for group in self.groups if group.trouble in issues))

    def unexcused(self) -> Affected:
        """Those that nothing excuses; all of them where everything is excused."""
        left = tuple(group for group in self.groups if group.excuse is None)
        return Affected(left) if left else self


def affected_by_incident(header: Header) -> Iterator[tuple[Incident | None, Affected]]:
    """What each incident affects, and at last what no broker's absence explains."""
    incidents = incident_by_broker(header.alerts.incidents)
    groups: dict[str | None, list[Group]] = {}
    for key, group in header.tally.issues.items():
        read = read_group(key, group, header)
        why = causes(read.trouble, read.brokers, header)
        incident = incidents[why[0]] if why else None
        groups.setdefault(incident.name if incident else None, []).append(read)
    for incident in header.alerts.incidents:
        if incident.name in groups:
            yield incident, together(groups[incident.name])
    if None in groups:
        yield None, together(groups[None])


def names(examples: Collection[str], count: int) -> str:
    """Two examples in brackets, with dots where there are more."""
    shown = list(examples)[:_NAMED_IN_A_SENTENCE]
    more = ", …" if count > len(shown) else ""
    return f" ({', '.join(shown)}{more})" if shown else ""


def listed(brokers: Collection[int]) -> str:
    """Brokers in a sentence: broker 3, brokers 1 and 3, 12 brokers (1, 2, 3, …); no broker where there is none."""
    shown = [str(broker) for broker in sorted(brokers)]
    if not shown:
        return "no broker"
    if len(shown) == 1:
        return f"broker {shown[0]}"
    if len(shown) <= _BROKERS_IN_A_SENTENCE:
        return f"brokers {', '.join(shown[:-1])} and {shown[-1]}"
    return f"{len(shown)} brokers ({', '.join(shown[:_BROKERS_IN_A_SENTENCE])}, …)"


def where_they_are(brokers: Collection[int], header: Header) -> str:
    """Which of the brokers are away and which lag: brokers 1 and 3 are away, broker 4 lags."""
    away = [broker for broker in brokers if broker not in header.brokers]
    live = [broker for broker in brokers if broker in header.brokers]
    said = [f"{listed(away)} {plural(len(away), 'is', 'are')} away"] if away else []
    return ", ".join([*said, f"{listed(live)} {plural(len(live), 'lags', 'lag')} behind"] if live else said)


def worst_topics(affected: Affected, header: Header) -> str:
    """The topics with most offline partitions, where that says more than the examples do."""
    worst = sorted(header.tally.offline_by_topic.items(), key=lambda item: (-item[1], item[0]))[:_TOPICS_IN_A_SENTENCE]
    if len(worst) <= 1 or worst[0][1] == 1 or affected.count <= _NAMED_IN_A_SENTENCE:
        return ""
    return "; most in " + ", ".join(f"{topic} ({count})" for topic, count in worst)


def returns(affected: Affected, header: Header) -> str:
    """What ends it: the brokers whose return brings back most, where any broker of a group brings back all of it."""
    if not affected.brokers:
        return "; no replica is in sync: only an unclean election makes one leader"
    away = [(frozenset(group.brokers).difference(header.brokers), group.count) for group in affected.groups]
    said = _returning([(brokers, count) for brokers, count in away if brokers])
    on_live = Affected(
        tuple(group for group in affected.groups if group.brokers and header.brokers.keys() >= set(group.brokers))
    )
    if on_live.count:
        which = "" if on_live.count == affected.count else f"{on_live.count} "
        said += f"; {which}in sync only in failed log directories of {listed(on_live.brokers)}"
    return said


def _returning(groups: list[tuple[frozenset[int], int]]) -> str:
    if not groups:
        return ""
    enough = frozenset.intersection(*(brokers for brokers, _ in groups))
    if enough:
        return f" until broker {either(enough)} returns"
    steps = list(_best_returns(groups))
    said = [f"broker {steps[0][0]} brings back {steps[0][1]}"]
    said += [f"with {broker} {back}" for broker, back in steps[1:_RETURNS_IN_A_SENTENCE]]
    if len(steps) <= _RETURNS_IN_A_SENTENCE:
        said[-1] = f"with {steps[-1][0]} all {steps[-1][1]}"
    else:
        said.append(f"all {steps[-1][1]} need {len(steps)} brokers")
    return "; " + ", ".join(said)


def _best_returns(groups: list[tuple[frozenset[int], int]]) -> Iterator[tuple[int, int]]:
    """Brokers, each the one that brings back most of what is left, with how many are back then."""
    back = 0
    while groups:
        gains: dict[int, int] = {}
        for brokers, count in groups:
            for broker in brokers:
                gains[broker] = gains.get(broker, 0) + count
        best = min(gains, key=lambda broker: (-gains[broker], broker))
        back += gains[best]
        groups = [(brokers, count) for brokers, count in groups if best not in brokers]
        yield best, back


def toll(affected: Affected, hosted: int | None = None) -> str:
    """What partitions suffer, the worst first; `hosted`: the replicas of the one broker that is away."""
    offline, waiting = affected.of(*OFFLINE_ISSUES), affected.of(*_WAITING)
    lacking = affected.of(PartitionIssue.UNDER_REPLICATED)
    fewer = lacking.count
    if hosted is not None:  # the controller may not have written yet what they lack
        fewer = max(fewer, hosted - offline.count - waiting.count)
    parts = [f"{offline.partitions} offline{names(offline.examples, offline.count)}"] if offline.count else []
    if waiting.count:
        parts.append(f"{waiting.partitions} waiting for the controller to elect a leader")
    if fewer:
        one_each = all(len(group.brokers) == 1 for group in lacking.groups)
        how_many = str(fewer) if parts else counted(fewer, "partition")
        parts.append(f"{how_many} with {'one replica less' if one_each else 'fewer replicas'}{_of_which(affected)}")
    return ", ".join(parts)


def in_sync_only_on(count: object, alone: Affected) -> str:
    """The brokers that alone have partitions in sync: none of them may be restarted."""
    return f"{count} in sync only on {listed(alone.others)}: keep {plural(len(alone.others), 'it', 'them')} up"


def _of_which(affected: Affected) -> str:
    under, at = affected.of(PartitionIssue.UNDER_MIN_ISR).count, affected.of(PartitionIssue.AT_MIN_ISR).count
    alone = affected.of(PartitionIssue.ONE_LEFT)
    said = [f"{under} {plural(under, 'refuses', 'refuse')} acks=all"] if under else []
    said += [f"{at} will refuse acks=all with one less"] if at else []
    said += [in_sync_only_on(alone.count, alone)] if alone.count else []
    return f" ({', '.join(said)})" if said else ""


def together(groups: Iterable[Group]) -> Affected:
    """The groups as one."""
    return Affected(tuple(groups))
