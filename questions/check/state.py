"""State of a cluster, decided once for every page, command, answer, metric and message."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from enum import Enum
from typing import Final

import msgspec

from controller.contract.alert_row import AlertRow, Severity
from controller.contract.gauges_row import GaugesRow
from controller.says.alert_kinds import kinds
from questions.check.damage import Damage
from questions.check.incidents import DAMAGING, Incident, is_own
from questions.doubts import blindness
from questions.picture import Beginning, Picture
from wording.facts import Fact, event_since
from wording.said import Said, line
from wording.sentences import all_of, capital, counted, event_of, first_sentence

HITS_CLIENTS: Final = DAMAGING | {kinds.ZOOKEEPER_ROLLED_BACK.name, kinds.ZOOKEEPER_NO_QUORUM.name}
"""Alerts on what clients cannot do, whatever their severity."""
NOT_KNOWN: Final = "Not known"


class Counts(msgspec.Struct, frozen=True):
    """A cluster's counts, by Kafka's own definitions."""

    brokers: int  # registered
    brokers_away: int  # not registered, though they host replicas
    topics: int
    partitions: int
    leaderless: int  # without a live leader now, an election due or not
    under_min_isr: int
    under_replicated: int
    at_min_isr: int
    reassigning: int
    preferred_imbalance: int
    topics_to_delete: int


class State(Enum):
    """State of a cluster, in the order of a list of clusters. *Not known* wins over every other."""

    AFFECTED = "affected"  # partitions are offline or reject acks=all, or ZooKeeper serves nobody
    UNKNOWN = "unknown"  # Kontrast does not see the present
    DEGRADED = "degraded"  # an alert pages or warns, and clients have lost nothing
    WELL = "well"


WORDS: Final = {
    State.AFFECTED: "clients affected",
    State.UNKNOWN: "not known",
    State.DEGRADED: "degraded",
    State.WELL: "well",
}


class ClusterState(msgspec.Struct, frozen=True, kw_only=True):
    """The state of a cluster with its event, its start, its effect on clients, and the first step."""

    state: State
    event: str
    reason: str = ""  # why the state is not known
    since: Beginning | None = None
    effect: str = ""
    first_step: str = ""
    restores: str = ""  # what the first step brings back
    more: int = 0  # other incidents
    unusable: int = 0  # partitions of the incident that clients cannot use, or not write to with acks=all

    @property
    def words(self) -> str:
        """Return the state in words."""
        return WORDS[self.state]

    def said(self, as_of_ms: int) -> Said:
        """Yield the event with its start, and the first step, unless the cluster is well."""
        if self.state is State.WELL:
            return
        if self.state is not State.UNKNOWN:
            yield line(event_since(self.event, self.since.lasting(as_of_ms)) if self.since else self.event)
            if self.effect:
                yield line(self.effect)
        if self.first_step:
            restores = f", which {self.restores}" if self.restores else ""
            yield line(f"first step: {self.first_step}{restores}")


def rank(state: ClusterState, counts: Counts | None, cluster: str) -> tuple[int, int, str]:
    """Return the key of a list of clusters: by state, then by partitions that clients cannot use, then by name."""
    unusable = counts.leaderless + counts.under_min_isr if counts else 0
    return list(State).index(state.state), -unusable, cluster


def states_in_words(states: Collection[ClusterState]) -> str:
    """Return how many clusters are in each state."""
    counts = ((word, sum(each.state is state for each in states)) for state, word in WORDS.items())
    return f"{counted(len(states), 'cluster')}: {', '.join(f'{count} {word}' for word, count in counts if count)}"


def not_known(reason: str, since_ms: int | None = None, first_step: str = "") -> ClusterState:
    """Return the state of a cluster that Kontrast does not see."""
    since = None if since_ms is None else Beginning(since_ms, exact=True)
    return ClusterState(state=State.UNKNOWN, event=NOT_KNOWN, reason=reason, since=since, first_step=first_step)


def state_of(picture: Picture, counts: Counts, damage: Damage, incidents: Sequence[Incident]) -> ClusterState:
    """Return the state. A znode that Kontrast may not read makes it unknown only if it would be well otherwise."""
    blind = blindness(picture)
    if blind is not None:
        return not_known(blind.reason, blind.since_ms, blind.step)
    state = state_by(picture.alerts, counts)
    unread = not counts.partitions and any(path.startswith("/brokers/topics/") for path in picture.header.flawed)
    effect = damage.sentence or ("No partition's znode can be read." if unread else in_counts(counts))
    found = _by_incidents(state, incidents, effect) or _by_own_alerts(state, picture, effect)
    found = found or ClusterState(state=state, event=effect.rstrip("."))
    if found.state is State.WELL and picture.forbidden:
        return not_known(f"Kontrast may not read {counted(len(picture.forbidden), 'znode')}")
    return found


def state_by(alerts: Collection[AlertRow], counts: Counts) -> State:
    """Return the state of a cluster that Kontrast sees: by what clients have now, then by alerts."""
    if counts.leaderless or counts.under_min_isr or any(row.alert in HITS_CLIENTS for row in alerts):
        return State.AFFECTED
    return State.DEGRADED if any(row.severity is not Severity.INFO for row in alerts) else State.WELL


def _by_incidents(state: State, incidents: Sequence[Incident], effect: str) -> ClusterState | None:
    if not incidents:
        return None
    first = incidents[0]
    restores = f"restores {first.restores:,} of {counted(first.unusable, 'partition')}" if first.restores else ""
    return ClusterState(
        state=state,
        event=first.event,
        since=first.since,
        effect=effect,
        first_step=first.first_step,
        restores=restores,
        more=len(incidents) - 1,
        unusable=first.unusable,
    )


def _by_own_alerts(state: State, picture: Picture, effect: str) -> ClusterState | None:
    """Return the state by alerts on ZooKeeper or Kontrast itself that hide nothing."""
    for row in picture.alerts:
        if is_own(row) and row.state == "open" and row.severity is not Severity.INFO:
            event = event_of(row.cause)
            return ClusterState(
                state=state,
                event=capital(event),
                since=picture.since_wall(row.since_ms),
                effect=effect,
                first_step=first_sentence(row.action),
            )
    return None


def in_counts(counts: Counts) -> str:
    """Return how many partitions clients can use, in a sentence."""
    for count, fact in ((counts.leaderless, Fact.WITHOUT_LEADER), (counts.under_min_isr, Fact.REJECTS_ACKS_ALL)):
        if count:
            return f"{counted(count, 'partition')} of {counts.partitions:,} {fact.predicate(count)}."
    if not counts.partitions:
        return f"The cluster has no {'partitions' if counts.topics else 'topic'}."
    online, lacking = all_of(counts.partitions, "partition", "is"), counts.under_replicated
    online = f"{capital(online)} online"
    if not lacking:
        return f"{online} and in sync."
    return f"{online}. {lacking:,} {Fact.UNDER_REPLICATED.predicate(lacking)}."


def count_brokers_away(row: GaugesRow, live: Collection[int]) -> int:
    """Return how many brokers with replicas are not live. A broker that never registered is not away but a wrong id."""
    others = {*live, *row.status.never_registered}
    return sum(broker not in others for broker, replicas in row.replicas_by_broker.items() if replicas)


def counts_of(row: GaugesRow, brokers_away: int) -> Counts:
    """Return the counts that a row of gauges has, with the number of brokers away, which the row lacks."""
    return Counts(
        brokers=row.active_brokers,
        brokers_away=brokers_away,
        topics=row.topics,
        partitions=row.partitions,
        leaderless=row.leaderless_partitions,
        under_min_isr=row.under_min_isr_partitions,
        under_replicated=row.under_replicated_partitions,
        at_min_isr=row.at_min_isr_partitions,
        reassigning=row.reassigning_partitions,
        preferred_imbalance=row.preferred_replica_imbalance,
        topics_to_delete=row.topics_to_delete,
    )
