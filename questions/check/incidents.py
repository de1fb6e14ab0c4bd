"""Open alerts by cause: the event that is their title, its start, and the broker to start first."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from typing import Final

import msgspec

from controller.contract.alert_row import AlertRow, Severity
from controller.contract.ids import BrokerId
from controller.rules.topic_ranks import TopicRanks
from controller.says.alert_kinds import kinds
from controller.view.returns import NextReturn, bring_back, order_of_return
from controller.view.types import Header
from questions.check.damage import Damage, PartitionGroup, TopicDamage, after_elections, damage_of, groups_of
from questions.cluster_rows import ClusterSnapshot
from questions.memory import Memory
from questions.picture import CONTROLLER_GROUP, WORST_FIRST, Beginning, Picture
from wording.facts import Left
from wording.sentences import capital, event_of, first_sentence, joined, listed

HOW_IT_LEFT: Final = {
    kinds.BROKER_CRASHED.name: Left.CRASHED.value,
    kinds.BROKER_SHUT_DOWN.name: Left.SHUT_DOWN.value,
    kinds.BROKER_ABSENT.name: Left.NEVER_REGISTERED.value,
}
DAMAGING: Final = frozenset(
    kind.name
    for kind in (kinds.PARTITIONS_OFFLINE, kinds.UNDER_MIN_ISR, kinds.PARTITIONS_LEADERLESS, kinds.ELECTION_DUE)
)
"""Alerts on what clients cannot use, whose title has all damage of their incident."""
_CAUSES: Final = frozenset({kinds.LOG_DIR_FAILED.name})  # of damage without a broker that is away
# Alerts that keep the group of an earlier loss, and alerts that end when a broker returns.
_OF_EARLIER: Final = frozenset({kinds.BROKER_FLAPPING.name, kinds.LOG_DIR_FAILED.name})
_WAITING: Final = frozenset({kinds.DELETION_STUCK.name, kinds.REASSIGNMENT_STUCK.name})
# Losing records cannot be undone, but an outage goes on. So a loss comes after alerts of the same severity that go on.
_OVER: Final = frozenset({kinds.UNCLEAN_ELECTION.name})


class Incident(msgspec.Struct, frozen=True, kw_only=True):
    """The open alerts of one cause. `since` is the start of the alert that gives the title."""

    group: str
    severity: Severity
    event: str
    how: str  # how the brokers left, empty if they left in several ways
    since: Beginning
    brokers: tuple[BrokerId, ...]  # that are away
    returns: tuple[NextReturn, ...]  # the broker to start first
    first_step: str
    damage: Damage
    affected: int  # partitions with any alert, as the alerts count them
    alerts: tuple[AlertRow, ...]  # the worst first
    groups: tuple[PartitionGroup, ...]  # the partitions of the damage
    blamed: frozenset[BrokerId]  # that its partitions lack
    newer: frozenset[BrokerId]  # of later losses, which took what lacks brokers of several from clients

    def lacks(self, brokers: Collection[BrokerId]) -> bool:
        """Return whether a partition that lacks these brokers is this incident's."""
        return not self.blamed.isdisjoint(brokers) and self.newer.isdisjoint(brokers)

    def step_of(self, row: AlertRow) -> str:
        """Return the first step if it ends this alert of the incident."""
        waits = row.alert in DAMAGING or row.alert in HOW_IT_LEFT or (row.alert in _WAITING and self.brokers)
        return self.first_step if waits or capital(first_sentence(row.action)) == self.first_step else ""

    def damage_of(self, row: AlertRow) -> Damage:
        """Return the damage that the alert is about, by its own count if only the controller can end it."""
        if row.alert not in DAMAGING or not row.examples:
            return Damage()
        is_waiting = row.group == CONTROLLER_GROUP or row.alert == kinds.ELECTION_DUE.name
        groups = [] if is_waiting else [group for group in self.groups if not group.is_up_to_controller]
        if groups:
            return damage_of(groups)
        refusing = row.partitions if row.alert == kinds.UNDER_MIN_ISR.name else 0
        topic = row.examples[0].rpartition("-")[0]
        return Damage((TopicDamage(topic, row.partitions, row.partitions - refusing, refusing),))

    @property
    def unusable(self) -> int:
        """Return how many partitions clients cannot use, those that reject acks=all among them."""
        return sum(group.count for group in self.groups)

    @property
    def restores(self) -> int:
        """Return how many partitions the first step restores."""
        return self.returns[0].partitions if self.returns else 0


def known_incidents(memory: Memory, found: ClusterSnapshot, ranks: TopicRanks) -> tuple[Incident, ...]:
    """Return the incidents of a followed cluster after its due elections, none before its first complete read.

    A message must not say more than what stays, but the controller elects within a second.
    """
    if not found.ready:
        return ()
    rows, picture = (*found.unusable, *found.under_min_isr), found.picture()
    named = memory.cluster(found.cluster, None, {row.topic for row in rows}) if rows else None
    topics = {} if named is None else named.topics
    left = after_elections(rows, topics, picture.header.counting_rules, picture.as_of_ms)
    return incidents_in(picture, groups_of(left, topics, ranks))


def incidents_in(picture: Picture, groups: Sequence[PartitionGroup]) -> tuple[Incident, ...]:
    """Return the incidents, the worst first. Alerts that only inform are an incident only if clients are affected.

    Alerts of Kontrast on itself and on ZooKeeper are no incident of the cluster.
    """
    left = {broker: row.group for row in picture.alerts if row.alert in HOW_IT_LEFT for broker in row.brokers}
    by_group: dict[str, list[AlertRow]] = {}
    for row in picture.alerts:
        if not is_own(row):
            later = left.get(row.broker) if row.alert in _OF_EARLIER and row.broker is not None else None
            by_group.setdefault(later or row.group, []).append(row)
    controller_pages = any(row.severity is Severity.PAGE for row in by_group.get(CONTROLLER_GROUP, ()))
    every = by_group.values()
    made = (_incident(picture, rows, groups, _newer(rows, every, picture.header), controller_pages) for rows in every)
    found = [each for each in made if each.severity is not Severity.INFO or each.unusable]
    return tuple(sorted(found, key=_rank))


def incident_of(row: AlertRow, incidents: Iterable[Incident]) -> Incident | None:
    """Return the incident of an alert: its own, unless another has the damage that the alert is about."""
    own = next((each for each in incidents if any(row.id == alert.id for alert in each.alerts)), None)
    if row.alert not in DAMAGING:
        return own
    hit = [each for each in incidents if any(not group.names.isdisjoint(row.examples) for group in each.groups)]
    return own if own in hit or not hit else hit[0]


def is_own(row: AlertRow) -> bool:
    """Return whether the alert is about ZooKeeper or Kontrast itself."""
    kind = kinds.ALERT_KINDS.get(row.alert)
    return kind is not None and kind.of_replica


def _rank(incident: Incident) -> tuple[object, ...]:
    is_over = incident.alerts[0].alert in _OVER and not incident.unusable
    return WORST_FIRST[incident.severity], is_over, -incident.unusable, -incident.affected, incident.since.ms or 0


def _blamed(rows: Iterable[AlertRow]) -> frozenset[BrokerId]:
    found = (row for row in rows if row.group != CONTROLLER_GROUP)
    return frozenset(broker for row in found for broker in (*row.brokers, row.broker) if broker is not None)


def _newer(alerts: Sequence[AlertRow], every: Iterable[Sequence[AlertRow]], header: Header) -> frozenset[BrokerId]:
    """Return the brokers of later losses, or of all if these alerts blame no broker."""
    own, began_ms = _blamed(alerts), _began_ms(alerts, header)
    later = (_blamed(rows) for rows in every if not own or _began_ms(rows, header) > began_ms)
    return frozenset[BrokerId]().union(*later).difference(own)


def _began_ms(rows: Sequence[AlertRow], header: Header) -> int:
    """Return when the brokers were lost. Those that lag since their return were lost before all others."""
    losses = [row for row in rows if row.alert in HOW_IT_LEFT]
    back_ms = {header.brokers[broker].since_ms for broker in _blamed(rows) if broker in header.brokers}
    return min(0 if not losses and row.since_ms in back_ms else row.since_ms for row in losses or rows)


def _incident(
    picture: Picture,
    alerts: Iterable[AlertRow],
    groups: Iterable[PartitionGroup],
    newer: frozenset[BrokerId],
    controller_pages: bool,
) -> Incident:
    rows = sorted(alerts, key=lambda row: (WORST_FIRST[row.severity], row.alert in _OVER))
    away = _away(picture, rows)
    hit = tuple(group for group in groups if _is_hit(group, rows, newer, by_controller=controller_pages))
    order = tuple(order_of_return((group.waiting for group in hit), away))
    titles = [row for row in rows if row.alert in (HOW_IT_LEFT if away else _CAUSES)]
    title = (titles or rows)[0]
    ways = {HOW_IT_LEFT[row.alert] for row in titles if away}
    first = (order[0].broker,) if order else away
    step = bring_back(first, picture.header) if first else first_sentence(title.action)
    return Incident(
        group=title.group,
        severity=rows[0].severity,
        event=_down(away, picture.header) if away else capital(event_of(title.cause), title.examples),
        how=ways.pop() if len(ways) == 1 else "",
        since=picture.since_wall(title.since_ms),
        brokers=away,
        returns=order,
        first_step=capital(step),
        damage=damage_of(hit),
        affected=max(row.partitions for row in rows),
        alerts=tuple(rows),
        groups=hit,
        blamed=_blamed(rows),
        newer=newer,
    )


def _away(picture: Picture, alerts: Iterable[AlertRow]) -> tuple[BrokerId, ...]:
    """Return the brokers of an incident that are away. A broker that never registered is not away but a wrong id."""
    strangers = {broker for row in picture.alerts if row.alert == kinds.BROKER_UNKNOWN.name for broker in row.brokers}
    return tuple(sorted(_blamed(alerts) - picture.header.brokers.keys() - strangers))


def _is_hit(
    group: PartitionGroup, alerts: Sequence[AlertRow], newer: frozenset[BrokerId], *, by_controller: bool
) -> bool:
    """Return whether the incident causes the damage. `by_controller` means that an alert on the controller pages."""
    if not newer.isdisjoint(group.needs) or not _blamed(alerts).isdisjoint(group.needs):
        return newer.isdisjoint(group.needs)
    if by_controller and group.is_up_to_controller:
        return alerts[0].group == CONTROLLER_GROUP
    return any(not group.names.isdisjoint(row.examples) for row in alerts)


def _down(away: Sequence[BrokerId], header: Header) -> str:
    """Return which racks and brokers are down. A rack is named if all its brokers are away, and more than one."""
    racks = {broker: row.rack for broker, row in header.brokers.items()}
    racks |= {broker: departure.rack for broker, departure in header.departures.last.items() if broker not in racks}
    members: dict[str, set[BrokerId]] = {}
    for broker, rack in racks.items():
        if rack is not None:
            members.setdefault(rack, set()).add(broker)
    lost = [rack for rack, brokers in sorted(members.items()) if len(brokers) > 1 and brokers <= set(away)]
    rest = [broker for broker in away if racks.get(broker) not in lost]
    own_racks = {racks.get(broker) for broker in rest}
    named = [f"rack {rack}" for rack in lost]
    if rest:
        in_rack = f" (rack {rack})" if not lost and len(own_racks) == 1 and (rack := own_racks.pop()) else ""
        named.append(f"{listed(rest)}{in_rack}")
    subject = joined(named, most=len(named))
    verb = "is" if (len(lost), len(rest)) in ((1, 0), (0, 1)) else "are"
    return f"{capital(subject)} {verb} down"
