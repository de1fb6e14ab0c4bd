"""Rows of partitions, topics, brokers, the controller and state changes, and partition states in requests."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from controller.contract.effect_rows import EffectStamp, RequestedState, Transition
from controller.contract.ids import (
    NO_LEADER,
    UNKNOWN_ZXID,
    BrokerEpoch,
    BrokerId,
    ControllerEpoch,
    LeaderEpoch,
    PartitionId,
    TopicPartition,
)
from controller.contract.leader_and_isr import LeaderAndIsr
from controller.contract.metadata_rows import (
    Assignment,
    BrokerRow,
    ControllerRow,
    PartitionDetails,
    PartitionRow,
    PassedOver,
    TopicRow,
)
from controller.contract.problem import Problem
from controller.contract.row import Stamp
from controller.model.brokers import Broker
from controller.model.context import Header
from controller.model.controllership import Ownership
from controller.model.leadership import LEADER_DURING_DELETE, StateChange, StateEntry, StopEntry
from controller.model.topics import Partition, Topic
from controller.rules.assignment import ReplicaAssignment
from controller.rules.releases import Profile, release_word
from controller.rules.states import PARTITION_WORDS, REPLICA_WORDS, PartitionState, ReplicaState
from controller.view.health import back_in_sync_for_acks_all, takes_acks_all

# Value of a partition without a state.
_NO_VALUE: Final = LeaderAndIsr(NO_LEADER, LeaderEpoch(-1), (), ControllerEpoch(-1))
_ONLINE: Final = ReplicaState.ONLINE
_ONLINE_WORD: Final = PARTITION_WORDS[PartitionState.ONLINE]
_PROBLEM_WORDS: Final[Mapping[Problem | None, str | None]] = {None: None, **{each: each.value for each in Problem}}
_NO_DETAILS: Final = PartitionDetails()
_NEVER_SEEN: Final = Broker(BrokerEpoch(-1), 0, 0)

DELETION_QUEUED, DELETION_HELD, DELETION_STARTED, DELETION_WAITING = "queued", "held", "started", "waiting"


def state_change_row(
    tp: TopicPartition, change: StateChange, value: LeaderAndIsr | None, stamp: EffectStamp
) -> Transition:
    """Return the row of a partition's or a replica's state change. An election also shows the written state."""
    if change.replica is not None:
        from_state, to_state = REPLICA_WORDS[change.from_state], REPLICA_WORDS[change.to_state]
        return Transition(*stamp, "replica", from_state, to_state, tp.topic, tp.partition, change.replica)
    from_state, to_state = PARTITION_WORDS[change.from_state], PARTITION_WORDS[change.to_state]
    leader, leader_epoch, isr = _leadership_of(value if change.written else None)
    return Transition(
        *stamp, "partition", from_state, to_state, tp.topic, tp.partition, None, leader, leader_epoch, isr
    )


def led_state(tp: TopicPartition, entry: StateEntry, value: LeaderAndIsr | None, profile: Profile) -> RequestedState:
    """Return the partition state in this release's LeaderAndIsr, to brokers whose replica is not new."""
    if value is None:
        return RequestedState(tp.topic, tp.partition, replicas=entry.replicas)
    return RequestedState(
        tp.topic,
        tp.partition,
        value.leader,
        value.leader_epoch,
        value.isr,
        entry.replicas,
        value.controller_epoch,
        value.partition_epoch if value.partition_epoch >= 0 else None,
        int(value.recovering and profile.sends_recovery_states),
        False,
        *((entry.adding, entry.removing) if profile.reassigns_in_topic_znode else ()),
    )


def metadata_state(
    tp: TopicPartition,
    replicas: tuple[BrokerId, ...],
    offline: tuple[BrokerId, ...],
    value: LeaderAndIsr | None,
    *,
    deleted: bool,
) -> RequestedState:
    """Return the partition state in UpdateMetadata. During a deletion it is as Kafka's `LeaderAndIsr.duringDelete`."""
    if value is None:
        return RequestedState(tp.topic, tp.partition, replicas=replicas)
    leader, epoch, version = value.leader, value.leader_epoch, value.partition_epoch
    if deleted:
        leader, epoch, version = LEADER_DURING_DELETE, LeaderEpoch(0), 0
    return RequestedState(
        tp.topic,
        tp.partition,
        leader,
        epoch,
        value.isr,
        replicas,
        value.controller_epoch,
        version if version >= 0 else None,
        0,
        False,
        (),
        (),
        offline,
    )


def stop_state(tp: TopicPartition, entry: StopEntry, profile: Profile) -> RequestedState:
    """Return the partition state in this release's StopReplica."""
    if not profile.flags_each_stopped_replica:
        return RequestedState(tp.topic, tp.partition)
    return RequestedState(tp.topic, tp.partition, leader_epoch=entry.leader_epoch, delete_partition=entry.delete)


def _leadership_of(
    value: LeaderAndIsr | None,
) -> tuple[BrokerId | None, LeaderEpoch | None, tuple[BrokerId, ...] | None]:
    return (None, None, None) if value is None else (value.leader, value.leader_epoch, value.isr)


def partition_row(  # noqa: PLR0913 (all that it shows)
    tp: TopicPartition,
    partition: Partition,
    topic: Topic | None,
    due: LeaderAndIsr | None,
    reason: str | None,
    stamp: Stamp,
) -> PartitionRow:
    """Return the row of the partition as it is now, with the controller's due write.

    Without a topic the row is the tombstone.
    """
    value = partition.zk_state or _NO_VALUE
    leader, leader_epoch, isr = _leadership_of(due)
    return PartitionRow(
        *stamp,
        tp.topic,
        tp.partition,
        PARTITION_WORDS[partition.state],
        value.leader,
        value.leader_epoch,
        value.isr,
        partition.replicas,
        partition.adding,
        partition.removing,
        value.controller_epoch,
        value.partition_epoch,
        leader,
        leader_epoch,
        isr,
        _PROBLEM_WORDS[partition.problem],
        partition.problem_since_ms if partition.problem else None,
        reason,
        topic is not None and topic.queued_for_deletion,
        topic is not None and takes_acks_all(partition, topic),
        partition.in_sync_lacking,
        back_in_sync_for_acks_all(partition),
        _details(partition),
        topic is None,
    )


def ordinary_row(name: str, number: PartitionId, partition: Partition, stamp: Stamp) -> PartitionRow:
    """Return the row of an ordinary partition (`health.ordinary`)."""
    value = partition.zk_state or _NO_VALUE
    return PartitionRow(
        *stamp,
        name,
        number,
        _ONLINE_WORD,
        value.leader,
        value.leader_epoch,
        value.isr,
        partition.replicas,
        (),
        (),
        value.controller_epoch,
        value.partition_epoch,
        writable_acks_all=True,
    )


def _details(partition: Partition) -> PartitionDetails | None:
    value, queue = partition.zk_state, partition.queue
    recovering = value is not None and value.recovering
    states = _states_but_online(partition)
    owed = partition.passed_over
    more = partition.offline_dirs or partition.zk_assignment or partition.pending_assignments
    if not (states or queue or recovering or owed or more):
        return None  # as nearly all partitions
    details = PartitionDetails(
        recovering,
        states,
        partition.offline_dirs,
        tuple([action.event for action in queue if action.writes]),
        None if partition.zk_assignment is None else _assignment(partition.zk_assignment),
        tuple(map(_assignment, partition.pending_assignments)),
        None if owed is None else PassedOver(owed.leader, owed.leader_epoch, owed.controller_epoch, owed.since_ms),
    )
    return None if details == _NO_DETAILS else details


def _states_but_online(partition: Partition) -> dict[str, tuple[BrokerId, ...]]:
    """Return the brokers by the state of their replica, except for OnlineReplica. Most partitions have no entry."""
    by_state: dict[str, tuple[BrokerId, ...]] = {}
    for broker in (
        () if partition.replica_states is None else dict.fromkeys((*partition.replicas, *partition.replica_states))
    ):
        state = partition.replica_state(broker)
        if state is not _ONLINE:
            by_state[state.word] = (*by_state.get(state.word, ()), broker)
    return by_state


def _assignment(assigned: ReplicaAssignment) -> Assignment:
    return Assignment(assigned.replicas, assigned.adding, assigned.removing)


def topic_row(name: str, topic: Topic | None, stamp: Stamp) -> TopicRow:
    """Return the row of the topic as it is now. None gives the tombstone."""
    known = topic if topic is not None and topic.exists else None
    shown = known or Topic()
    return TopicRow(
        *stamp,
        topic=name,
        topic_id=shown.topic_id,
        min_insync_replicas=shown.min_insync_replicas,
        unclean_election=shown.unclean_election,
        partitions=len(shown.partitions),
        replication_factors=tuple(sorted({len(partition.replicas) for partition in shown.partitions.values()})),
        deletion=_deletion(shown),
        request_removed=shown.request_removed,
        removed=known is None,
    )


def _deletion(topic: Topic) -> str | None:
    if not topic.queued_for_deletion:
        return None
    if topic.deletion_started:
        return DELETION_WAITING if topic.ineligible else DELETION_STARTED
    return DELETION_HELD if topic.ineligible else DELETION_QUEUED


def broker_row(broker: BrokerId, header: Header, stamp: Stamp, *, forgotten: bool = False) -> BrokerRow:
    """Return the row of the broker as it is now, or with its last known registration if it is away."""
    now = header.brokers.get(broker)
    gone = header.departures.last.get(broker) if now is None else None
    shown = now or (gone.was if gone is not None else None) or _NEVER_SEEN
    since_ms = now.since_ms if now is not None else gone.time_ms if gone is not None else header.time_ms
    return BrokerRow(
        *stamp,
        broker=broker,
        registered=now is not None and not now.inferred,
        epoch=BrokerEpoch(-1) if now is None else now.epoch,
        since_ms=since_ms,
        session=0 if now is None else now.session,
        endpoints=shown.endpoints,
        rack=shown.rack,
        least_release=None if shown.least_release is None else release_word(shown.least_release),
        forgotten=forgotten,
        inferred=now is not None and now.inferred,
        left_in_order=None if gone is None else gone.in_order,
        left_zxid=UNKNOWN_ZXID if gone is None else gone.zxid,
    )


def controller_row(header: Header, stamp: Stamp) -> ControllerRow:
    """Return the row of the controller as it is now."""
    term = header.term
    return ControllerRow(
        *stamp,
        broker=header.controller,
        epoch=header.controller_epoch,
        since_ms=term.since_ms,
        session=0 if term.is_persistent else term.session,
        overwritten=term.ownership is Ownership.OVERWRITTEN,
        kraft_epoch=header.migration.claim.kraft_epoch if term.ownership is Ownership.KRAFT else -1,
    )
