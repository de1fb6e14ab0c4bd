"""Partition state machine, with the controller's writes and requests when partitions change state.

It works like Kafka 3.9's `ZkPartitionStateMachine`, with the legal states from `rules/states.py` and the choice of
leaders from `rules/election.py`. A partition that may not enter a state keeps its own, and the others change.
"""

from __future__ import annotations

from collections.abc import Iterable

from msgspec.structs import replace

from controller.contract.ids import BrokerId, TopicPartition
from controller.contract.leader_and_isr import LeaderAndIsr
from controller.machines import replica_machine
from controller.machines.replica_machine import Replica
from controller.model.leadership import BumpLeaderEpoch, Create, Elect, StateChange
from controller.model.mutable_state import MutableState
from controller.model.topics import Partition
from controller.rules.election import Strategy, recipients
from controller.rules.states import PARTITION_VALID_PREVIOUS, PartitionState, ReplicaState
from controller.transaction.pending_events import PendingEvents
from controller.transaction.transaction import RequestBatch, Transaction

_WAITING = (PartitionState.NEW, PartitionState.OFFLINE)


def enter_state(tx: Transaction, tps: Iterable[TopicPartition], target: PartitionState) -> None:
    """Change partitions to New, Offline or NonExistent, without writes or requests."""
    tx.events.begin_batch()
    for tp in tps:
        partition = _valid(tx.state, tp, target)
        if partition is not None:
            tx.events.queue(
                tp, replace(partition, state=target), _state_change(tx.events, partition, target, written=False)
            )


def bring_online(tx: Transaction, tps: Iterable[TopicPartition], *, allow_unclean: bool | None = None) -> int:
    """Bring partitions online, Offline ones by an offline election and New ones by their creation.

    Return the number of elections that will succeed. `allow_unclean` None means the topic's settings.
    """
    tx.events.begin_batch()
    batch = RequestBatch(tx)
    elected = 0
    for tp in tps:
        partition = _valid(tx.state, tp, PartitionState.ONLINE)
        if partition is None:
            continue
        if partition.state is PartitionState.NEW:
            _create(tx, batch, tp, partition)
        else:
            intent = _offline_election(tx, tp, partition, allow_unclean)
            elected += _elect(tx, batch, tp, partition, intent)
    batch.send()
    return elected


def elect(tx: Transaction, tps: Iterable[TopicPartition], strategy: Strategy) -> list[TopicPartition]:
    """Elect leaders by a strategy that moves leadership between live brokers. Return the successful partitions."""
    tx.events.begin_batch()
    batch = RequestBatch(tx)
    elected = []
    for tp in tps:
        partition = _valid(tx.state, tp, PartitionState.ONLINE)
        if partition is None:
            continue
        intent = election_of(tx, partition, strategy)
        if _elect(tx, batch, tp, partition, intent):
            elected.append(tp)
    batch.send()
    return elected


def stay_online(tx: Transaction, tps: Iterable[TopicPartition]) -> None:
    """Change partitions to Online whose election proves needless, without writes or requests."""
    tx.events.begin_batch()
    staying = {tp: partition for tp in tps if (partition := _valid(tx.state, tp, PartitionState.ONLINE))}
    for tp, partition in staying.items():
        tx.events.queue(tp, partition, _state_change(tx.events, partition, PartitionState.ONLINE, written=True))


def election_of(tx: Transaction, partition: Partition, strategy: Strategy) -> Elect:
    """Return the election of a partition by a strategy, with the controller's present knowledge."""
    shutting_down = tx.header.shutdowns.under_way
    registered = tuple(replica for replica in partition.replicas if replica in tx.header.brokers)
    by_shutdown = strategy is Strategy.CONTROLLED_SHUTDOWN
    candidates = partition.assignment.target if strategy is Strategy.REASSIGN else partition.replicas
    return Elect(
        *tx.events.place(),
        strategy,
        candidates,
        registered if by_shutdown else tuple(r for r in registered if tx.state.is_online(r, partition)),
        shutting_down=tuple(sorted(shutting_down)) if by_shutdown else (),
    )


def _receivers(state: MutableState, partition: Partition, intent: Elect) -> tuple[BrokerId, ...]:
    online = intent.online
    profile = state.header.profile
    only_live = profile.shutdown_elects_among_live and not profile.shutdown_sends_to_leaving_broker
    if intent.strategy is Strategy.CONTROLLED_SHUTDOWN and only_live:
        online = tuple(replica for replica in online if state.is_online(replica, partition))
    return recipients(intent.strategy, intent.candidates, online)


def _valid(state: MutableState, tp: TopicPartition, target: PartitionState) -> Partition | None:
    partition = state.partition(tp)
    if partition is not None and partition.state in PARTITION_VALID_PREVIOUS[target]:
        return partition
    return None


def _state_change(events: PendingEvents, partition: Partition, target: PartitionState, *, written: bool) -> StateChange:
    return StateChange(*events.place(), None, partition.state, target, written)


def _create(tx: Transaction, batch: RequestBatch, tp: TopicPartition, partition: Partition) -> None:
    live = tuple(replica for replica in partition.replicas if tx.state.is_online(replica, partition))
    if not live or partition.zk_state is not None:
        return  # it stays New, because it needs a live replica, and an existing state is never overwritten
    create = Create(*tx.events.place(), live)
    change = _state_change(tx.events, partition, PartitionState.ONLINE, written=True)
    tx.events.queue(tp, replace(partition, state=PartitionState.ONLINE), create, change)
    batch.leader_and_isr(live, tp, is_new=True, read=True)


def _offline_election(tx: Transaction, tp: TopicPartition, partition: Partition, allow_unclean: bool | None) -> Elect:
    by_settings = tx.header.allows_unclean_election_of(tx.state.topic(tp.topic))
    return Elect(
        *tx.events.place(),
        Strategy.OFFLINE,
        partition.replicas,
        tuple([replica for replica in partition.replicas if tx.state.is_online(replica, partition)]),
        allow_unclean=by_settings if allow_unclean is None else allow_unclean,
    )


def _elect(tx: Transaction, batch: RequestBatch, tp: TopicPartition, partition: Partition, intent: Elect) -> bool:
    epoch = tx.header.controller_epoch
    value = partition.value(epoch)
    refused = value is not None and value.is_refused_in(epoch)
    if refused or intent.apply(value, epoch) is None:
        return False  # without an electable replica the partition keeps its state
    change = _state_change(tx.events, partition, PartitionState.ONLINE, written=True)
    tx.events.queue(tp, replace(partition, state=PartitionState.ONLINE), intent, change)
    batch.leader_and_isr(_receivers(tx.state, partition, intent), tp, is_new=False, read=True)
    return True


def bump(tx: Transaction, tp: TopicPartition) -> Partition | None:
    """Increment the leader epoch. Return None for a partition without a state."""
    partition = tx.state.partition(tp)
    if partition is None or partition.value(tx.header.controller_epoch) is None:
        return None
    tx.events.begin_batch()
    return tx.events.queue(tp, partition, BumpLeaderEpoch(*tx.events.place()))


def create(tx: Transaction, tps: list[TopicPartition]) -> None:
    """Bring new partitions and their replicas online."""
    partitions = {tp: tx.state.partition(tp) for tp in tps}
    replicas = [Replica(tp, broker) for tp, found in partitions.items() if found for broker in found.replicas]
    enter_state(tx, tps, PartitionState.NEW)
    replica_machine.enter_state(tx, replicas, ReplicaState.NEW)
    bring_online(tx, tps)
    replica_machine.enter_state(tx, replicas, ReplicaState.ONLINE)


def trigger_online(tx: Transaction) -> int:
    """Try to elect leaders for New and Offline partitions outside queued topics. Return the number of elections.

    As Kafka 3.9's `triggerOnlinePartitionStateChange`.
    """
    waiting = tx.state.unsettled(lambda partition: partition.state in _WAITING)
    return bring_online(tx, [tp for tp in waiting if not tx.state.topics[tp.topic].queued_for_deletion])


def initial_partition_state(state: MutableState, partition: Partition) -> PartitionState:
    """Return a partition's state when a controller loads it.

    It is New without a state znode, else its leader decides.
    """
    return _state_led_by(partition.value(state.header.controller_epoch), _working(state, partition))


def _working(state: MutableState, partition: Partition) -> frozenset[BrokerId]:
    return state.live.difference(partition.offline_dirs) if partition.offline_dirs else state.live


def _state_led_by(value: LeaderAndIsr | None, working: frozenset[BrokerId]) -> PartitionState:
    if value is None:
        return PartitionState.NEW
    return PartitionState.ONLINE if value.leader in working else PartitionState.OFFLINE


def with_initial_states(tx: Transaction, partition: Partition, offline_state: ReplicaState) -> Partition:
    """Return the partition as a controller loads it. Replicas on dead brokers get the state `offline_state`."""
    working = _working(tx.state, partition)
    states = None
    if not working.issuperset(partition.replicas):
        states = {at: ReplicaState.ONLINE if at in working else offline_state for at in partition.replicas}
    state = _state_led_by(partition.value(tx.header.controller_epoch), working)
    if state is partition.state and states == partition.replica_states:
        return partition
    return replace(partition, state=state, replica_states=states)
