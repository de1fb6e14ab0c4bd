"""Lifecycle of alerts, which open, change and resolve by conditions and occurrences.

Alerts are judged at heartbeats, and at once when brokers come or go or partitions become unusable. Many groups of
partitions slow this down (`may_judge_again`).
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from typing import Final, NamedTuple

import msgspec

from controller.alerts.affected import affected_by_incident
from controller.alerts.broker_conditions import conditions_of_brokers
from controller.alerts.conditions import UNSENT_MS, Condition, maintained
from controller.alerts.controller_conditions import MINUTE_MS, conditions_of_controller
from controller.alerts.ensemble_conditions import (
    GROUP as GROUP_OF_ZOOKEEPER,
    conditions_of_ensemble,
    conditions_of_left_sessions,
    until_cause_is_known_ms,
)
from controller.alerts.incidents import brokers_away, follow_incidents, group_of, keep_told_numbers, moved_on
from controller.alerts.migration_conditions import conditions_of_migration, stands_still
from controller.alerts.occurrences import THE_CLUSTER, forget_old, id_of
from controller.alerts.partition_conditions import conditions_of_partitions
from controller.alerts.topic_conditions import conditions_of_settings, conditions_of_topics
from controller.contract.alert_row import AlertRow, Severity
from controller.contract.ids import BrokerId
from controller.contract.znode_table import Place
from controller.model.alert_state import ElectionPace, Occurrence, OpenAlert
from controller.model.context import BOOTSTRAPPING, FOLLOWING, Header
from controller.model.mutable_state import MutableState
from controller.model.published_rows import PublishedRows
from controller.says.alert_kinds import kinds as kinds
from controller.says.alert_kinds.kinds import ALERT_KINDS, AlertKind
from controller.says.remedies.remedy import Advice
from controller.view.advice import advice_for
from controller.view.ensemble import ensemble_in_words
from controller.view.flawed_znodes import flawed_znodes
from wording.sentences import capital, in_brackets
from wording.times import duration

_NOT_SHOWN: Final = "KRaft leads and no longer writes to ZooKeeper, which cannot show whether the problem lasts"

_READ_AGAIN: Final = "a complete read has arrived"

_UNUSABLE: Final = (kinds.PARTITIONS_OFFLINE, kinds.UNDER_MIN_ISR)
_OF_REPLICAS: Final = (*_UNUSABLE, kinds.UNDER_REPLICATED)

OPEN, UNKNOWN, RESOLVED = "open", "unknown", "resolved"

# Least time between two updates of an alert whose counts keep changing.
_UPDATED_AGAIN_MS: Final = 5_000

# Each news of an alert is one more alert to Alertmanager. Brokers that come and go could bring any number.
_NEWS_TOLD: Final = 20

# Judging takes up to 40 µs for each group of partitions, or 0.75 s for the 18,841 groups of 100 brokers that were away.
# The first hundred groups never wait. Each five more wait a millisecond, so that judging takes at most a fifth of the
# time at writes, and two fifths at heartbeats.
_NEVER_WAIT: Final = 100
_WAIT_A_MS: Final = 5


def may_judge_again(header: Header, *, at_heartbeat: bool) -> bool:
    """Return whether alerts are judged for a changed group of partitions, or at a heartbeat.

    Each write of a takeover can add or remove a group. Without a pause, n writes would judge n groups each. A heartbeat
    waits half as long, so that it is never passed over for writes. With one each second, it waits beyond 10,000 groups.
    """
    pause_ms = (len(header.tally.issues) - _NEVER_WAIT) // (_WAIT_A_MS * (1 + at_heartbeat))
    return header.time_ms - header.alerts.judged_ms >= pause_ms


def judge(state: MutableState, rows: PublishedRows) -> None:
    """Open, update and resolve alerts by the present conditions. An unseen alert becomes unknown, not resolved."""
    header = state.header
    header.alerts.judged_ms = header.time_ms
    header.alerts.recent_elections = _pace(header)
    forget_old(header)
    blind = _is_blind(header)
    sees_cluster = header.phase is FOLLOWING and not blind
    conditions = {condition.id: condition for condition in _conditions(state, sees_cluster=sees_cluster)}
    replaced = dict(_replaced(header, conditions))
    suspected_ms = {key: header.alerts.suspected_ms.get(key, header.time_ms) for key in conditions}
    if suspected_ms != header.alerts.suspected_ms:
        header.alerts.suspected_ms = suspected_ms
    for condition in conditions.values():
        _publish(header, rows, condition)
    keep_told_numbers(header)
    for alert_id, alert in list(header.alerts.open.items()):
        if alert_id in conditions:
            continue
        if sees_cluster or ALERT_KINDS[alert.kind].of_replica:
            ending = f"it is part of {replaced[alert_id]} now" if alert_id in replaced else alert.ending
            _resolve(header, rows, alert_id, alert, _NOT_SHOWN if stands_still(header) else ending)
        elif blind and not alert.unknown:
            rows.effects.append(_row(header, rows, alert_id, alert, UNKNOWN, f"not visible now. Before: {alert.cause}"))
            header.alerts.open = {**header.alerts.open, alert_id: msgspec.structs.replace(alert, unknown=True)}


def _replaced(header: Header, conditions: Mapping[str, Condition]) -> Iterator[tuple[str, str]]:
    """Yield ids of alerts with the ids of their successors, which are of another kind or of a newer incident."""
    for condition in conditions.values():
        for kind in condition.replaces:
            yield id_of(kind, condition.subject), condition.id
    for name, newest in moved_on(header).items():
        in_newest = (id_of(kind, newest) for kind in (*_OF_REPLICAS, kinds.BROKER_CRASHED, kinds.BROKER_SHUT_DOWN))
        taken_in = next((alert_id for alert_id in in_newest if alert_id in conditions), None)
        if taken_in is not None:
            yield from ((id_of(kind, name), taken_in) for kind in _OF_REPLICAS)


def resolve_all(header: Header, rows: PublishedRows, ending: str) -> None:
    """Resolve every open alert for this reason."""
    for alert_id, alert in list(header.alerts.open.items()):
        _resolve(header, rows, alert_id, alert, ending)


def _conditions(state: MutableState, *, sees_cluster: bool) -> Iterator[Condition]:
    header, paged = state.header, set[str]()
    if sees_cluster and stands_still(header):
        yield from conditions_of_migration(header)
    elif sees_cluster:
        away = brokers_away(header)
        follow_incidents(header, away)
        by_incident = tuple(affected_by_incident(header))
        of_partitions = list(conditions_of_partitions(header, by_incident))
        # The incidents that page already, because clients cannot use partitions, or not with acks=all.
        paged = {found.subject for found in of_partitions if found.kind in _UNUSABLE and found.severity is None}
        yield from of_partitions
        yield from conditions_of_brokers(header, away, by_incident, paged, state.count_hosted)
        yield from conditions_of_controller(header)
        yield from conditions_of_topics(header)
        yield from conditions_of_settings(header, state.topic_exists)
        yield from conditions_of_left_sessions(header)
        yield from conditions_of_migration(header)
    for condition in _occurred(header, paged):
        if sees_cluster or condition.kind.of_replica:
            yield condition
    yield from conditions_of_ensemble(header)
    yield from _conditions_of_replica(header)


def _is_blind(header: Header) -> bool:
    """Return whether the state is too old to be trusted."""
    patience_ms = kinds.REPLICA_DISCONNECTED.patience_ms
    lost = header.feed.disconnected_ms > 0 and header.time_ms - header.feed.disconnected_ms >= patience_ms
    return lost or header.phase is BOOTSTRAPPING


def _pace(header: Header) -> ElectionPace:
    pace, total = header.alerts.recent_elections, header.elections
    if header.time_ms - pace.since_ms < MINUTE_MS:
        return pace
    return ElectionPace(header.time_ms, total, total - pace.total if pace.since_ms else 0)


def _conditions_of_replica(header: Header) -> Iterator[Condition]:
    if header.feed.disconnected_ms:
        yield Condition(
            kind=kinds.REPLICA_DISCONNECTED,
            group=GROUP_OF_ZOOKEEPER,  # so that one message has the lost ensemble and the lost session
            patience_ms=until_cause_is_known_ms(header),
            cause=f"`kontrast watch` has lost ZooKeeper (session {header.feed.session}): Kontrast shows this cluster "
            "as it was before. Its other alerts are unknown",
            ending="`kontrast watch` has ZooKeeper again",
            since_ms=header.feed.disconnected_ms,
            evidence=tuple(filter(None, (ensemble_in_words(header),))),
        )
    if header.feed.quarantined:
        yield Condition(
            kind=kinds.CLUSTER_QUARANTINED,
            group="replica",
            cause="Kontrast failed and does not follow this cluster until the next complete read. "
            f"{capital(header.feed.quarantined)}",
            ending=_READ_AGAIN,
        )
    if header.feed.refused is not None and header.feed.refused.alerts:
        yield Condition(
            kind=kinds.OLDER_GENERATION,
            group="replica",
            cause=f"Kontrast refuses a `kontrast watch` of generation {header.feed.refused.generation}, because it has "
            f"followed generation {header.position.generation}: two run, or a clock was set back",
            ending="the older `kontrast watch` has ended, or Kontrast follows a newer one",
        )
    if header.feed.lacks_records:
        yield Condition(
            kind=kinds.REPLICA_LACKS_RECORDS,
            group="replica",
            cause="records of `kontrast watch` were lost on their way: Kontrast does not follow this cluster until the "
            "next complete read",
            ending=_READ_AGAIN,
        )


def _occurred(header: Header, paged: Collection[str]) -> Iterator[Condition]:
    for alert_id, occurrence in header.alerts.occurrences.items():
        kind, group, before = ALERT_KINDS[occurrence.kind], occurrence.kind, header.alerts.open.get(alert_id)
        if occurrence.broker is not None:
            group = group_of(occurrence.broker, header)
        past = f"it did not happen again for {duration(kind.lasts_ms)}"
        # A page of the incident has the cause, so the failure itself does not page beside it or after it.
        is_told = before.severity is Severity.WARN if before else group in paged
        yield Condition(
            kind=kind,
            subject=occurrence.subject,
            group=group,
            severity=Severity.WARN if kind is kinds.LOG_DIR_FAILED and is_told else None,
            cause=_sentence_of(occurrence, kind),
            ending=f"{kind.ends_early}, or {past}" if kind.ends_early else past,
            since_ms=occurrence.since_ms,
            evidence=occurrence.evidence if occurrence.concerned <= 1 else (occurrence.cause, *occurrence.evidence),
            partitions=occurrence.concerned,
            examples=occurrence.about,
            broker=occurrence.broker,
            advice=_mend_of(occurrence, header) if kind is kinds.ZNODE_REFUSED else None,
        )


def _mend_of(occurrence: Occurrence, header: Header) -> Advice:
    """Return the step for the first refused znode, the one that ends brokers or controllers if there is one."""
    found = [each for each in flawed_znodes(header) if each.path in occurrence.about]
    first = min(found, key=lambda each: not each.is_deadly, default=None)
    if first is None:
        return Advice("Nothing is to be done, because Kafka goes on.")
    return first.advice if first.path == Place.CONTROLLER.value else Advice(first.consequence.mend)


def _sentence_of(occurrence: Occurrence, kind: AlertKind) -> str:
    """Return the sentence of an occurrence, with its number of topics or partitions if there are several."""
    count = max(1, occurrence.concerned)
    several = kind.several_of.get(occurrence.subject, kind.several).format(
        count=count, names=in_brackets(occurrence.about, count)
    )
    times = f" ({occurrence.count} times)" if occurrence.count > count else ""
    return (several if count > 1 else occurrence.cause) + times


def _publish(header: Header, rows: PublishedRows, condition: Condition) -> None:
    kind = condition.kind
    before = header.alerts.open.get(condition.id)
    since_ms = condition.since_ms if condition.since_ms is not None else header.alerts.suspected_ms[condition.id]
    patience_ms = kind.patience_ms if condition.patience_ms is None else condition.patience_ms
    if before is None and header.time_ms - since_ms < patience_ms:
        return
    now = _opened(condition, before, since_ms, header, may_have_news=rows.shown.gauges)
    if before is not None and not (
        _is_another_page(before, now)
        or (rows.shown.gauges and _says_more(before, now))
        or _has_stale_times(before, header)
    ):
        return
    header.alerts.open = {**header.alerts.open, condition.id: now}
    row = _row(header, rows, condition.id, now, OPEN, condition.cause)
    rows.effects.append(
        msgspec.structs.replace(
            row,
            expected=condition.expected or kind.expected,
            action=advice_for(condition.advice or kind.advice, header, condition.named or condition.brokers),
            evidence=condition.evidence,
            examples=condition.examples,
        )
    )


class _Told(NamedTuple):
    """Facts about an alert that a pager already knows."""

    damage: tuple[str, ...]
    next_step: str
    rank: int
    news: tuple[str, ...] = ()


def _opened(
    condition: Condition, before: OpenAlert | None, since_ms: int, header: Header, *, may_have_news: bool
) -> OpenAlert:
    severity = Severity.INFO if _is_held_back(condition, header) else condition.severity or condition.kind.severity
    return OpenAlert(
        kind=condition.kind.name,
        subject=condition.about or condition.subject,
        group=condition.group,
        severity=severity,
        since_ms=min(since_ms, before.since_ms) if before else since_ms,
        published_ms=header.time_ms,
        cause=condition.cause,
        ending=condition.ending,
        partitions=condition.partitions,
        broker=condition.broker,
        has_examples=bool(condition.examples),
        brokers=_brokers(condition, before),
        opened_ms=before.opened_ms if before else header.time_ms,
        **_told(condition, before, severity, header, may_have_news=may_have_news)._asdict(),
    )


def _told(
    condition: Condition, before: OpenAlert | None, severity: Severity, header: Header, *, may_have_news: bool
) -> _Told:
    """Return the damage and the next step that were published, with news of changes since the alert was sent.

    An earlier change is in the first message. Later only heartbeats bring news, just as only they change sentences.
    """
    is_first_page = before is not None and before.severity is Severity.INFO and severity is not Severity.INFO
    if before is None or is_first_page or _is_unsent(before, header.time_ms):
        return _Told(tuple(condition.damage), condition.next_step, condition.rank)
    told = _Told(before.damage, before.next_step, before.rank, before.news)
    more_important = condition.rank < before.rank
    further = tuple(kind for kind in condition.damage if more_important or kind not in before.damage)
    other_step = condition.next_step if condition.next_step != before.next_step else ""
    is_early = not may_have_news or header.time_ms - before.published_ms < _UPDATED_AGAIN_MS
    if is_early or not (further or other_step) or len(before.news) == _NEWS_TOLD:
        return told
    said = [*(condition.damage[kind] for kind in further), *([f"Next: {other_step}"] if other_step else [])]
    damage = tuple(dict.fromkeys((*before.damage, *further)))
    rank = min(before.rank, condition.rank)
    return _Told(damage, other_step or before.next_step, rank, (*before.news, ". ".join(said)))


def _brokers(condition: Condition, before: OpenAlert | None) -> tuple[BrokerId, ...]:
    """Return the alert's present and earlier brokers, because a pager needs a new message only if a broker joins."""
    now = condition.brokers or (() if condition.broker is None else (condition.broker,))
    return tuple(sorted({*now, *(before.brokers if before else ())}))


def _is_held_back(condition: Condition, header: Header) -> bool:
    """Return whether a maintenance window of its brokers, or of the whole cluster, covers the condition."""
    brokers = condition.brokers or (condition.broker,)
    return not condition.kind.of_replica and all(maintained(broker, header) is not None for broker in brokers)


def _is_another_page(before: OpenAlert, now: OpenAlert) -> bool:
    """Return whether a pager would get another message, for another severity or broker, for news, or if known again.

    A changed next step counts too, because the first message has it only if its row is published at once.
    """
    moves = before.severity is not now.severity or before.brokers != now.brokers
    told_before, told = (before.damage, before.next_step, before.news), (now.damage, now.next_step, now.news)
    return before.unknown or moves or told_before != told


def _says_more(before: OpenAlert, now: OpenAlert) -> bool:
    """Return whether a changed sentence is published, at once while the alert is unsent, and at intervals later.

    Only heartbeats check this, because elections after a broker's return take milliseconds.
    """
    named_first = now.has_examples and not before.has_examples
    changed = named_first or (before.cause, before.partitions) != (now.cause, now.partitions)
    is_due = _is_unsent(before, now.published_ms) or now.published_ms - before.published_ms >= _UPDATED_AGAIN_MS
    return changed and is_due


def _is_unsent(alert: OpenAlert, now_ms: int) -> bool:
    """Return whether a pager cannot have received the alert's first message yet."""
    return now_ms - alert.opened_ms < UNSENT_MS


def _has_stale_times(before: OpenAlert, header: Header) -> bool:
    """Return whether the wall clock was set after the alert's last row, whose times are therefore wrong."""
    stepped = header.alerts.occurrences.get(kinds.CLOCK_STEPPED.name)
    return stepped is not None and before.published_ms < stepped.last_ms


def _resolve(header: Header, rows: PublishedRows, alert_id: str, alert: OpenAlert, ending: str) -> None:
    rows.effects.append(_row(header, rows, alert_id, alert, RESOLVED, ending))
    header.alerts.open = {key: other for key, other in header.alerts.open.items() if key != alert_id}


def _row(header: Header, rows: PublishedRows, alert_id: str, alert: OpenAlert, state: str, cause: str) -> AlertRow:
    cluster = header.cluster
    return AlertRow(
        *rows.stamp(),
        id=alert_id,
        alert=alert.kind,
        state=state,
        severity=alert.severity,
        news=alert.news,
        subject=f"cluster {cluster}" if alert.subject == THE_CLUSTER else alert.subject,
        group=alert.group,
        since_ms=alert.since_ms,
        cause=cause,
        partitions=alert.partitions,
        broker=alert.broker,
        brokers=alert.brokers,
    )
