"""Incidents of brokers that are away or lag for one cause, under a name that stays while brokers join and leave.

Brokers belong together in three cases. A partition lacks more than one of the brokers. Brokers of one rack left within
the time in which the sessions of one failure expire. Or they belonged together before and none has recovered since.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from itertools import count, pairwise
from typing import Final

from controller.alerts.conditions import maintained
from controller.contract.ids import BrokerId
from controller.model.alert_state import Incident
from controller.model.context import Header
from controller.view.gauges import replicas_by_broker
from controller.view.partition_issues import PartitionIssue, parse_group

# Their groups name replicas out of the ISR, live or not. Each is a cause.
_OUT_OF_SYNC: Final = frozenset(
    {PartitionIssue.UNDER_MIN_ISR, PartitionIssue.AT_MIN_ISR, PartitionIssue.ONE_LEFT, PartitionIssue.UNDER_REPLICATED}
)
# Their groups name replicas that may be live and copying or deleting. Only an absent one is a cause.
_IN_PROGRESS: Final = frozenset({PartitionIssue.UNDELETED, PartitionIssue.REASSIGNING})
# A live replica could lead, so the controller is the cause, whichever broker was lost before.
_UP_TO_CONTROLLER: Final = frozenset({PartitionIssue.LEADERLESS, PartitionIssue.ELECTION_OWED})

# How long a broker that hosts no replica counts as away.
_MISSED_MS: Final = 10 * 60_000

# A client renews its session each third of the timeout, so brokers that fail at once expire up to a third apart.
# ZooKeeper looks for expired sessions once a tick, 2 s by default.
_TICK_MS: Final = 2_000


def incidents_of(header: Header, away: Collection[BrokerId]) -> tuple[Incident, ...]:
    """Return the incidents as of now. A continued one keeps its name, merged ones take the oldest name."""
    together = _Together()
    for broker in away:
        together.add((broker,))
    for key in header.tally.issues:
        issue, brokers, *_ = parse_group(key)
        together.add(causes(issue, brokers, header))
    for brokers in (*_sharing(header, away), *_left_together(header, away)):
        together.add(brokers)
    for incident in header.alerts.incidents:
        together.add(broker for broker in incident.brokers if broker in together)
    return _with_names(together.sets(), header.alerts.incidents)


def causes(issue: PartitionIssue, brokers: tuple[BrokerId, ...], header: Header) -> tuple[BrokerId, ...]:
    """Return the brokers of a group that cause its issue, which are the absent ones, else the first."""
    if issue in _OUT_OF_SYNC:
        return brokers
    if issue in _UP_TO_CONTROLLER and header.acting:
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


def incident_by_broker(incidents: Iterable[Incident]) -> Mapping[BrokerId, Incident]:
    """Return the incident of each broker."""
    return {broker: incident for incident in incidents for broker in incident.brokers}


def _sharing(header: Header, away: Collection[BrokerId]) -> Iterator[tuple[BrokerId, ...]]:
    """Yield groups of brokers that share partitions, before the controller has written their ISRs."""
    for broker in away:
        departure = header.departures.last.get(broker)
        if departure is not None:
            yield broker, *(other for other in departure.shares_with if other in away)


def _left_together(header: Header, away: Iterable[BrokerId]) -> Iterator[tuple[BrokerId, BrokerId]]:
    """Yield pairs of brokers of one rack, or without a rack, whose sessions one failure can have ended."""
    within_ms = header.settings.zookeeper_session_timeout_ms // 3 + _TICK_MS
    racks: dict[str | None, list[tuple[int, BrokerId]]] = {}
    for broker in away:
        departure = header.departures.last.get(broker)
        if departure is not None and not departure.in_order and maintained(broker, header) is None:
            racks.setdefault(departure.rack, []).append((departure.time_ms, broker))
    for left in racks.values():
        for (earlier_ms, one), (later_ms, other) in pairwise(sorted(left)):
            if later_ms - earlier_ms <= within_ms:
                yield one, other


class _Together:
    """Disjoint sets of brokers (union-find, the lowest broker stands for its set)."""

    def __init__(self) -> None:
        self._lower: dict[BrokerId, BrokerId] = {}

    def __contains__(self, broker: BrokerId) -> bool:
        return broker in self._lower

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


def _with_names(sets: list[tuple[BrokerId, ...]], before: tuple[Incident, ...]) -> tuple[Incident, ...]:
    named: dict[tuple[BrokerId, ...], Incident] = {}
    for incident in before:  # the oldest first
        for brokers in sets:
            if brokers not in named and not set(brokers).isdisjoint(incident.brokers):
                named[brokers] = Incident(incident.name, incident.broker, brokers)
                break
    for brokers in sets:
        if brokers not in named:
            named[brokers] = _begun(brokers, {incident.name for incident in named.values()})
    return tuple(named.values())


def _begun(brokers: tuple[BrokerId, ...], taken: set[str]) -> Incident:
    """Return a new incident, named after its first broker that names no other incident."""
    for broker in brokers:
        if f"broker {broker}" not in taken:
            return Incident(f"broker {broker}", broker, brokers)
    first = brokers[0]
    return next(Incident(name, first, brokers) for n in count(2) if (name := f"broker {first} ({n})") not in taken)
