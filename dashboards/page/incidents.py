"""Open alerts as incidents, one card per cause, with its effect by topic and the brokers to bring back."""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import groupby
from operator import itemgetter
from typing import Final
from urllib.parse import quote

import msgspec

from controller.contract.alert_kinds import kinds
from controller.contract.alert_row import AlertRow, Severity
from controller.contract.ids import INTERNAL_TOPICS, BrokerId
from controller.contract.metadata_rows import BrokerRow
from controller.contract.problem import Problem
from controller.view.returns import Waiting, order_of_return
from dashboards.kept_rows.view import ClusterSnapshot
from dashboards.page.config import PageConfig
from dashboards.page.partition_groups import PartitionGroup
from questions.check import Finding
from questions.picture import WORST_FIRST
from questions.timeline.selection import CONTROLLER_GROUP
from wording.facts import Departure, Fact, down, keep_up
from wording.sentences import counted, event_of, first_sentence, listed, verb

_TOPICS_IN_A_CARD: Final = 6
_TOPICS_IN_A_SENTENCE: Final = 2
_RETURNS_IN_A_CARD: Final = 6
_LONGEST_NAME: Final = 48
_ENDPOINT_SCHEME: Final = "://"
_HOW_IT_LEFT: Final = {
    kinds.BROKER_CRASHED.name: Departure.CRASHED.value,
    kinds.BROKER_SHUT_DOWN.name: Departure.SHUT_DOWN.value,
    kinds.BROKER_ABSENT.name: Departure.NEVER_REGISTERED.value,
}
_UP_TO_CONTROLLER: Final = frozenset({Problem.LEADERLESS.value, Problem.ELECTION_DUE.value})


class TopicEffect(msgspec.Struct, frozen=True):
    """Partitions of a topic that clients cannot use."""

    topic: str
    of: int
    offline: int
    refusing: int  # acks=all
    says: str  # the causes


class Return(msgspec.Struct, frozen=True):
    """A broker to start, and the partitions that its return restores after the returns before it."""

    broker: BrokerId
    restores: int
    says: str
    command: str | None


class Incident(msgspec.Struct, frozen=True, kw_only=True):
    """The open alerts of one cause."""

    group: str
    severity: Severity
    event: str
    how: str  # the brokers left, empty if in several ways
    since_ms: int
    brokers: tuple[BrokerId, ...]  # that are away
    effects: tuple[TopicEffect, ...]  # the most important topic first
    more_topics: int
    unusable: int  # partitions in all topics, those that reject acks=all among them
    affected: int  # partitions that lack something, as the alerts count them
    returns: tuple[Return, ...]
    keep_up: str  # which brokers must stay, and why
    alerts: tuple[Finding, ...]  # the worst first
    runbook: str
    silence: str | None

    @property
    def effect(self) -> str:
        """Return the effect on clients as a sentence, if there is one."""
        return _sentence(self.effects, self.unusable)

    @property
    def detail(self) -> str:
        """Return the worst alert's cause without its event, which the heading has."""
        cause = self.alerts[0].cause
        return cause.removeprefix(event_of(cause)).lstrip(":. ")

    @property
    def next_step(self) -> str:
        """Return the next step for a person."""
        if self.returns and self.returns[0].restores:
            return f"Start broker {self.returns[0].broker}"
        if self.brokers:
            return f"Start {listed(self.brokers)}"
        return first_sentence(self.alerts[0].action)

    @property
    def next_restores(self) -> str:
        """Return the gain of the next step, empty without a count."""
        if not (self.returns and self.returns[0].restores):
            return ""
        return f"restores {self.returns[0].restores:,} of {counted(self.unusable, 'partition')}"


def incidents_of(
    found: ClusterSnapshot,
    findings: Iterable[tuple[AlertRow, Finding]],
    groups: Sequence[PartitionGroup],
    config: PageConfig,
) -> tuple[Incident, ...]:
    """Return the incidents, the worst first. Alerts that only inform need an effect on clients, as a shutdown has."""
    by_group: dict[str, list[tuple[AlertRow, Finding]]] = {}
    for row, finding in findings:
        by_group.setdefault(row.group, []).append((row, finding))
    every = (_incident(found, alerts, groups, config) for alerts in by_group.values())
    cards = [card for card in every if card.severity is not Severity.INFO or card.unusable]
    cards.sort(key=lambda card: (WORST_FIRST[card.severity], -card.unusable, -card.affected, card.since_ms))
    return tuple(cards)


def _incident(
    found: ClusterSnapshot,
    alerts: list[tuple[AlertRow, Finding]],
    groups: Sequence[PartitionGroup],
    config: PageConfig,
) -> Incident:
    alerts = sorted(alerts, key=lambda each: WORST_FIRST[each[0].severity])
    worst = alerts[0][0]
    away = _away(found, [row for row, _ in alerts])
    rows = [row for row, _ in alerts]
    by_controller = any(row.group == CONTROLLER_GROUP and row.severity is Severity.PAGE for row in found.open_alerts)
    hit = [group for group in groups if _is_hit(group, away, rows, by_controller=by_controller)]
    effects = tuple(_effects(hit))
    affected = max(row.partitions for row, _ in alerts)
    unusable = sum(group.count for group in hit)
    ways = {_HOW_IT_LEFT[row.alert] for row in rows if away and row.alert in _HOW_IT_LEFT}
    how = ways.pop() if len(ways) == 1 else ""
    return Incident(
        group=worst.group,
        severity=worst.severity,
        event=_event(found, rows, away),
        how=how,
        since_ms=min(row.since_ms for row, _ in alerts),
        brokers=tuple(sorted(away)),
        effects=effects[:_TOPICS_IN_A_CARD],
        more_topics=len(effects[_TOPICS_IN_A_CARD:]),
        unusable=unusable,
        affected=affected,
        returns=tuple(_returns(away, hit, affected - unusable, config))[:_RETURNS_IN_A_CARD],
        keep_up=_keep_up(found) if away else "",
        alerts=tuple(finding for _, finding in alerts),
        runbook=config.runbook(worst.alert),
        silence=None if config.alertmanager_url is None else _silence(config.alertmanager_url, worst),
    )


def _away(found: ClusterSnapshot, alerts: Iterable[AlertRow]) -> dict[BrokerId, BrokerRow | None]:
    """Return the brokers of an incident that are away."""
    rows = {row.broker: row for row in found.brokers}
    named = {
        broker
        for alert in alerts
        if alert.group != CONTROLLER_GROUP
        for broker in (*alert.brokers, alert.broker)
        if broker is not None
    }
    return {broker: rows.get(broker) for broker in named if broker not in rows or not _is_live(rows[broker])}


def _is_live(row: BrokerRow) -> bool:
    return row.registered or row.inferred


def _is_hit(
    group: PartitionGroup, away: Mapping[BrokerId, object], alerts: Sequence[AlertRow], *, by_controller: bool
) -> bool:
    """Return whether the incident causes the group's problem. `by_controller`: the controller has one."""
    if not away.keys().isdisjoint(group.needs):
        return True
    if by_controller and group.problem in _UP_TO_CONTROLLER:
        return alerts[0].group == CONTROLLER_GROUP
    names = {f"{line.topic}-{line.partition}" for line in group.partitions}
    return any(not names.isdisjoint(row.examples) for row in alerts)


def _event(found: ClusterSnapshot, alerts: Sequence[AlertRow], away: Mapping[BrokerId, BrokerRow | None]) -> str:
    if not away:
        clause = event_of(alerts[0].cause)
        begins_with_a_name = any(map(clause.startswith, alerts[0].examples))
        return clause if begins_with_a_name else clause[:1].upper() + clause[1:]
    racks = {None if row is None else row.rack for row in away.values()}
    rack = racks.pop() if len(racks) == 1 else None
    together = {row.broker for row in found.brokers if rack is not None and row.rack == rack}
    if len(away) > 1 and together == away.keys():
        return f"Rack {rack} is down"
    return (
        f"{listed(away).capitalize()} (rack {rack}) {verb(len(away), 'is down')}" if rack else down(away).capitalize()
    )


def _effects(groups: Iterable[PartitionGroup]) -> Iterator[TopicEffect]:
    by_topic: dict[str, list[PartitionGroup]] = {}
    for group in groups:
        by_topic.setdefault(group.topic, []).append(group)
    for topic, members in by_topic.items():
        refusing = sum(group.count for group in members if group.problem == Problem.UNDER_MIN_ISR.value)
        offline = sum(group.count for group in members) - refusing
        causes = " ".join(dict.fromkeys(group.says for group in members[:2])) + (" …" if len(members) > 2 else "")
        yield TopicEffect(topic, members[0].of, offline, refusing, causes)


def _sentence(effects: Sequence[TopicEffect], unusable: int) -> str:
    """Name the most important topics, and count the rest: 6 partitions of a are offline, 4 of b reject acks=all."""
    said = [
        (count, short(effect.topic), fact)
        for effect in effects[:_TOPICS_IN_A_SENTENCE]
        for count, fact in ((effect.offline, Fact.OFFLINE), (effect.refusing, Fact.REJECTS_ACKS_ALL))
        if count
    ]
    clauses: list[str] = []
    for fact, alike in ((fact, list(each)) for fact, each in groupby(said, key=itemgetter(2))):
        counts = [
            f"{counted(count, 'partition')} of {topic}" if not clauses and not at else f"{count:,} of {topic}"
            for at, (count, topic, _) in enumerate(alike)
        ]
        clauses.append(f"{' and '.join(counts)} {fact.predicate(sum(count for count, _, _ in alike))}")
    rest = unusable - sum(count for count, _, _ in said)
    if rest and clauses:
        clauses.append(f"{rest:,} of other topics {verb(rest, 'is affected')}")
    return ", ".join(clauses) + "." if clauses else ""


def short(name: str) -> str:
    """Return the name without its middle if it is too long for a sentence."""
    return name if len(name) <= _LONGEST_NAME else f"{name[: _LONGEST_NAME - 13]}…{name[-12:]}"


def _returns(
    away: Mapping[BrokerId, BrokerRow | None],
    groups: Iterable[PartitionGroup],
    lacking_replicas: int,
    config: PageConfig,
) -> Iterator[Return]:
    order = tuple(order_of_return(map(_waiting, groups), away))
    for each in order:
        command = _command(each.broker, away[each.broker], config)
        yield Return(each.broker, each.partitions, _restored(each.restored), command)
    for broker in sorted(away.keys() - {each.broker for each in order}):
        says = (
            f"{counted(lacking_replicas, 'partition', 'is')} replicated again."
            if len(away) == 1 and lacking_replicas > 0
            else ""
        )
        yield Return(broker, 0, says or "Its replicas catch up.", _command(broker, away[broker], config))


def _waiting(group: PartitionGroup) -> Waiting:
    is_offline, internal = group.problem != Problem.UNDER_MIN_ISR.value, group.topic in INTERNAL_TOPICS
    return Waiting(frozenset(group.needs), group.lacking, group.count, is_offline, group.count * internal, group.topic)


def _restored(groups: Sequence[Waiting]) -> str:
    if not groups:
        return "No partition returns yet."
    counts: dict[str, int] = {}
    for group in groups:
        counts[group.topic] = counts.get(group.topic, 0) + group.partitions
    named = [f"{count:,} of {short(topic)}" for topic, count in list(counts.items())[:_TOPICS_IN_A_SENTENCE]]
    rest = sum(list(counts.values())[_TOPICS_IN_A_SENTENCE:])
    named += [f"{rest:,} of other topics"] if rest else []
    return f"{', '.join(named)} {verb(sum(counts.values()), 'returns')}."


def _command(broker: BrokerId, row: BrokerRow | None, config: PageConfig) -> str | None:
    """Return the command that starts the broker, if its host is known. The host comes from ZooKeeper."""
    if row is None or not row.endpoints:
        return None
    host = row.endpoints[0].partition(_ENDPOINT_SCHEME)[2].rpartition(":")[0].strip("[]")
    if not host:
        return None
    return config.start_command.replace("{host}", shlex.quote(host)).replace("{broker}", str(broker))


def _keep_up(found: ClusterSnapshot) -> str:
    live = {row.broker for row in found.brokers if _is_live(row)}
    counts = {} if found.gauges is None else found.gauges.sole_in_sync_by_broker
    alone = {broker: count for broker, count in counts.items() if count and broker in live}
    if not alone:
        return ""
    return f"{keep_up(alone, sum(alone.values()))}."


def _silence(url: str, row: AlertRow) -> str:
    matchers = (
        f"{{kafka_cluster={msgspec.json.encode(row.cluster).decode()},group={msgspec.json.encode(row.group).decode()}}}"
    )
    return f"{url.rstrip('/')}/#/silences/new?filter={quote(matchers, safe='')}"
