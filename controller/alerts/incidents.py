"""Incidents, which are brokers that were lost together for one cause, under a name that no other loss gets.

The invariant is that every loss which takes a partition from clients is published under a group that could not have
been silenced before the loss. Three rules keep it.

- An incident takes in brokers only until it has settled. The sessions of one failure expire within `settles_within_ms`,
  and Alertmanager sends its first message later, so nobody has silenced the incident by then. Clean stops that join a
  clean stop have the minute before its page.
- A broker that is lost later begins an incident with a name that was never published, even if a partition lacks brokers
  of both, or the same broker was lost before. Names, members and open alerts of two incidents are never joined.
  An incident that ends without an alert, such as a replica that lags for a second, leaves its name to the next.
- A partition that lacks brokers of several incidents belongs to the newest loss, which took it from clients.

Brokers that are lost together are one incident if a partition lacks several of them, or if they are of one rack. A
broker that never registered was not lost, so it never joins an incident of lost brokers.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from typing import Final

import msgspec

from controller.alerts.conditions import maintained
from controller.alerts.controller_conditions import step_without_controller
from controller.contract.ids import BrokerId
from controller.model.alert_state import Outage
from controller.model.context import Header
from controller.view.gauges import replicas_by_broker
from controller.view.partition_issues import LAST_ONES, PartitionIssue, parse_group
from wording.sentences import listed

# Groups of these issues name replicas out of the ISR, live or not. Each of the named brokers is a cause.
_OUT_OF_SYNC: Final = frozenset(
    {PartitionIssue.UNDER_MIN_ISR, PartitionIssue.AT_MIN_ISR, *LAST_ONES, PartitionIssue.UNDER_REPLICATED}
)
# Groups of these issues name replicas that may be live and copying or deleting. Only an absent broker is a cause.
_IN_PROGRESS: Final = frozenset({PartitionIssue.UNDELETED, PartitionIssue.REASSIGNING})
# With these issues a live replica could lead, so the controller is the cause, whichever broker was lost before.
_UP_TO_CONTROLLER: Final = frozenset({PartitionIssue.LEADERLESS, PartitionIssue.ELECTION_OWED})
# While no controller acts, these issues wait for one.
_WAITING: Final = frozenset({PartitionIssue.ELECTION_DUE, PartitionIssue.COMING_BACK})

# How long a broker that hosts no replica counts as away.
_MISSED_MS: Final = 10 * 60_000

# A client renews its session each third of the timeout, so brokers that fail at once expire up to a third apart.
# ZooKeeper looks for expired sessions once a tick, 2 s by default. With the default timeout of 18 s that is 8 s, and
# it does not grow with the cluster, because ZooKeeper closes all sessions of a tick in one pass.
_TICK_MS: Final = 2_000


def settles_within_ms(header: Header) -> int:
    """Return the time after its first loss in which an incident takes in further brokers."""
    return header.settings.zookeeper_session_timeout_ms // 3 + _TICK_MS


def follow_incidents(header: Header, away: Collection[BrokerId]) -> None:
    """Bring the incidents up to date. Newly lost brokers join an unsettled incident or a new one, the others stay."""
    present = {broker for group in _groups(header) for broker in group} | set(away)
    kept = [_continued(incident, present, header) for incident in header.alerts.incidents]
    settled_ms = header.time_ms - settles_within_ms(header)
    kept = [incident for incident in kept if incident.brokers or incident.since_ms > settled_ms]
    new = present.difference(*(incident.brokers for incident in kept))
    if new:
        unsettled = [one for one in kept if any(_is_of(broker, one, header, joins=True) for broker in new)]
        for brokers in _lost_together(header, away, new, unsettled):
            kept = _with_lost(header, brokers, new, kept)
    if (incidents := tuple(kept)) != header.alerts.incidents:
        header.alerts.incidents = incidents


def _continued(incident: Outage, present: Collection[BrokerId], header: Header) -> Outage:
    """Return the incident with the brokers that have not recovered, and have not been lost again."""
    brokers = tuple(
        broker
        for broker in incident.brokers
        if broker in present and (broker not in header.departures.last or _is_of(broker, incident, header, joins=False))
    )
    return incident if brokers == incident.brokers else msgspec.structs.replace(incident, brokers=brokers)


def _is_of(broker: BrokerId, incident: Outage, header: Header, *, joins: bool) -> bool:
    """Return whether the broker was lost before the incident settled. A clean stop joins one that is still away."""
    first, own = (header.departures.last.get(each) for each in (incident.broker, broker))
    are_clean = first and own and first.in_order and own.in_order and first.time_ms == incident.since_ms
    waits = are_clean and not (joins and incident.broker in header.brokers)
    within_ms = max(settles_within_ms(header), header.clean_stop_ms if waits else 0)
    return incident.since_ms <= _lost_ms(broker, header) <= incident.since_ms + within_ms


def _lost_ms(broker: BrokerId, header: Header) -> int:
    """Return when the broker left. A broker that lags, or was never seen, is lost now, when this is first noticed."""
    departure = header.departures.last.get(broker)
    return header.time_ms if departure is None else departure.time_ms


def _never_seen(broker: BrokerId, header: Header) -> bool:
    return broker not in header.brokers and broker not in header.departures.last


def _groups(header: Header) -> Iterator[tuple[BrokerId, ...]]:
    for key in header.tally.issues:
        issue, brokers, *_ = parse_group(key)
        yield causes(issue, brokers, header)


def _lost_together(
    header: Header, away: Collection[BrokerId], new: Collection[BrokerId], unsettled: Iterable[Outage]
) -> list[tuple[BrokerId, ...]]:
    """Return the new brokers in sets that belong together, with the brokers of unsettled incidents."""
    may_join = {*new, *(broker for incident in unsettled for broker in (incident.broker, *incident.brokers))}
    together = _Together()
    for brokers in (*_groups(header), *_sharing(header, away), *_of_one_rack(header, may_join)):
        for never_seen in (False, True):
            together.add(
                broker for broker in brokers if broker in may_join and _never_seen(broker, header) is never_seen
            )
    for incident in unsettled:
        together.add((incident.broker, *incident.brokers))
    for broker in new:
        together.add((broker,))
    return together.sets()


def _with_lost(
    header: Header, brokers: Iterable[BrokerId], new: Collection[BrokerId], incidents: Iterable[Outage]
) -> list[Outage]:
    """Return the incidents. The new ones of these brokers, in order of loss, join an unsettled one, or begin one."""
    members, found = set(brokers), {one.name: one for one in incidents}
    for broker in sorted(members.intersection(new), key=lambda each: (_lost_ms(each, header), each)):
        lost_ms = _lost_ms(broker, header)
        related = (one for one in found.values() if not members.isdisjoint((one.broker, *one.brokers)))
        joined = next((one for one in related if _is_of(broker, one, header, joins=True)), None)
        if joined is None:
            changed = _begun(header, broker, lost_ms, found.values())
        else:
            changed = msgspec.structs.replace(joined, brokers=tuple(sorted((*joined.brokers, broker))))
        found[changed.name] = changed
    return list(found.values())


def _begun(header: Header, broker: BrokerId, lost_ms: int, others: Iterable[Outage]) -> Outage:
    """Return a new incident, named after its first broker, with a number from its second incident on."""
    present = [incident.number for incident in others if incident.broker == broker]
    number = max(header.alerts.incidents_told.get(broker, 0), *present, 0) + 1
    return Outage(_name(broker, number), broker, (broker,), lost_ms, number)


def _name(broker: BrokerId, number: int) -> str:
    return listed((broker,)) if number == 1 else f"{listed((broker,))} ({number})"


def keep_told_numbers(header: Header) -> None:
    """Record the numbers of incidents whose group has an open alert, so that no other incident gets their names.

    A flapping broker, for example, has a group of its own, with the name of the broker's first incident.
    """
    told, before = {alert.group for alert in header.alerts.open.values()}, header.alerts.incidents_told
    numbers = {alert.broker: 1 for alert in header.alerts.open.values() if alert.broker is not None}
    numbers |= {incident.broker: incident.number for incident in header.alerts.incidents if incident.name in told}
    further = {
        broker: number
        for broker, number in numbers.items()
        if number > before.get(broker, 0) and _name(broker, number) in told
    }
    if further:
        header.alerts.incidents_told = {**before, **further}


def causes(issue: PartitionIssue, brokers: tuple[BrokerId, ...], header: Header) -> tuple[BrokerId, ...]:
    """Return the brokers of a group that cause its issue, which are the absent brokers, or else the first broker."""
    if issue in _OUT_OF_SYNC:
        return brokers
    if issue in _UP_TO_CONTROLLER and header.acting:
        return ()
    if issue in _WAITING and step_without_controller(header) is not None:
        return ()
    away = tuple(broker for broker in brokers if broker not in header.brokers)
    return away or (() if issue in _IN_PROGRESS else brokers[:1])


def brokers_away(header: Header) -> dict[BrokerId, int]:
    """Return the unregistered brokers that host replicas or left lately, with their number of replicas."""
    hosted = replicas_by_broker(header)
    recent = [
        broker
        for broker, departure in header.departures.last.items()
        if header.time_ms - departure.time_ms <= _MISSED_MS
    ]
    return {broker: hosted.get(broker, 0) for broker in sorted({*hosted, *recent} - header.brokers.keys())}


def group_of(broker: BrokerId, header: Header) -> str:
    """Return the group of an alert about one broker, which is its present incident, so that no old silence mutes it."""
    incident = incident_by_broker(header.alerts.incidents).get(broker)
    return listed((broker,)) if incident is None else incident.name


def incident_by_broker(incidents: Iterable[Outage]) -> Mapping[BrokerId, Outage]:
    """Return the incident of each broker."""
    return {broker: incident for incident in incidents for broker in incident.brokers}


def newest_of(brokers: Iterable[BrokerId], incidents: Mapping[BrokerId, Outage], header: Header) -> Outage | None:
    """Return the newest incident of these brokers, because its loss took the partition that lacks them from clients.

    A broker that was never seen counts only if no other is missing.
    """
    found = [broker for broker in brokers if broker in incidents]
    if len(found) <= 1:
        return incidents[found[0]] if found else None
    return incidents[max(found, key=lambda each: (not _never_seen(each, header), incidents[each].since_ms, -each))]


def moved_on(header: Header) -> dict[str, str]:
    """Return the name of the newer incident by the name of each incident that has lost partitions to it."""
    incidents, moved = incident_by_broker(header.alerts.incidents), dict[str, str]()
    for key in header.tally.issues:
        issue, brokers, *_ = parse_group(key)
        if issue not in _IN_PROGRESS:
            newest = newest_of(causes(issue, brokers, header), incidents, header)
            others = {incidents[broker].name for broker in brokers if broker in incidents}
            moved.update({other: newest.name for other in others if newest is not None and other != newest.name})
    return moved


def _sharing(header: Header, away: Collection[BrokerId]) -> Iterator[tuple[BrokerId, ...]]:
    """Yield groups of brokers that share partitions, before the controller has written their ISRs."""
    for broker in away:
        departure = header.departures.last.get(broker)
        if departure is not None:
            yield broker, *(other for other in departure.shares_with if other in away)


def _of_one_rack(header: Header, brokers: Iterable[BrokerId]) -> Iterable[list[BrokerId]]:
    """Return the brokers of each rack, or without a rack, whose sessions one failure can have ended."""
    racks: dict[str | None, list[BrokerId]] = {}
    for broker in brokers:
        departure = header.departures.last.get(broker)
        if departure is not None and not departure.in_order and maintained(broker, header) is None:
            racks.setdefault(departure.rack, []).append(broker)
    return racks.values()


class _Together:
    """Disjoint sets of brokers (union-find, the lowest broker stands for its set)."""

    def __init__(self) -> None:
        self._lower: dict[BrokerId, BrokerId] = {}

    def add(self, brokers: Iterable[BrokerId]) -> None:
        roots = sorted({self._root(broker) for broker in brokers})
        for root in roots:
            self._lower[root] = roots[0]

    def sets(self) -> list[tuple[BrokerId, ...]]:
        """Return the sets in order of their lowest broker."""
        found: dict[BrokerId, list[BrokerId]] = {}
        for broker in sorted(self._lower):
            found.setdefault(self._root(broker), []).append(broker)
        return [tuple(brokers) for brokers in found.values()]

    def _root(self, broker: BrokerId) -> BrokerId:
        while (lower := self._lower.setdefault(broker, broker)) != broker:
            broker = lower
        return broker
