"""Partition states that a KRaft controller writes, taken as they are, because KRaft's actions are not predicted."""

from __future__ import annotations

from msgspec.structs import replace

from controller.contract.ids import TopicPartition
from controller.contract.leader_and_isr import LeaderAndIsr
from controller.events import migration
from controller.inference.expected_writes import count_isr_change
from controller.model.mutable_state import MutableState
from controller.model.topics import Partition
from controller.rules.states import PartitionState, ReplicaState
from controller.transaction.transaction import Transaction


def state_written(tx: Transaction, tp: TopicPartition, partition: Partition, written: LeaderAndIsr) -> None:
    """Take a state that KRaft wrote, and its evidence of brokers that are not registered in ZooKeeper."""
    before = partition.zk_state
    tx.header.migration.alive_ms = tx.header.time_ms
    if before is not None and before.isr != written.isr:
        count_isr_change(tx.state, before.isr, written.isr)
    migration.infer_modes(tx, partition, before, written)
    tx.state.put_partition(
        tp, _as_shown(tx.state, replace(partition, zk_state=written, queue=(), passed_over=None, cached=None))
    )


def _as_shown(state: MutableState, partition: Partition) -> Partition:
    led = partition.zk_state is not None and state.is_online(partition.zk_state.leader, partition)
    states = {
        replica: ReplicaState.ONLINE if state.is_online(replica, partition) else ReplicaState.OFFLINE
        for replica in partition.replicas
    }
    return replace(partition, state=PartitionState.ONLINE if led else PartitionState.OFFLINE, replica_states=states)
