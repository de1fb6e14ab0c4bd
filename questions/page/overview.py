"""A cluster on one screen, with verdict, incidents, map of the impact, brokers by rack, and its last day."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from itertools import groupby
from typing import Final, NamedTuple

import msgspec

from controller.contract.alert_row import AlertRow
from controller.contract.gauges_row import GaugesRow
from controller.contract.ids import INTERNAL_TOPICS, BrokerId
from controller.contract.metadata_rows import BrokerRow, PartitionRow
from controller.rules.migration_phases import MigrationPhase
from controller.rules.topic_ranks import TopicRanks
from controller.says.alert_kinds import kinds
from controller.view.migration import DONE
from controller.view.types import FOLLOWING
from questions.check import incidents as question
from questions.check.check import Finding, Health, finding_of, health_of
from questions.check.damage import Topics, cause_key, damage_of, groups_of, place_of
from questions.check.incidents import incidents_in, is_own
from questions.check.state import ClusterState, Counts, State, count_brokers_away, counts_of, not_known, rank, state_of
from questions.clients.groups import NO_CLIENTS, Clients, troubled_in
from questions.cluster_rows import ClusterSnapshot
from questions.doubts import silence
from questions.known_brokers import host_of
from questions.memory import Memory
from questions.page.impact_map import Asked, ImpactMap, Moment, impact_map, with_clients
from questions.page.incident_cards import Card, Presentation, card_of
from questions.page.recent import KnownPast, News, Strip, changes_before, day_begin_ms, hours_of, strip_of
from questions.picture import Picture, Present, oldest
from wording.facts import Left
from wording.times import age

_MINUTE_MS: Final = 60_000


class BrokerCell(msgspec.Struct, frozen=True):
    """A broker in its rack."""

    broker: BrokerId
    host: str  # empty if the broker never registered
    release: str | None  # the oldest that registers as it does
    registered: bool
    inferred: bool  # it runs in KRaft mode, as ISRs and leaders show, so it is not registered
    is_controller: bool  # it is the acting controller
    since_ms: int | None  # start of its registration or absence, None if it never registered
    leaders: int
    replicas: int
    in_incident: bool

    @property
    def is_up(self) -> bool:
        """Return whether the broker runs, as far as ZooKeeper or KRaft shows."""
        return self.registered or self.inferred

    @property
    def state(self) -> str:
        """Return the broker's state in words."""
        if self.since_ms is None:
            return Left.NEVER_REGISTERED.value
        return "up" if self.registered else "in KRaft mode (inferred)" if self.inferred else "down"

    def lasting(self, as_of_ms: int) -> str:
        """Return whether the broker is up, and for how long."""
        return self.state if self.since_ms is None else f"{self.state} for {age(self.since_ms, as_of_ms)}"


class Rack(msgspec.Struct, frozen=True):
    """The brokers of a rack. The rack without a name has the brokers without a rack."""

    name: str | None
    brokers: tuple[BrokerCell, ...]

    @property
    def size(self) -> int:
        """Return the number of brokers."""
        return len(self.brokers)

    @property
    def is_down(self) -> bool:
        """Return whether no broker is up."""
        return not any(broker.is_up for broker in self.brokers)

    def narrowed(self, words: str) -> Rack:
        """Return the rack with the brokers that have this text, in small letters, in id, host, release, rack, state."""
        about = (
            (each, f"broker {each.broker} {each.host} {each.release} {self.name} {each.state}") for each in self.brokers
        )
        return Rack(self.name, tuple(each for each, said in about if words in said.lower()))


class WayToKRaft(msgspec.Struct, frozen=True):
    """Phase of the migration, with its next step and whether it can still be rolled back."""

    phase: str
    since_ms: int
    next_step: str
    rollback_sentence: str
    missing_brokers: tuple[BrokerId, ...]  # with replicas, and neither registered nor in KRaft mode
    quorum: str  # the quorum's own answer, or why it was not asked


class Overview(msgspec.Struct, frozen=True, kw_only=True):
    """A cluster on one screen. If it could not be read, it has only its state, and `unknown` is the reason."""

    doubts: tuple[str, ...] = ()
    cluster: str
    unknown: str | None = None
    state: ClusterState
    health: Health | None = None  # with the oldest findings of each severity
    controller_acts: bool = False
    controller_since_ms: int | None = None
    alerts: int = 0  # that are open, named in `health` or not
    own_alerts: tuple[Finding, ...] = ()  # of Kontrast on itself
    incidents: tuple[Card, ...] = ()  # the worst first
    map: ImpactMap | None = None  # of one cluster, not of each in a list
    strip: Strip | None = None  # the time around the shown moment, where there is a map
    racks: tuple[Rack, ...] = ()
    lacking: int = 0  # usable partitions that lack a replica
    pending_writes: int = 0  # that the controller must do, and ZooKeeper does not show yet
    agreement_of_last_hour: float | None = None
    agreement: float | None = None
    hours: tuple[str, ...] = ()  # the worst state of each of the last 24, the oldest first, empty for unknown hours
    news: tuple[News, ...] = ()  # what changed before the worst incident began, or before now, the newest first
    migration: WayToKRaft | None = None  # while a migration is under way, or has left something


class ShownMoment(NamedTuple):
    """The kept moment that a page shows, None for now, and the moment of its map."""

    at_ms: int | None
    now_ms: int
    moment: Moment = Moment.NOW
    clients: Clients = NO_CLIENTS


class Overviews:
    """Overviews of clusters from their rows. `quorum` returns the last answer of a cluster's quorum in a sentence."""

    def __init__(self, memory: Memory, config: Presentation, ranks: TopicRanks, quorum: Callable[[str], str]) -> None:
        self._memory = memory
        self._config = config
        self._ranks = ranks
        self._quorum = quorum

    def now(
        self, found: ClusterSnapshot, present: Present | None, now_ms: int, clients: Clients = NO_CLIENTS
    ) -> Overview:
        """Return the present cluster on one screen, with its last day, its way to KRaft and the impact on clients."""
        made = self.overview(found, present, clients=clients)
        if made.unknown is not None:
            return made
        past = self._known_past(made, found, now_ms)
        alerts = self._memory.changes(found.cluster, day_begin_ms(past.now_ms), past.now_ms, {AlertRow.output})
        return msgspec.structs.replace(
            made,
            hours=hours_of(alerts, past),
            news=changes_before(_began_ms(made) or now_ms, found.cluster, self._memory),
            migration=self._way_to_kraft(found),
        )

    def mapped(self, made: Overview, whole: ClusterSnapshot, shown: ShownMoment) -> Overview:
        """Return the overview with the map and the strip of its snapshot, now with all topics, if it was read."""
        if made.health is None:
            return made
        found = replace(whole, topics={})
        # The strip ends with the present minute, because it would otherwise differ at each heartbeat.
        past = self._known_past(made, found, shown.now_ms + -shown.now_ms % _MINUTE_MS)
        at_ms = past.now_ms if shown.at_ms is None else shown.at_ms
        strip = strip_of(past, found.cluster, self._memory, at_ms)
        impact = impact_map(whole, partial(place_of, ranks=self._ranks), self._asked(made, found, shown.moment))
        impact = with_clients(impact, shown.clients)
        return msgspec.structs.replace(made, map=impact, strip=strip)

    def _asked(self, made: Overview, found: ClusterSnapshot, moment: Moment) -> Asked:
        """Return the request of the map. If the cluster's state is not known, only the last known map can be shown."""
        if made.state.state is State.UNKNOWN:
            return Asked()
        worst = made.incidents[0] if made.incidents else None
        returns = [each.broker for each in worst.returns if each.restores] if worst else []
        since_ms, kept = _began_ms(made), self._memory.kept(found.cluster)
        is_kept = since_ms is not None and kept is not None and kept.since_ms < since_ms
        # Only the map before the incident needs topics.
        topics = None if moment is Moment.BEFORE else ()
        before = self._memory.cluster(found.cluster, (since_ms or 0) - 1, topics) if is_kept else None
        header = found.picture(()).header
        return Asked(header if header.phase is FOLLOWING else None, before, returns, moment)

    def _known_past(self, made: Overview, found: ClusterSnapshot, now_ms: int) -> KnownPast:
        since = made.state.since if made.state.state is State.UNKNOWN else None
        kept = self._memory.kept(found.cluster)
        kept_since_ms = now_ms if kept is None else kept.since_ms
        return KnownPast(found.open_alerts, kept_since_ms, None if since is None else since.ms, now_ms)

    def _topics(self, names: set[str], cluster: str, at_ms: int | None) -> Topics:
        """Return the named topics, if any, with the internal ones, whose partitions coordinate groups."""
        found = self._memory.cluster(cluster, at_ms, names | INTERNAL_TOPICS) if names else None
        return {} if found is None else found.topics

    def _way_to_kraft(self, found: ClusterSnapshot) -> WayToKRaft | None:
        row = found.migration
        if row is None or (row.phase == MigrationPhase.ZOOKEEPER.value and row.rollback == DONE):
            return None
        phase, quorum = row.phase.replace("_", " "), self._quorum(found.cluster)
        return WayToKRaft(phase, row.since_ms, row.next_step, row.rollback_sentence, row.missing_brokers, quorum)

    def overview(
        self, found: ClusterSnapshot, present: Present | None, at_ms: int | None = None, clients: Clients = NO_CLIENTS
    ) -> Overview:
        """Return the cluster of the snapshot on one screen. `present` is None for the kept moment `at_ms`."""
        unknown, gauges = why_unread(found), found.gauges
        if unknown is not None or gauges is None:
            return unread(found.cluster, unknown or "no counts are kept")
        picture = found.picture(oldest(found.open_alerts), present)
        rows = (*found.unusable, *found.under_min_isr)
        topics = self._topics({row.topic for row in rows}, found.cluster, at_ms)
        groups = groups_of(rows, topics, self._ranks)
        incidents = incidents_in(picture, groups)
        counts = _counts(found, gauges)
        health = health_of(picture, counts, state_of(picture, counts, damage_of(groups), incidents))
        made = (card_of(each, found, picture, self._config) for each in incidents)
        cards = tuple(_hitting(made, incidents, found, topics, clients))
        is_ghost = any(row.alert == kinds.GHOST_CONTROLLER.name for row in found.open_alerts)
        acts = (picture.header.acting and not is_ghost) or health.led_by_kraft
        return Overview(
            cluster=found.cluster,
            doubts=health.doubts,
            state=health.state,
            health=health,
            controller_acts=acts,
            controller_since_ms=None if found.controller is None else found.controller.since_ms,
            alerts=len(found.open_alerts),
            own_alerts=tuple(finding_of(row, picture) for row in _own_alerts(found, picture)),
            incidents=cards,
            racks=_racks(found.brokers, gauges, {broker for card in cards for broker in card.brokers}, acts=acts),
            lacking=len(found.lacking),
            pending_writes=gauges.pending_writes,
            agreement_of_last_hour=gauges.agreement_of_last_hour,
            agreement=gauges.agreement,
        )


def _counts(found: ClusterSnapshot, gauges: GaugesRow) -> Counts:
    """Return the counts of the last heartbeat, but those of unusable partitions as of now."""
    live = {row.broker for row in found.brokers if row.registered or row.inferred}
    counts, unusable = counts_of(gauges, count_brokers_away(gauges, live)), len(found.unusable)
    return msgspec.structs.replace(counts, leaderless=unusable, under_min_isr=len(found.under_min_isr))


def _hitting(
    cards: Iterable[Card],
    incidents: Iterable[question.Incident],
    found: ClusterSnapshot,
    topics: Topics,
    clients: Clients,
) -> Iterator[Card]:
    """Yield the cards of these incidents with their impact on clients, by the partitions of their damage."""
    by_key: dict[tuple[str, str, str], list[PartitionRow]] = {}
    for row in (*found.unusable, *found.under_min_isr) if clients.known.asked_ms else ():
        by_key.setdefault(cause_key(row), []).append(row)
    sizes = {name: len(topics[name].partitions) for name in INTERNAL_TOPICS if name in topics}
    for card, incident in zip(cards, incidents, strict=True):
        rows = (row for each in incident.groups for row in by_key.get((each.topic, each.problem, each.says), ()))
        yield msgspec.structs.replace(card, impact=clients.hit_by(troubled_in(rows, sizes)))


def worst_first(overviews: Iterable[Overview]) -> tuple[Overview, ...]:
    """Return clusters by state, then by partitions that clients cannot use, then by name."""
    ranked = lambda each: rank(each.state, each.health.counts if each.health else None, each.cluster)  # noqa: E731
    return tuple(sorted(overviews, key=ranked))


def unread(cluster: str, reason: str) -> Overview:
    """Return the overview of a cluster of which nothing was read."""
    return Overview(cluster=cluster, doubts=(reason,), unknown=reason, state=not_known(reason))


def _began_ms(made: Overview) -> int | None:
    """Return when the worst incident began, None without an incident or if that is not known."""
    alerts = made.incidents[0].alerts if made.incidents else ()
    return min((alert.since.ms for alert in alerts if alert.since.ms is not None), default=None)


def _own_alerts(found: ClusterSnapshot, picture: Picture) -> list[AlertRow]:
    """Return open alerts on ZooKeeper and Kontrast itself, first that no heartbeat arrives."""
    own = [row for row in found.open_alerts if is_own(row)]
    silent = silence(picture.as_of_ms, picture.present)
    if silent is not None and picture.present is not None:
        own.insert(0, found.stale_alert(picture.as_of_ms, picture.as_of_ms, picture.present.silent))
    return own


def why_unread(found: ClusterSnapshot) -> str | None:
    """Return the reason why the cluster is unknown until a complete read."""
    if found.shared or (found.ready and found.controller is not None):
        return found.shared or None
    return "no complete read of the cluster has arrived yet (see `kontrast status`)"


def _racks(
    brokers: Sequence[BrokerRow], gauges: GaugesRow, in_incident: Collection[int], *, acts: bool
) -> tuple[Rack, ...]:
    known = {row.broker for row in brokers}

    def rack(row: BrokerRow) -> tuple[bool, str]:
        return not row.rack, row.rack or ""

    def cell(row: BrokerRow) -> BrokerCell:
        return BrokerCell(
            row.broker,
            host_of(row.endpoints),
            row.least_release,
            row.registered,
            row.inferred,
            acts and row.broker == gauges.controller,
            row.since_ms,
            gauges.leaders_by_broker.get(row.broker, 0),
            gauges.replicas_by_broker.get(row.broker, 0),
            row.broker in in_incident,
        )

    racks = [
        Rack(name or None, tuple(map(cell, rows))) for (_, name), rows in groupby(sorted(brokers, key=rack), key=rack)
    ]
    never_seen = sorted({broker for broker, count in gauges.replicas_by_broker.items() if count} - known)
    cells = tuple(
        BrokerCell(
            broker, "", None, False, False, False, None, 0, gauges.replicas_by_broker[broker], broker in in_incident
        )
        for broker in never_seen
    )
    return (*racks, *([Rack(None, cells)] if cells else []))
