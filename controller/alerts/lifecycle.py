"""Alerts: what a person must know of, opened once, updated when it changes, resolved.

Here belongs the life of an alert. What is the case is said in `conditions` and `happenings`, what kinds there are in
`alert_kinds`. All are judged at every heartbeat, and at once when brokers come or go or partitions cannot be used.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from typing import Final

import msgspec

from controller.alerts import kinds as kinds
from controller.alerts.affected import affected_by_incident, names
from controller.alerts.broker_conditions import conditions_of_brokers
from controller.alerts.conditions import Condition, maintained
from controller.alerts.controller_conditions import MINUTE_MS, conditions_of_controller
from controller.alerts.incidents import brokers_away, incidents_of
from controller.alerts.kinds import ALERT_KINDS, AlertKind
from controller.alerts.occurrences import THE_CLUSTER, forget_old, id_of
from controller.alerts.partition_conditions import conditions_of_partitions
from controller.contract.alert_row import AlertRow, Severity
from controller.model.alert_state import ElectionPace, Occurrence, OpenAlert
from controller.model.context import BOOTSTRAPPING, FOLLOWING, Header
from controller.model.mutable_state import MutableState

OPEN, UNKNOWN, RESOLVED = "open", "unknown", "resolved"

# An alert whose counts change all the time is updated no more often.
_UPDATED_AGAIN_MS: Final = 5_000


def judge(tx: MutableState) -> None:
    """Open, change and resolve alerts by what is the case now; what cannot be seen is unknown, and not resolved."""
    header = tx.header
    header.alerts.recent_elections = _pace(header)
    forget_old(header)
    blind = _is_blind(header)
    sees_cluster = header.phase is FOLLOWING and not blind
    cases = {case.id: case for case in _cases(header, sees_cluster=sees_cluster)}
    replaced = {id_of(kind, case.subject): case.id for case in cases.values() for kind in case.replaces}
    suspected_ms = {key: header.alerts.suspected_ms.get(key, header.time_ms) for key in cases}
    if suspected_ms != header.alerts.suspected_ms:
        header.alerts.suspected_ms = suspected_ms
    for case in cases.values():
        _tell(tx, case)
    for alert_id, alert in list(header.alerts.open.items()):
        if alert_id in cases:
            continue
        if sees_cluster or ALERT_KINDS[alert.kind].of_replica:
            ending = f"it is part of {replaced[alert_id]} now" if alert_id in replaced else alert.ending
            _resolve(tx, alert_id, alert, ending)
        elif blind and not alert.unknown:
            _lose_sight(tx, alert_id, alert)


def _cases(header: Header, *, sees_cluster: bool) -> Iterator[Condition]:
    if sees_cluster:
        away = brokers_away(header)
        _follow_incidents(header, away)
        by_incident = tuple(affected_by_incident(header))
        of_partitions = list(conditions_of_partitions(header, by_incident))
        yield from of_partitions
        yield from conditions_of_brokers(header, away, by_incident, _paged(of_partitions))
        yield from conditions_of_controller(header)
    for case in _happenings(header):
        if sees_cluster or case.kind.of_replica:
            yield case
    yield from _conditions_of_replica(header)


def _follow_incidents(header: Header, away: Collection[int]) -> None:
    incidents = incidents_of(header, away)
    if incidents != header.alerts.incidents:
        header.alerts.incidents = incidents


def _paged(of_partitions: list[Condition]) -> set[str]:
    """The incidents whose partitions page because no client can use them or none can write to them with acks=all."""
    unusable = (kinds.PARTITIONS_OFFLINE, kinds.UNDER_MIN_ISR)
    return {case.subject for case in of_partitions if case.kind in unusable and case.severity is None}


def _is_blind(header: Header) -> bool:
    """Whether what is known is too old to be believed."""
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
            group="replica",
            cause=f"`kontrast watch` has lost ZooKeeper (session {header.feed.session}): what Kontrast shows of this "
            "cluster is old, its other alerts are unknown",
            ending="`kontrast watch` has ZooKeeper again",
            since_ms=header.feed.disconnected_ms,
        )
    if header.feed.quarantined:
        yield Condition(
            kind=kinds.CLUSTER_QUARANTINED,
            group="replica",
            cause="Kontrast failed and knows nothing of this cluster until it is read again: "
            f"{header.feed.quarantined}",
            ending="a complete read has come in",
        )
    if header.feed.refused is not None and header.feed.refused.told:
        yield Condition(
            kind=kinds.OLDER_GENERATION,
            group="replica",
            cause=f"what a `kontrast watch` of generation {header.feed.refused.generation} sees is refused, for "
            f"generation {header.position.generation} was followed before: two run, or a clock was set back",
            ending="the older `kontrast watch` has ended, or a newer one is followed",
        )
    if header.feed.lacks_records:
        yield Condition(
            kind=kinds.REPLICA_LACKS_RECORDS,
            group="replica",
            cause="records of `kontrast watch` were lost on their way: nothing more is known of this cluster until it "
            "is read again",
            ending="a complete read has come in",
        )


def _happenings(header: Header) -> Iterator[Condition]:
    for happening in header.alerts.occurrences.values():
        kind = ALERT_KINDS[happening.kind]
        yield Condition(
            kind=kind,
            subject=happening.subject,
            group=kind.name if happening.broker is None else happening.subject,
            cause=_happened(happening, kind),
            ending=f"it did not happen again for {kind.lasts_ms // MINUTE_MS} min",
            since_ms=happening.since_ms,
            evidence=happening.evidence if happening.concerned <= 1 else (happening.cause, *happening.evidence),
            partitions=happening.concerned,
            examples=happening.about,
            broker=happening.broker,
        )


def _happened(happening: Occurrence, kind: AlertKind) -> str:
    """What happened, with how many it happened to where that is more than one."""
    count = max(1, happening.concerned)
    several = kind.several.format(count=count, names=names(happening.about, count))
    times = f" ({happening.count} times)" if happening.count > count else ""
    return (several if count > 1 else happening.cause) + times


def _tell(tx: MutableState, case: Condition) -> None:
    header, kind = tx.header, case.kind
    before = header.alerts.open.get(case.id)
    since_ms = case.since_ms if case.since_ms is not None else header.alerts.suspected_ms[case.id]
    patience_ms = kind.patience_ms if case.patience_ms is None else case.patience_ms
    if before is None and header.time_ms - since_ms < patience_ms:
        return
    severity = Severity.INFO if _is_held_back(case, header) else case.severity or kind.severity
    since_ms = min(since_ms, before.since_ms) if before else since_ms
    now = OpenAlert(
        case.kind.name, case.subject, case.group, severity, since_ms, header.time_ms, case.cause, case.ending,
        case.partitions, case.broker, has_examples=bool(case.examples), brokers=_brokers(case, before),
    )  # fmt: skip
    if before is not None and not (
        _is_another(before, now)
        or (tx.shows_gauges and _says_something_else(before, now))
        or _has_another_time(before, header)
    ):
        return
    header.alerts.open = {**header.alerts.open, case.id: now}
    row = _row(tx, case.id, now, OPEN, case.cause)
    tx.effects.append(
        msgspec.structs.replace(
            row,
            expected=case.expected or kind.expected,
            action=kind.action,
            evidence=case.evidence,
            examples=case.examples,
        )
    )


def _brokers(case: Condition, before: OpenAlert | None) -> tuple[int, ...]:
    """Its brokers and those that were part of it before: it becomes another alert to a pager when one joins only."""
    now = case.brokers or (() if case.broker is None else (case.broker,))
    return tuple(sorted({*now, *(before.brokers if before else ())}))


def _is_held_back(case: Condition, header: Header) -> bool:
    """Whether a maintenance of its brokers, or of the whole cluster, explains it."""
    brokers = case.brokers or (case.broker,)
    return not case.kind.of_replica and all(maintained(broker, header) is not None for broker in brokers)


def _is_another(before: OpenAlert, now: OpenAlert) -> bool:
    """Whether it is known again, or goes to other people or by another name."""
    return before.unknown or before.severity is not now.severity or before.brokers != now.brokers


def _says_something_else(before: OpenAlert, now: OpenAlert) -> bool:
    """Asked at heartbeats only: what a broker's return leaves offline until it is elected lasts some milliseconds."""
    named_first = now.has_examples and not before.has_examples
    changed = named_first or (before.cause, before.partitions) != (now.cause, now.partitions)
    return changed and now.told_ms - before.told_ms >= _UPDATED_AGAIN_MS


def _has_another_time(before: OpenAlert, header: Header) -> bool:
    """Whether the wall clock was set since the alert's last row: its beginning is to be shown by the new one."""
    stepped = header.alerts.occurrences.get(kinds.CLOCK_STEPPED.name)
    return stepped is not None and before.told_ms < stepped.last_ms


def _resolve(tx: MutableState, alert_id: str, alert: OpenAlert, ending: str) -> None:
    tx.effects.append(_row(tx, alert_id, alert, RESOLVED, ending))
    left = {key: other for key, other in tx.header.alerts.open.items() if key != alert_id}
    tx.header.alerts.open = left


def _lose_sight(tx: MutableState, alert_id: str, alert: OpenAlert) -> None:
    tx.effects.append(_row(tx, alert_id, alert, UNKNOWN, f"cannot be seen now; before: {alert.cause}"))
    unknown = msgspec.structs.replace(alert, unknown=True)
    tx.header.alerts.open = {**tx.header.alerts.open, alert_id: unknown}


def _row(tx: MutableState, alert_id: str, alert: OpenAlert, state: str, cause: str) -> AlertRow:
    cluster = tx.header.cluster
    return AlertRow(
        *tx.stamp(),
        id=alert_id,
        alert=alert.kind,
        state=state,
        severity=alert.severity,
        subject=f"cluster {cluster}" if alert.subject == THE_CLUSTER else alert.subject,
        group=alert.group,
        since_ms=alert.since_ms,
        cause=cause,
        partitions=alert.partitions,
        broker=alert.broker,
        brokers=alert.brokers,
    )
