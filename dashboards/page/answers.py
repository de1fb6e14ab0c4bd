"""Answers of the live page: structs that templates show and the JSON interface gives, made from the newest rows."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from itertools import groupby
from typing import Final

import msgspec
from msgspec.structs import replace

from controller.contract.alert_row import AlertRow, Severity
from controller.contract.gauges_row import GaugesRow
from controller.contract.ids import TopicPartition
from controller.contract.metadata_rows import BrokerRow, PartitionRow, TopicRow
from controller.contract.problem import UNUSABLE_WORDS, Problem
from controller.restore.context_of_rows import context_of_rows
from controller.restore.stored_context import new_context
from controller.rules.migration_phases import MigrationPhase
from controller.view.migration import DONE
from controller.view.types import Context
from dashboards.following.cluster_at import ClusterAt, cluster_at
from dashboards.following.reading import Reading
from dashboards.following.view import ClusterSnapshot, View, problem_since_ms
from questions.check import Health, check, counts_of
from questions.explain.broker import explain_broker
from questions.explain.controller import explain_controller
from questions.explain.explanation import Explanation
from questions.explain.partition import explain_partition
from questions.explain.topic import explain_topic
from questions.gathering import picture_of_rows
from questions.picture import Picture
from questions.timeline.selection import CONTROLLER_GROUP
from questions.whatif.scenario import brokers_in

_EXAMPLES: Final = 20
_ALERTS_OF_A_SEVERITY: Final = 50  # alerts name causes: more of them than a person reads only where those are unknown
TOPICS_OF_A_PAGE: Final = 50
PARTITIONS_OF_A_PAGE: Final = 100

TROUBLES: Final = {
    Problem.NO_LIVE_IN_SYNC_REPLICA: "Offline: no in-sync replica is live",
    Problem.ELECTION_DUE: "Without a leader until the controller elects one",
    Problem.LEADERLESS: "Without a leader, though an in-sync replica is live",
    Problem.NO_LIVE_REPLICA_AT_CREATION: "Never led: created while no replica was live",
    Problem.NOT_YET_CREATED: "New: the controller has yet to write their first state",
    Problem.UNDER_MIN_ISR: "Led, but refusing writes with acks=all (under min ISR)",
}
"""Why clients cannot use partitions, in a line."""


class PartitionLine(msgspec.Struct, frozen=True):
    """A partition in a list; `leader` -1 is none."""

    topic: str
    partition: int
    leader: int
    isr: tuple[int, ...]
    replicas: tuple[int, ...]
    problem: str | None
    since_ms: int | None  # when the problem began
    reason: str | None
    predicted_leader: int | None  # of the write that the controller has due, where it has one


class ProblemLine(msgspec.Struct, frozen=True):
    """The partitions with one problem: how many, and the oldest of them."""

    problem: str
    says: str
    count: int
    examples: tuple[PartitionLine, ...]


class BrokerLine(msgspec.Struct, frozen=True):
    """A broker in its rack."""

    broker: int
    registered: bool
    inferred: bool  # not registered: it lives in KRaft mode, as ISRs and leaders show
    is_controller: bool
    since_ms: int  # that it is registered, or away
    leaders: int
    replicas: int


class Rack(msgspec.Struct, frozen=True):
    """The brokers of a rack; without a name those that have none."""

    name: str | None
    brokers: tuple[BrokerLine, ...]


class WayToKRaft(msgspec.Struct, frozen=True):
    """Where the migration is, what comes next, and whether one may still go back."""

    phase: str
    since_ms: int
    next_step: str
    rollback_sentence: str
    missing_brokers: tuple[int, ...]  # with replicas, and neither registered nor in KRaft mode
    quorum: str  # what it says itself, or why it was not asked


class Overview(msgspec.Struct, frozen=True, kw_only=True):
    """A cluster on one screen; where `unknown` says why nothing is known of it, the rest is empty."""

    cluster: str
    unknown: str | None = None
    health: Health | None = None  # with the oldest findings of each severity
    alerts: int = 0  # that are open, named in `health` or not
    problems: tuple[ProblemLine, ...] = ()
    racks: tuple[Rack, ...] = ()
    pending_writes: int = 0  # that the controller must do, and ZooKeeper does not show yet
    agreement_of_last_hour: float | None = None
    agreement: float | None = None
    migration: WayToKRaft | None = None  # while one is under way, or left something


class TopicLine(msgspec.Struct, frozen=True):
    """A topic in a list."""

    topic: str
    partitions: int
    unusable: int
    under_min_isr: int
    under_replicated: int


class TopicList(msgspec.Struct, frozen=True):
    """Topics in the order of their names; `next` is the name to go on after, None at the end."""

    topics: tuple[TopicLine, ...]
    next: str | None


class TopicAnswer(msgspec.Struct, frozen=True):
    """A topic explained, with some of its partitions; `next` is the number to go on with, None at the end."""

    explanation: Explanation
    partitions: tuple[PartitionLine, ...]
    next: int | None


class BrokerAnswer(msgspec.Struct, frozen=True):
    """A broker explained, with the partitions it hosts that clients cannot use."""

    explanation: Explanation
    problems: tuple[ProblemLine, ...]


class Answers:
    """Answers from what is followed; none needs more of a cluster than it shows.

    `at_ms` is a moment that is kept, None the present.
    """

    def __init__(self, view: View, reading: Reading, quorum: Callable[[str], str]) -> None:
        self._view = view
        self._reading = reading
        self._quorum = quorum

    def fleet(self, now_ms: int) -> tuple[Overview, ...]:
        """Every cluster, in the order of their names."""
        return tuple(self._overview(found, now_ms) for found in self._view.snapshot())

    def overview(self, cluster: str, now_ms: int) -> Overview | None:
        """The cluster on one screen; None where there is none of this name."""
        found = self._view.cluster(cluster)
        return None if found is None else self._overview(found, now_ms)

    def why_unknown(self, cluster: str, at_ms: int | None = None) -> str | None:
        """Why nothing can be said of the cluster, None where something can."""
        found = self._view.cluster(cluster)
        if found is None:
            return "there is no cluster of this name"
        unknown = self._why_unknown(found)
        if unknown is None and at_ms is not None and not self._view.was_ready(cluster, at_ms):
            return "no complete read of it had come through at that moment"
        return unknown

    def topics(self, cluster: str, prefix: str = "", after: str = "") -> TopicList:
        """A page of the cluster's topics that begin with `prefix`."""
        names = self._view.topic_names(cluster, prefix, after, TOPICS_OF_A_PAGE + 1)
        shown = names[:TOPICS_OF_A_PAGE]
        lines = tuple(_topic_line(name, self._view.partitions_of(cluster, name).values()) for name in shown)
        return TopicList(lines, shown[-1] if len(names) > len(shown) else None)

    def topic(self, cluster: str, topic: str, first: int = 0, at_ms: int | None = None) -> TopicAnswer | None:
        """The topic, and its partitions from `first` on; None where there is no such topic."""
        found = self._with_topic(cluster, topic, at_ms)
        picture = None if found is None else _picture_with(found, topic)
        if found is None or picture is None or picture.topic(topic) is None:
            return None
        rows = [row for row in found.partitions if row.partition >= first]
        more = rows[PARTITIONS_OF_A_PAGE].partition if len(rows) > PARTITIONS_OF_A_PAGE else None
        lines = tuple(map(_partition_line, rows[:PARTITIONS_OF_A_PAGE]))
        return TopicAnswer(explain_topic(picture, topic), lines, more)

    def partition(self, cluster: str, tp: TopicPartition, at_ms: int | None = None) -> Explanation | None:
        """The partition explained; None where there is no such partition."""
        found = self._with_topic(cluster, tp.topic, at_ms)
        picture = None if found is None else _picture_with(found, tp.topic)
        return None if picture is None or picture.partition(tp) is None else explain_partition(picture, tp)

    def broker(self, cluster: str, broker: int, at_ms: int | None = None) -> BrokerAnswer | None:
        """The broker explained; None where nothing in the cluster names it."""
        # Of 200,000 partitions a broker hosts some thousands: the others are left out where that is quickest.
        held_now = [row for row in self._view.partitions(cluster).values() if broker in row.replicas]
        at_moment = cluster_at(self._view, cluster, at_ms, held_now)
        found = None if at_moment is None else at_moment.snapshot
        if at_moment is None or found is None or found.gauges is None:
            return None
        known = {row.broker: row.registered for row in found.brokers}
        if broker not in known and broker not in found.gauges.replicas_by_broker:
            return None
        holding = [row for row in at_moment.partitions if broker in row.replicas]
        about = [row for row in found.open_alerts if broker in (row.broker, *row.brokers)]
        explanation = explain_broker(_picture(found, _oldest(about), holding), broker)
        return BrokerAnswer(explanation, tuple(_problems(found, broker)))

    def controller(self, cluster: str, at_ms: int | None = None) -> Explanation | None:
        """The controller explained; None where there is no such cluster."""
        at_moment = cluster_at(self._view, cluster, at_ms, topics=self._view.topics(cluster))
        if at_moment is None or at_moment.snapshot.gauges is None:
            return None
        about = [row for row in at_moment.snapshot.open_alerts if row.group == CONTROLLER_GROUP]
        deleting = [row for row in at_moment.topics if row.deletion is not None]
        return explain_controller(_picture(at_moment.snapshot, _oldest(about), topics=deleting))

    def brokers_in(self, cluster: str, rack: str) -> tuple[int, ...]:
        """Registered brokers of the rack; raises UnknownBrokersError where it has none."""
        found = self._view.cluster(cluster)
        return () if found is None or found.gauges is None else brokers_in(_picture(found, ()).context, rack)

    def whole_context(self, cluster: str) -> Context | None:
        """The cluster with every partition, to be played on; made in seconds where there are 200,000."""
        found = self._view.cluster(cluster)
        if found is None or found.gauges is None:
            return None
        metadata = (*found.standing, *self._view.topics(cluster), *self._view.partitions(cluster).values())
        return context_of_rows(new_context(cluster), metadata, found.gauges)

    def _with_topic(self, cluster: str, topic: str, at_ms: int | None) -> ClusterAt | None:
        """The cluster with the topic's partitions in their order; None where the topic has none."""
        partitions = self._view.partitions_of(cluster, topic).values()
        found = cluster_at(self._view, cluster, at_ms, partitions, self._view.topics(cluster, topic))
        rows = () if found is None else [row for row in found.partitions if row.topic == topic]
        if found is None or not rows or found.snapshot.gauges is None:
            return None
        topics = tuple(row for row in found.topics if row.topic == topic)
        return ClusterAt(found.snapshot, tuple(sorted(rows, key=lambda row: row.partition)), topics)

    def _why_unknown(self, found: ClusterSnapshot) -> str | None:
        state = self._reading.snapshot()
        if not state.source_up:
            return "the outputs cannot be read: what the cluster does is not known (see the log of kontrast serve)"
        if not state.caught_up:
            return "what the outputs hold is still being read"
        if not state.vouches_for(found.cluster):
            return "rows are missing or of a newer Kontrast: see /readyz and `kontrast status`"
        return _why_unread(found)

    def _overview(self, found: ClusterSnapshot, now_ms: int) -> Overview:
        unknown = self._why_unknown(found)
        if unknown is not None:
            return Overview(cluster=found.cluster, unknown=unknown)
        return replace(overview_of(found, now_ms), migration=self._way_to_kraft(found))

    def _way_to_kraft(self, found: ClusterSnapshot) -> WayToKRaft | None:
        row = found.migration
        if row is None or (row.phase == MigrationPhase.ZOOKEEPER.value and row.rollback == DONE):
            return None
        phase, quorum = row.phase.replace("_", " "), self._quorum(found.cluster)
        return WayToKRaft(phase, row.since_ms, row.next_step, row.rollback_sentence, row.missing_brokers, quorum)


def overview_of(found: ClusterSnapshot, now_ms: int | None) -> Overview:
    """The cluster on one screen; `now_ms` is the present, None where the past is shown."""
    unknown, gauges = _why_unread(found), found.gauges
    if unknown is not None or gauges is None:
        return Overview(cluster=found.cluster, unknown=unknown)
    live = {row.broker for row in found.brokers if row.registered or row.inferred}
    away = sum(broker not in live for broker, replicas in gauges.replicas_by_broker.items() if replicas)
    return Overview(
        cluster=found.cluster,
        health=check(_picture(found, _oldest(found.open_alerts)), now_ms, counts_of(gauges, away)),
        alerts=len(found.open_alerts),
        problems=tuple(_problems(found)),
        racks=_racks(found.brokers, gauges),
        pending_writes=gauges.pending_writes,
        agreement_of_last_hour=gauges.agreement_of_last_hour,
        agreement=gauges.agreement,
    )


def _why_unread(found: ClusterSnapshot) -> str | None:
    if found.ready and found.controller is not None:
        return None
    return "no complete read of the cluster has come through yet: see `kontrast status`"


def _picture(
    found: ClusterSnapshot,
    alerts: Collection[AlertRow],
    partitions: Iterable[PartitionRow] = (),
    topics: Iterable[TopicRow] = (),
) -> Picture:
    """Make the cluster's picture with these of its alerts, partitions and topics; it must have gauges."""
    assert found.gauges is not None, "a cluster that was not read"
    metadata = (*found.standing, *topics, *partitions)
    empty = new_context(found.cluster)
    return picture_of_rows(empty, metadata, found.gauges, alerts, as_of_ms=found.heartbeat_ms)


def _picture_with(found: ClusterAt, topic: str) -> Picture:
    return _picture(found.snapshot, _naming(topic, found.snapshot.open_alerts), found.partitions, found.topics)


def _oldest(alerts: Iterable[AlertRow]) -> list[AlertRow]:
    """As many of each severity as a page has room for; these come the oldest first."""
    by_severity: dict[Severity, list[AlertRow]] = {severity: [] for severity in Severity}
    for row in alerts:
        if len(by_severity[row.severity]) < _ALERTS_OF_A_SEVERITY:
            by_severity[row.severity].append(row)
    return [row for rows in by_severity.values() for row in rows]


def _naming(topic: str, alerts: Iterable[AlertRow]) -> list[AlertRow]:
    """The alerts that name the topic or a partition of it."""
    begins = f"{topic}-"

    def names(row: AlertRow) -> bool:
        return topic in (row.topic, *row.examples) or any(example.startswith(begins) for example in row.examples)

    return list(filter(names, alerts))


def _problems(found: ClusterSnapshot, broker: int | None = None) -> Iterator[ProblemLine]:
    """The worst first, each with its oldest; only of what this broker hosts (None: of all)."""
    by_problem: dict[str, list[PartitionRow]] = {}
    for row in (*found.unusable, *found.under_min_isr):
        if broker is None or broker in row.replicas:
            by_problem.setdefault(str(row.problem), []).append(row)
    for problem, says in TROUBLES.items():
        rows = by_problem.get(problem.value, ())
        if rows:
            yield ProblemLine(problem.value, says, len(rows), tuple(map(_partition_line, rows[:_EXAMPLES])))


def _racks(brokers: Sequence[BrokerRow], gauges: GaugesRow) -> tuple[Rack, ...]:
    def rack(row: BrokerRow) -> str:
        return row.rack or ""

    return tuple(
        Rack(name or None, tuple(_broker_line(row, gauges) for row in rows))
        for name, rows in groupby(sorted(brokers, key=rack), key=rack)
    )


def _broker_line(row: BrokerRow, gauges: GaugesRow) -> BrokerLine:
    return BrokerLine(
        row.broker,
        row.registered,
        row.inferred,
        row.broker == gauges.controller,
        row.since_ms,
        gauges.leaders_by_broker.get(row.broker, 0),
        gauges.replicas_by_broker.get(row.broker, 0),
    )


def _topic_line(name: str, rows: Iterable[PartitionRow]) -> TopicLine:
    problems = [row.problem for row in rows]
    return TopicLine(
        name,
        len(problems),
        sum(problem in UNUSABLE_WORDS for problem in problems),
        problems.count(Problem.UNDER_MIN_ISR.value),
        problems.count(Problem.UNDER_REPLICATED.value),
    )


def _partition_line(row: PartitionRow) -> PartitionLine:
    return PartitionLine(
        row.topic,
        row.partition,
        row.leader,
        row.isr,
        row.replicas,
        row.problem,
        None if row.problem is None else problem_since_ms(row),
        row.reason,
        row.predicted_leader,
    )
