"""Partitions that count as Offline although ZooKeeper names a live leader.

The controller never took these partitions offline. Their broker was back before it was missed or only seemed to shut
down, or the controller loaded the cluster after another controller had elected the leader.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import partial
from typing import Final

from msgspec.structs import replace

from controller.contract.ids import BrokerId, TopicPartition
from controller.model.context import FOLLOWING
from controller.model.event import Event, EventKind
from controller.model.leadership import AnyAction, StateChange
from controller.model.mutable_state import MutableState
from controller.rules.states import PartitionState
from controller.transaction.transaction import Transaction
from wording.sentences import listed, plural

RULE: Final = "never-missed"


def count_as_online_after(tx: Transaction, event: Event, tps: Iterable[TopicPartition]) -> None:
    """Let the partitions be Online again that a live broker leads, after the event's writes were given up.

    A failover has published no change to Offline, because the new controller loaded the partition as Offline. So none
    is taken back (`PartitionStateMachine.initializePartitionState`).
    """
    if event.kind is not EventKind.CONTROLLER_FAILOVER:
        count_as_online(tx, tps)
        return
    for tp in tps:
        if _is_led(tx.state, tp):
            partition = tx.state.topics[tp.topic].partitions[tp.partition]
            tx.state.put_partition(tp, replace(partition, state=PartitionState.ONLINE))


def let_stay(tx: Transaction, brokers: Iterable[BrokerId]) -> None:
    """Let brokers lead on that seemed to shut down, and take back that this took partitions offline."""
    for broker in [broker for broker in brokers if broker in tx.header.shutdowns.under_way]:
        tx.header.shutdowns.end((broker,))
        tps = tx.state.hosted_by(broker) if tx.header.phase is FOLLOWING else ()  # the end of a read sets them up
        for tp in tps:
            replicas = tx.state.topics[tp.topic].partitions[tp.partition].replicas
            tx.events.take_back(tp, partial(_is_by_shutdown, tx, replicas))
        count_as_online(tx, tps, f"broker {broker} does not shut down")


def _is_by_shutdown(tx: Transaction, replicas: tuple[BrokerId, ...], action: AnyAction) -> bool:
    """Return whether a failure of other brokers than the partition's took it offline, because its leader shuts down."""
    if not isinstance(action, StateChange) or action.replica is not None or action.to_state != PartitionState.OFFLINE:
        return False
    failed = tx.events.open_event(action.event).failed_brokers
    return bool(failed) and failed.keys().isdisjoint(replicas)


def count_as_online(tx: Transaction, tps: Iterable[TopicPartition], cause: str = "") -> None:
    """Let the partitions among these be Online again that a live broker leads, in an event of this cause."""
    led = {tp: tx.state.topics[tp.topic].partitions[tp.partition] for tp in tps}
    led = {tp: partition for tp, partition in led.items() if _is_led(tx.state, tp)}
    if not led:
        return
    leaders = sorted({partition.zk_state.leader for partition in led.values() if partition.zk_state})
    missed = f"{listed(leaders, 'was')} back before the controller missed {plural(len(leaders), 'it', 'them')}"
    with tx.events.inferring(RULE):
        tx.events.begin(EventKind.BROKER_CHANGE, cause or missed)
    tx.events.begin_batch()
    for tp, partition in led.items():
        states = {"from_state": partition.state, "to_state": PartitionState.ONLINE}
        change = StateChange(*tx.events.place(), replica=None, **states, written=True, value=partition.zk_state)
        tx.events.queue(tp, replace(partition, state=PartitionState.ONLINE), change)


def _is_led(state: MutableState, tp: TopicPartition) -> bool:
    partition = state.topics[tp.topic].partitions[tp.partition]
    value = partition.zk_state
    return partition.state is PartitionState.OFFLINE and value is not None and state.can_lead(value.leader, partition)
