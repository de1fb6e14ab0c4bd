"""Context of a cluster from the rows that the job published about it.

The rows carry each fact that a question depends on, so the context answers like the job's own. It lacks memories
that only explain later writes, such as planned requests, deposed controllers, and a broker's departures before the last
departure.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from itertools import chain
from typing import Final

from msgspec.structs import replace

from controller.contract.gauges_row import ClusterStatus, GaugesRow, PendingEvent
from controller.contract.ids import UNKNOWN_ZXID, BrokerEpoch, BrokerId, ControllerEpoch, LeaderEpoch
from controller.contract.leader_and_isr import LeaderAndIsr
from controller.contract.metadata_rows import (
    Assignment,
    BrokerRow,
    ControllerRow,
    MetadataRow,
    MigrationRow,
    PartitionDetails,
    PartitionRow,
    TopicRow,
)
from controller.contract.problem import Problem
from controller.contract.records import Position
from controller.model.alert_state import EXAMPLES_NAMED
from controller.model.brokers import Broker, Departure
from controller.model.context import FOLLOWING, Context, Header
from controller.model.controllership import InItsName, Ownership
from controller.model.event import EventKind, StoredEvent
from controller.model.leadership import AnyAction, BumpLeaderEpoch, KnownWrite
from controller.model.migration import Claim, Migration
from controller.model.topics import MutableTopics, OverdueElection, Partition, Topic, Topics, but_all_online
from controller.rules.assignment import ReplicaAssignment
from controller.rules.migration_phases import MigrationPhase
from controller.rules.releases import Evidence, profile_of, read_release
from controller.rules.states import PARTITION_WORDS, REPLICA_WORDS, PartitionState, ReplicaState
from controller.view.counting import count_gauges
from controller.view.health import absent_in_sync
from controller.view.partition_issues import index_issues
from controller.view.rows import DELETION_HELD, DELETION_STARTED, DELETION_WAITING
from controller.view.state_epochs import count_state_epochs, never_elected

_STATES: Final = {word: PartitionState(state) for state, word in PARTITION_WORDS.items()}
_REPLICA_STATES: Final = {word: ReplicaState(state) for state, word in REPLICA_WORDS.items()}
_NO_DETAILS: Final = PartitionDetails()
_KINDS: Final = {kind.value: kind for kind in EventKind}
_NOT_NAMED: Final = "an event that the rows do not name"


def context_of_rows(empty: Context, rows: Iterable[MetadataRow], gauges: GaugesRow, *, counted: bool = True) -> Context:
    """Build the context from the newest row of each subject and the newest gauges. `empty` is a context without facts.

    Without the rows of some partitions, the context and its counts lack these. So a question about one subject may
    leave out all counts (`counted`).
    """
    header, topics = empty.header.copy(), empty.topics.mutable_copy()
    partitions: dict[str, list[PartitionRow]] = {}
    known: dict[str, TopicRow] = {}
    for row in rows:
        match row:
            case PartitionRow():
                partitions.setdefault(row.topic, []).append(row)
            case TopicRow():
                known[row.topic] = row
            case BrokerRow():
                _take_broker(header, row)
            case ControllerRow():
                _take_controller(header, row)
            case _:
                _take_migration(header, row)
    _take_edit(header)
    header.position, header.zxid = Position(gauges.generation, gauges.seq), gauges.zxid
    header.time_ms, header.phase = gauges.time_ms, FOLLOWING
    header.feed.session, header.feed.watch_mode = gauges.session, gauges.watch_mode
    header.former.changes = gauges.controller_changes
    header.ensemble.newest = gauges.ensemble
    _take_status(header, gauges.status)
    _take_events(header, gauges.status.pending, chain.from_iterable(partitions.values()))
    _take_topics(header, topics, known, partitions)
    frozen = topics.freeze()
    if counted:
        _count(header, frozen, gauges.status.never_registered)
    return Context(header, frozen)


def _take_status(header: Header, status: ClusterStatus) -> None:
    """Give the header the facts of the status. Its controller and controller epoch are known already."""
    header.read.began_ms = status.read_ms
    header.term.active, header.term.broker = status.acts, status.term_broker
    header.term.epoch = ControllerEpoch(status.term_epoch)
    header.term.duplicate_topic_ids = status.duplicate_topic_ids
    header.triggers.reassign, header.triggers.preferred = status.reassign, status.preferred
    header.triggers.reassign_unwatched = status.reassign_unwatched
    header.former.poisoned = {broker: BrokerEpoch(epoch) for broker, epoch in status.poisoned.items()}
    header.shutdowns.under_way = status.shutting_down
    known = {name: n for name, n in status.evidence.items() if name in Evidence.__struct_fields__}
    header.configuration.evidence = Evidence(**known)
    header.configuration.given, header.configuration.dynamic = status.settings, status.dynamic_settings
    header.expect(profile_of(read_release(status.release)) if status.release else None)
    header.configuration.unclean_as_judged = header.allows_unclean_election


def _take_broker(header: Header, row: BrokerRow) -> None:
    broker = Broker(
        epoch=BrokerEpoch(row.epoch),
        session=row.session,
        since_ms=row.since_ms,
        endpoints=row.endpoints,
        rack=row.rack,
        inferred=row.inferred,
        least_release=None if row.least_release is None else read_release(row.least_release),
    )
    if row.registered or row.inferred:
        header.brokers = {**header.brokers, row.broker: broker}
    else:
        gone = Departure(row.left_zxid, row.since_ms, bool(row.left_in_order), broker)
        header.departures.last = {**header.departures.last, row.broker: gone}


def _take_controller(header: Header, row: ControllerRow) -> None:
    header.controller, header.controller_epoch = row.broker, ControllerEpoch(row.epoch)
    header.term.since_ms, header.term.session = row.since_ms, row.session
    of_broker = Ownership.OVERWRITTEN if row.overwritten else Ownership.ELECTED
    header.term.ownership = of_broker if row.kraft_epoch < 0 else Ownership.KRAFT


def _take_edit(header: Header) -> None:
    """Let a controller act whose /controller was created again without a session."""
    registered = header.brokers.get(header.controller)
    if registered is not None and header.term.session == 0 and header.term.ownership is Ownership.ELECTED:
        header.term.session = registered.session
        header.term.note_edit(InItsName(UNKNOWN_ZXID, 0))


def _take_migration(header: Header, row: MigrationRow) -> None:
    header.migration = Migration(
        phase=MigrationPhase(row.phase),
        since_ms=row.since_ms,
        seen=True,
        exists=row.exists,
        offset=row.offset,
        pulse_ms=row.pulse_ms or 0,
        alive_ms=row.pulse_ms or 0,
        claim=Claim(row.leader, row.kraft_epoch, time_ms=row.since_ms),
        partitions_by_epoch={row.highest_state_epoch: 1} if row.highest_state_epoch >= 0 else {},
    )


def _take_events(header: Header, pending: Iterable[PendingEvent], rows: Iterable[PartitionRow]) -> None:
    """Give the header the events with due writes. The gauges have the number of writes of the oldest events."""
    due: dict[int, Counter[str]] = {}
    for row in rows:
        for event in _due_events(row):
            due.setdefault(event, Counter())[row.topic] += 1
    named = {event.id: event for event in pending}
    events: dict[int, StoredEvent] = {}
    for number in sorted(named.keys() | due.keys()):
        topics = due.get(number, Counter())
        unnamed = (EventKind.UNEXPLAINED.value, _NOT_NAMED, header.zxid, header.time_ms, topics.total())
        events[number] = _event(named.get(number) or PendingEvent(number, *unnamed), sorted(topics), header)
    header.events, header.next_event = events, max(events, default=-1) + 1


def _event(pending: PendingEvent, topics: Iterable[str], header: Header) -> StoredEvent:
    return StoredEvent(
        id=pending.id,
        kind=_KINDS.get(pending.event, EventKind.UNEXPLAINED),
        cause=pending.cause,
        zxid=pending.zxid,
        time_ms=pending.time_ms,
        epoch=header.controller_epoch,
        due=[pending.writes],
        begun=True,
        pending=pending.writes,
        topics=dict.fromkeys(topics),
        controller=header.controller,
    )


def _take_topics(
    header: Header, topics: MutableTopics, known: dict[str, TopicRow], partitions: dict[str, list[PartitionRow]]
) -> None:
    for name in known.keys() | partitions.keys():
        rows = sorted(partitions.get(name, ()), key=lambda row: row.partition)
        topic = _topic(known.get(name), deleting=any([row.deleting for row in rows]))
        taken = {row.partition: _partition(row, header) for row in rows}
        topics.put(name, replace(topic, partitions=taken))


def _topic(row: TopicRow | None, *, deleting: bool) -> Topic:
    if row is None:
        return Topic(queued_for_deletion=deleting)
    return Topic(
        topic_id=row.topic_id,
        min_insync_replicas=row.min_insync_replicas,
        unclean_election=row.unclean_election,
        queued_for_deletion=row.deletion is not None,
        deletion_started=row.deletion in (DELETION_STARTED, DELETION_WAITING),
        ineligible=row.deletion in (DELETION_HELD, DELETION_WAITING),
        request_removed=row.request_removed,
    )


def _partition(row: PartitionRow, header: Header) -> Partition:
    details, value = row.details or _NO_DETAILS, _value(row)
    owed, in_zookeeper = details.passed_over, details.assignment_in_zookeeper
    return Partition(
        replicas=row.replicas,
        replica_states=but_all_online(row.replicas, _replica_states(row)),
        state=_STATES[row.state],
        zk_state=value,
        queue=tuple(_due(row, value, header)),
        adding=row.adding_replicas,
        removing=row.removing_replicas,
        problem=None if row.problem is None else Problem(row.problem),
        problem_since_ms=row.problem_since_ms or 0,
        offline_dirs=details.offline_dirs,
        zk_assignment=None if in_zookeeper is None else _assignment(in_zookeeper),
        pending_assignments=tuple(map(_assignment, details.assignments_due)),
        passed_over=None
        if owed is None
        else OverdueElection(
            owed.leader, LeaderEpoch(owed.leader_epoch), ControllerEpoch(owed.controller_epoch), owed.since_ms
        ),
        in_sync_lacking=row.in_sync_lacking,
        absent=absent_in_sync(value, header),
    )


def _value(row: PartitionRow) -> LeaderAndIsr | None:
    """Return the state in ZooKeeper. A partition without a state has no leader epoch."""
    if row.leader_epoch < 0:
        return None
    recovering = row.details is not None and row.details.recovering
    leader_epoch, controller_epoch = LeaderEpoch(row.leader_epoch), ControllerEpoch(row.controller_epoch)
    return LeaderAndIsr(row.leader, leader_epoch, row.isr, controller_epoch, row.partition_epoch, recovering=recovering)


def _assignment(assigned: Assignment) -> ReplicaAssignment:
    return ReplicaAssignment(assigned.replicas, assigned.adding, assigned.removing)


def _replica_states(row: PartitionRow) -> dict[BrokerId, ReplicaState]:
    states = dict.fromkeys(row.replicas, ReplicaState.ONLINE)
    for word, brokers in row.details.replica_states.items() if row.details is not None else ():
        states.update(dict.fromkeys(brokers, _REPLICA_STATES[word]))
    return {broker: state for broker, state in states.items() if state is not ReplicaState.NON_EXISTENT}


def _due_events(row: PartitionRow) -> tuple[int, ...]:
    """Return the event of each due write."""
    return () if row.predicted_leader is None or row.details is None else row.details.due_events


def _due(row: PartitionRow, value: LeaderAndIsr | None, header: Header) -> Iterator[AnyAction]:
    """Yield the due writes. The last write gives the predicted state, the others only count."""
    events = _due_events(row)
    if row.predicted_leader is None or not events:
        return
    isr = row.predicted_isr or ()
    unclean = value is not None and row.predicted_leader >= 0 and row.predicted_leader not in value.isr
    known = LeaderAndIsr(
        row.predicted_leader,
        LeaderEpoch(row.predicted_leader_epoch or 0),
        isr,
        header.controller_epoch,
        recovering=unclean or (value is not None and value.recovering),
    )
    *before, last = events
    for at, event in enumerate(before):
        yield BumpLeaderEpoch(event, 0, at)
    yield KnownWrite(last, 0, len(before), known)


def _count(header: Header, topics: Topics, never_registered: Iterable[BrokerId]) -> None:
    rules = header.counting_rules
    counts = count_gauges(topics, rules)
    # The rows lack a part of the evidence on these brokers, so the core's verdict counts.
    counts.unproven_on |= {broker: counts.replicas_on.get(broker, 0) for broker in never_registered}
    header.tally.judged_by, header.tally.gauges = rules, counts
    header.tally.issues, header.tally.offline_by_topic = index_issues(topics, header)
    if header.migration.seen and header.partitions:
        header.migration.partitions_by_epoch = count_state_epochs(topics)
        header.migration.never_elected = never_elected(topics, header.term.epoch, EXAMPLES_NAMED)
