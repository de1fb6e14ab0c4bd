"""Creation of new partitions (Kafka 3.9 `onNewPartitionCreation`)."""

from __future__ import annotations

from controller.contract.ids import TopicPartition
from controller.machines import partition_machine, replica_machine
from controller.machines.replica_machine import Replica
from controller.rules.states import PartitionState, ReplicaState
from controller.transaction.transaction import Transaction


def create(tx: Transaction, tps: list[TopicPartition]) -> None:
    """Bring new partitions and their replicas online."""
    partitions = {tp: tx.state.partition(tp) for tp in tps}
    replicas = [Replica(tp, broker) for tp, found in partitions.items() if found for broker in found.replicas]
    partition_machine.enter_state(tx, tps, PartitionState.NEW)
    replica_machine.enter_state(tx, replicas, ReplicaState.NEW)
    partition_machine.bring_online(tx, tps)
    replica_machine.enter_state(tx, replicas, ReplicaState.ONLINE)
