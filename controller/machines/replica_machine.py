"""Replica state machine, with the controller's writes and requests when replicas change state.

It works like Kafka 3.9's `ZkReplicaStateMachine`, with the legal states from `rules/states.py`. A replica that may not
enter a state keeps its own, and the others change.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping
from itertools import chain, groupby
from typing import Final, NamedTuple

import msgspec
from msgspec.structs import replace

from controller.contract.ids import NO_LEADER, BrokerId, TopicPartition
from controller.contract.leader_and_isr import LeaderAndIsr
from controller.model.context import Header
from controller.model.leadership import AnyAction, RemoveFromIsr, StateChange, Write, with_cached_state
from controller.model.mutable_state import MutableState
from controller.model.topics import Partition
from controller.rules.states import ReplicaState
from controller.transaction.pending_events import PendingEvents
from controller.transaction.transaction import Receivers, RequestBatch, Transaction

_NEW: Final = ReplicaState.NEW
_ONLINE: Final = ReplicaState.ONLINE

Hosts = Mapping[TopicPartition, tuple[BrokerId, ...]]  # partitions, with brokers on which they have replicas


class Replica(msgspec.Struct, frozen=True, order=True, gc=False):
    """Name of a replica, made of a partition and a broker."""

    tp: TopicPartition
    broker: BrokerId


def enter_state(tx: Transaction, replicas: Iterable[Replica], target: ReplicaState) -> None:
    """Change replicas to a state, remove offline replicas from their ISR, and send the requests that brokers need.

    The controller handles replicas broker by broker, with one round of reads and writes each.
    """
    if target is _ONLINE:
        bring_online(tx, _valid_hosts(tx.state, replicas, target))
        return
    if tx.header.is_poisoned:
        return  # KAFKA-12315: every state change of a replica ends in an exception in this controller
    batch = RequestBatch(tx)
    by_broker = sorted(replicas, key=lambda replica: replica.broker)
    for _, group in groupby(by_broker, key=lambda replica: replica.broker):
        tx.events.begin_batch()
        for replica in group:
            _enter(tx, batch, replica, target)
    batch.send()


def _valid_hosts(state: MutableState, replicas: Iterable[Replica], target: ReplicaState) -> Hosts:
    valid = state.header.profile.replica_valid_previous(target)
    hosts: defaultdict[TopicPartition, tuple[BrokerId, ...]] = defaultdict(tuple)
    for replica in replicas:
        partition = state.partition(replica.tp)
        if partition is not None and partition.replica_state(replica.broker) in valid:
            hosts[replica.tp] += (replica.broker,)
    return hosts


def bring_online(tx: Transaction, hosts: Hosts) -> None:
    """Change the replicas of partitions on these brokers to Online, as `enter_state` does. Each change must be legal.

    A takeover does this to every replica of the cluster. Without writes, all changes of a partition are queued at once.
    The changes are first counted by broker, which gives their places, and then queued partition by partition.
    """
    if tx.header.is_poisoned:
        return
    places = {}
    for broker, count in sorted(Counter(chain.from_iterable(hosts.values())).items()):
        tx.events.begin_batch()
        places[broker] = tx.events.places(count)
    tx.events.affect(_topics_by_first_broker(hosts))
    batch, alike = RequestBatch(tx), dict[tuple[BrokerId, ...], _ComingOnline]()
    for tp, brokers in hosts.items():
        if brokers:
            partition = tx.state.topics[tp.topic].partitions[tp.partition]
            coming = alike.get(brokers)
            if coming is None or coming.states != partition.replica_states:
                coming = alike[brokers] = _coming_online(batch, brokers, partition)
            if coming.receivers and partition.has_value:
                batch.send_state(tp, coming.receivers)
            if coming.after is not None:
                partition = partition.with_replica_states(coming.after)
            changes = [StateChange(*next(places[at]), at, was, _ONLINE) for at, was in coming.changes]
            tx.events.queue_unwritten(tp, partition, changes)
    batch.send()


def _topics_by_first_broker(hosts: Hosts) -> Iterable[str]:
    """Return the topics in the order in which the controller comes to them, broker by broker."""
    first: dict[str, int] = {}
    for tp, brokers in hosts.items():
        if brokers:
            first[tp.topic] = min(first.get(tp.topic, brokers[0]), *brokers)
    return sorted(first, key=first.__getitem__)


class _ComingOnline(NamedTuple):
    """Common parts of replicas on the same brokers and in the same states when they change to Online."""

    states: dict[BrokerId, ReplicaState] | None
    after: dict[BrokerId, ReplicaState] | None  # None if unchanged
    changes: list[tuple[BrokerId, ReplicaState]]  # the brokers in order, with the states before
    receivers: Receivers | None  # of the partition's state, brokers whose replica is not new


def _coming_online(batch: RequestBatch, brokers: tuple[BrokerId, ...], partition: Partition) -> _ComingOnline:
    states = partition.all_replica_states
    changes = [(broker, states[broker]) for broker in sorted(brokers)]
    known = [broker for broker, state in changes if state is not _NEW]
    is_online = all(state is _ONLINE for _, state in changes)
    after = None if is_online else {**states, **dict.fromkeys(brokers, _ONLINE)}
    return _ComingOnline(
        partition.replica_states, after, changes, batch.receivers(known, is_new=False) if known else None
    )


def _enter(tx: Transaction, batch: RequestBatch, replica: Replica, target: ReplicaState) -> None:
    partition = tx.state.partition(replica.tp)
    state = partition.replica_state(replica.broker) if partition else ReplicaState.NON_EXISTENT
    valid = tx.header.profile.replica_valid_previous(target)
    if partition is None or state not in valid:
        return
    _ACTIONS[target](tx, batch, replica, partition, state)


_Action = Callable[[Transaction, RequestBatch, Replica, Partition, ReplicaState], None]


def _only_state(target: ReplicaState) -> _Action:
    def action(tx: Transaction, _: RequestBatch, replica: Replica, partition: Partition, state: ReplicaState) -> None:
        _change_state(tx.events, replica, partition, state, target)

    return action


def _to_new(tx: Transaction, batch: RequestBatch, replica: Replica, partition: Partition, state: ReplicaState) -> None:
    value = partition.value(tx.header.controller_epoch)
    if value is not None and value.leader == replica.broker:
        return
    _change_state(tx.events, replica, partition, state, ReplicaState.NEW)
    if value is not None:
        read = not tx.header.profile.sends_cached_state_to_new_replicas
        batch.leader_and_isr((replica.broker,), replica.tp, is_new=True, read=read)


def _to_offline(
    tx: Transaction, batch: RequestBatch, replica: Replica, partition: Partition, state: ReplicaState
) -> None:
    tp = replica.tp
    batch.stop_replica(replica.broker, tp, delete=False)
    value = partition.value(tx.header.controller_epoch)
    if value is None and not tx.header.profile.offlines_stateless_replicas:
        return
    if value is not None and value.is_refused_in(tx.header.controller_epoch):
        return
    in_sync = value is not None and replica.broker in value.isr
    in_sync = in_sync and not _is_removed(tx.header, partition.zk_state, replica.broker)
    if in_sync:
        remove = RemoveFromIsr(*tx.events.place(), replica.broker, _empties_isr(tx.state, tp))
        partition = tx.events.queue(tp, partition, remove)
    elif value is not None:
        # The state was read again, without a write. Requests before this were sent with the cached state.
        partition = replace(partition, cached=None, queue=_sent_before_a_write(partition))
    _change_state(tx.events, replica, partition, state, ReplicaState.OFFLINE, written=in_sync)
    topic = tx.state.topic(tp.topic)
    if value is None:
        batch.update_metadata(tp)
    elif topic is not None and not topic.queued_for_deletion:
        others = [other for other in partition.replicas if other != replica.broker]
        batch.leader_and_isr(others, tp, is_new=False, read=True)


def _is_removed(header: Header, shown: LeaderAndIsr | None, replica: BrokerId) -> bool:
    """Return whether a read may have found the state after its last member, which stays in the ISR, was removed."""
    if not header.read.is_ahead or shown is None or shown.controller_epoch != header.controller_epoch:
        return False
    return shown.leader == NO_LEADER and shown.isr == (replica,)


def _sent_before_a_write(partition: Partition) -> tuple[AnyAction, ...]:
    queue = partition.queue
    end = next((at for at, action in enumerate(queue) if isinstance(action, Write)), len(queue))
    return (*with_cached_state(queue[:end], partition.cached), *queue[end:])


def _empties_isr(state: MutableState, tp: TopicPartition) -> bool:
    header = state.header
    return header.allows_unclean_election_of(state.topic(tp.topic)) and not header.profile.keeps_last_isr_member


def _to_deletion_started(
    tx: Transaction, batch: RequestBatch, replica: Replica, partition: Partition, state: ReplicaState
) -> None:
    batch.stop_replica(replica.broker, replica.tp, delete=True)
    _change_state(tx.events, replica, partition, state, ReplicaState.DELETION_STARTED)


def _change_state(
    events: PendingEvents,
    replica: Replica,
    partition: Partition,
    state: ReplicaState,
    target: ReplicaState,
    *,
    written: bool = False,
) -> None:
    change = StateChange(*events.place(), replica.broker, state, target, written)
    events.queue(replica.tp, partition.with_replica_state(replica.broker, target), change)


_ACTIONS: Final[Mapping[ReplicaState, _Action]] = {
    ReplicaState.NEW: _to_new,
    ReplicaState.OFFLINE: _to_offline,
    ReplicaState.DELETION_STARTED: _to_deletion_started,
    ReplicaState.DELETION_SUCCESSFUL: _only_state(ReplicaState.DELETION_SUCCESSFUL),
    ReplicaState.DELETION_INELIGIBLE: _only_state(ReplicaState.DELETION_INELIGIBLE),
    ReplicaState.NON_EXISTENT: _only_state(ReplicaState.NON_EXISTENT),
}
