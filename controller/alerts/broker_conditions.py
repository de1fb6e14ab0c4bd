"""Conditions of brokers, such as crashed, shut down, never seen, flapping.

Brokers of one incident that left in the same way are one condition, with the cost of their absence.
`partition_conditions` has the effect on partitions.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from typing import Final, NamedTuple

import msgspec

from controller.alerts.affected import WAITING_ISSUES, Affected, damage_in_words
from controller.alerts.conditions import UNSENT_MS, Condition, excuse_of, maintained
from controller.alerts.incidents import group_of
from controller.alerts.occurrences import id_of
from controller.contract.alert_row import Severity
from controller.contract.ids import BrokerId
from controller.model.alert_state import EXAMPLES_NAMED, Outage
from controller.model.context import Header
from controller.says.alert_kinds import kinds as kinds
from controller.says.alert_kinds.brokers import HANGS
from controller.says.alert_kinds.kinds import AlertKind
from controller.says.remedies.brokers import DELETE_REGISTRATION
from controller.says.remedies.reassignments import CANCEL_REASSIGNMENT
from controller.says.remedies.remedy import Advice
from controller.view.gauges import REASSIGNING
from controller.view.health import is_without_session, never_registered, whereabouts
from controller.view.partition_issues import LAST_ONES, OFFLINE_ISSUES, PartitionIssue, parse_group
from wording.facts import Left, unknown
from wording.sentences import capital, counted, listed, plural, verb
from wording.times import duration

_FLAPPING_DEPARTURES: Final = 3
_FLAPPING_WITHIN_MS: Final = 10 * 60_000

_NOTHING: Final = Affected(())


class _Loss(NamedTuple):
    """Brokers of an incident that are away, each with its number of replicas, and the cost of their absence."""

    incident: Outage
    missing: Mapping[BrokerId, int]
    affected: Affected
    cost: str  # in words
    examples: tuple[str, ...]  # of affected partitions


def conditions_of_brokers(
    header: Header,
    away: Mapping[BrokerId, int],
    by_incident: Iterable[tuple[Outage | None, Affected]],
    paged: Collection[str],
    count_hosted: Callable[[Collection[BrokerId]], int],
) -> Iterator[Condition]:
    """Yield brokers that are away, by incident and by how they left, and brokers that keep leaving.

    `away`: replicas by broker. `paged`: incidents whose partitions page already, so that their brokers only warn, as
    beside a new page about a broker that keeps leaving.
    `count_hosted` counts the partitions that have a replica on one of these brokers.
    """
    affected = {incident.name: found for incident, found in by_incident if incident}
    under_replicated = _under_replicated(found for _, found in by_incident)
    flapping = tuple(_flapping(header, paged))
    begins = {each.broker for each in flapping if each.severity is None and each.id not in header.alerts.open}
    for incident in header.alerts.incidents:
        missing = {broker: away[broker] for broker in incident.brokers if broker in away}
        if missing:
            found = affected.get(incident.name, _NOTHING)
            cost = damage_in_words(found, header, _lacking(header, missing, found, under_replicated))
            offline_first = (*found.of(*OFFLINE_ISSUES).examples, *found.examples)
            examples = tuple(dict.fromkeys(offline_first))[:EXAMPLES_NAMED]
            loss = _Loss(incident, missing, found, cost, examples)
            for condition in _away(header, loss, pages=incident.name not in paged and begins.isdisjoint(missing)):
                several = len(condition.brokers) > 1  # which may hold replicas of the same partitions
                count = count_hosted(condition.brokers) if several else condition.partitions
                yield msgspec.structs.replace(condition, partitions=count)
    yield from _without_session(header)
    yield from flapping


def _under_replicated(affected: Iterable[Affected]) -> Counter[BrokerId]:
    """Return the number of usable partitions that lack each broker."""
    counts = Counter[BrokerId]()
    for each in affected:
        for group in each.of(PartitionIssue.UNDER_REPLICATED).groups:
            counts.update(dict.fromkeys(group.brokers, group.count))
    return counts


def _away(header: Header, loss: _Loss, *, pages: bool) -> Iterator[Condition]:
    missing = loss.missing
    crashed = [
        broker for broker in missing if broker in header.departures.last and not header.departures.last[broker].in_order
    ]
    crashed = [broker for broker in crashed if maintained(broker, header) is None] or crashed
    if crashed:
        # A broker on its way to KRaft mode leaves /brokers/ids for good. Its way of leaving is unknown while KRaft
        # leads.
        left = Left.LEFT if header.led_by_kraft else Left.CRASHED
        condition = _missed(header, loss, kinds.BROKER_CRASHED, crashed, _how(header, crashed, left))
        if all(header.departures.last[broker].hangs for broker in crashed):
            condition = msgspec.structs.replace(condition, advice=HANGS)
        is_page = _still_pages(condition, header, otherwise=pages) and not header.led_by_kraft
        yield condition if is_page else _at_most_a_warning(condition)
    shut_down = [
        broker for broker in missing if broker in header.departures.last and header.departures.last[broker].in_order
    ]
    if shut_down:
        how = _how(header, shut_down, Left.SHUT_DOWN)
        condition = _missed(header, loss, kinds.BROKER_SHUT_DOWN, shut_down, how)
        yield condition if crashed or not _nothing_to_spare(loss.affected, header) else _at_most_a_warning(condition)
    absent = [broker for broker in missing if broker not in header.departures.last]
    strangers = [broker for broker in absent if never_registered(header, broker)]
    if strangers:
        yield _stranger(header, _missed(header, loss, kinds.BROKER_UNKNOWN, strangers, ""), loss.cost)
    absent = [broker for broker in absent if broker not in strangers]
    if absent:
        never = Left.NEVER_REGISTERED.value if header.knows_past else verb(len(absent), "is not registered")
        yield _missed(header, loss, kinds.BROKER_ABSENT, absent, f"{listed(absent, 'hosts')} replicas but {never}")


def _lacking(
    header: Header, missing: Mapping[BrokerId, int], affected: Affected, under_replicated: Mapping[BrokerId, int]
) -> int | None:
    """Return the number of usable partitions that lack the only broker of an incident, None for several brokers.

    Partitions that lack another incident's broker as well count for both. Until the controller has written ISRs without
    the broker, each of its replicas counts.
    """
    if len(missing) != 1:
        return None
    lacking = affected.of(PartitionIssue.UNDER_REPLICATED).count
    ((broker, hosted),) = missing.items()
    if not header.acting or any(event.writes_due for event in header.events.values()):
        return max(lacking, hosted - affected.of(*OFFLINE_ISSUES, *WAITING_ISSUES).count)
    return under_replicated[broker]


def _stranger(header: Header, condition: Condition, cost: str) -> Condition:
    """Return the condition of brokers that may not exist, with the assignment that names them and its remedy."""
    moving = {
        broker
        for key in header.tally.issues
        if key.startswith(REASSIGNING)
        for broker in parse_group(key)[1]
        if broker in condition.brokers
    }
    where = "reassignment" if moving else "assignment"
    has_id = plural(len(condition.brokers), "no broker has this id", "no brokers have these ids")
    remedies = (CANCEL_REASSIGNMENT.given(has_id),) if moving else ()
    return msgspec.structs.replace(
        condition,
        cause=unknown(condition.brokers, where) + (f" {capital(cost)}" if cost else ""),
        advice=Advice("" if moving else kinds.BROKER_UNKNOWN.advice.look, remedies),
    )


def _without_session(header: Header) -> Iterator[Condition]:
    """Yield brokers whose znode belongs to no session, which the controller takes for live."""
    for broker in sorted(broker for broker in header.brokers if is_without_session(broker, header)):
        led = header.tally.gauges.led_by.get(broker, 0)
        cost = f"no process leads {counted(led, 'partition')}" if led else "it leads no partition"
        yield Condition(
            kind=kinds.BROKER_WITHOUT_SESSION,
            subject=listed((broker,)),
            group=listed((broker,)),
            cause=f"/brokers/ids/{broker} belongs to no session, so no process is broker {broker}: {cost}, and the "
            "real broker cannot register",
            ending="the znode is gone, or belongs to a session",
            advice=Advice(remedies=(DELETE_REGISTRATION.met.filled(BROKER=broker),)),
            severity=None if led else Severity.WARN,
            evidence=whereabouts((broker,), header),
            partitions=led,
            broker=broker,
            brokers=(broker,),
        )


def _nothing_to_spare(affected: Affected, header: Header) -> bool:
    """Return whether one more loss would take partitions offline or stop acks=all, for longer than a restart takes."""
    patience_ms = kinds.UNDER_REPLICATED.patience_ms
    little_left = affected.of(PartitionIssue.AT_MIN_ISR, *LAST_ONES).groups
    return any(group.excuse is None and header.time_ms - group.since_ms >= patience_ms for group in little_left)


def _still_pages(condition: Condition, header: Header, *, otherwise: bool) -> bool:
    """Return whether the open alert pages. A lower severity would end it for its receiver, yet the problem goes on."""
    before = header.alerts.open.get(condition.id)
    if before is None or before.severity is Severity.INFO:
        return otherwise
    was_sent = header.time_ms - before.since_ms >= UNSENT_MS
    return before.severity is Severity.PAGE and (otherwise or was_sent)


def _at_most_a_warning(condition: Condition) -> Condition:
    return msgspec.structs.replace(condition, severity=condition.severity or Severity.WARN)


def _how(header: Header, brokers: list[BrokerId], left: Left) -> str:
    """Return how these brokers left and when, with the zxid if it is one, or the time span and the rack."""
    departures = [header.departures.last[broker] for broker in brokers]
    if len(brokers) == 1:
        (departure,) = departures
        at = f" at zxid {departure.zxid:#x}" if departure.zxid >= 0 else ", unseen"
        return f"{listed(brokers)} {left.value}{at}"
    times_ms = [departure.time_ms for departure in departures]
    lasted_s = -((min(times_ms) - max(times_ms)) // 1_000)  # rounded up
    racks = {departure.rack for departure in departures}
    rack = f", rack {racks.pop()}" if len(racks) == 1 and None not in racks else ""
    return f"{listed(brokers)} {left.value} within {duration(max(1, lasted_s) * 1_000)}{rack}"


def _missed(header: Header, loss: _Loss, kind: AlertKind, brokers: list[BrokerId], how: str) -> Condition:
    """Return the condition of brokers that are away, as info if they host no replica."""
    excuse, cost = excuse_of(maintained(broker, header) for broker in brokers), loss.cost
    replicas = sum(loss.missing[broker] for broker in brokers)
    names_first = loss.incident.broker in brokers  # the incident keeps its name when its first broker is back
    if not replicas:
        cost = f"{plural(len(brokers), 'it hosts', 'they host')} no replicas, and may have {Left.SHUT_DOWN.value}"
    elif not cost:
        cost = f"{plural(len(brokers), 'its', 'their')} {counted(replicas, 'replica', 'is')} missing"
    return Condition(
        kind=kind,
        subject=loss.incident.name,
        about="" if names_first else listed(brokers),
        group=loss.incident.name,
        cause=f"{how}: {cost}" + (f" ({excuse})" if excuse else ""),
        ending=f"the {plural(len(brokers), 'broker is', 'brokers are')} registered again, "
        f"or {plural(len(brokers), 'hosts', 'host')} no replicas",
        since_ms=min(
            (header.departures.last[broker].time_ms for broker in brokers if broker in header.departures.last),
            default=None,
        ),
        severity=Severity.INFO if excuse or not replicas else None,
        evidence=whereabouts(brokers[:EXAMPLES_NAMED], header),
        partitions=replicas,
        examples=loss.examples,
        broker=loss.incident.broker if names_first else brokers[0],
        brokers=tuple(brokers),
    )


def _flapping(header: Header, paged: Collection[str]) -> Iterator[Condition]:
    """Yield brokers that keep leaving. Their alert pages unless the loss of partitions already does."""
    for broker, departures_ms in header.departures.unordered.items():
        recent = [at_ms for at_ms in departures_ms if header.time_ms - at_ms <= _FLAPPING_WITHIN_MS]
        if len(recent) < _FLAPPING_DEPARTURES:
            continue
        before = header.alerts.open.get(id_of(kinds.BROKER_FLAPPING, listed((broker,))))
        condition = Condition(
            kind=kinds.BROKER_FLAPPING,
            subject=listed((broker,)),
            group=group_of(broker, header) if before is None else before.group,
            cause=f"{listed((broker,))} {Left.CRASHED.value} {len(recent)} times within ten minutes: "
            "its partitions lost leaders and replicas each time",
            ending=f"the broker left fewer than {_FLAPPING_DEPARTURES} times within the last ten minutes",
            since_ms=recent[0],
            evidence=whereabouts((broker,), header),
            broker=broker,
        )
        pages = _still_pages(condition, header, otherwise=condition.group not in paged)
        yield condition if pages else _at_most_a_warning(condition)
