"""Failures of log directories whose broker stays live (Kafka's LogDirEventNotification).

As in Kafka 3.9, the controller sends the broker LeaderAndIsr for all its replicas, and takes offline the replicas that
the response reports as failed. ZooKeeper never shows the response. Each write that only the failure explains shows one
replica.
"""

from __future__ import annotations

from msgspec.structs import replace

from controller.alerts import occurrences
from controller.contract.ids import NO_BROKER, BrokerId, TopicPartition
from controller.contract.records import Record
from controller.contract.znode_table import ZnodePath
from controller.contract.znodes import LogDirEventZnode, decode
from controller.events.broker_change import replicas_went_offline
from controller.machines import replica_machine
from controller.machines.replica_machine import Replica
from controller.model.context import FOLLOWING, Header
from controller.model.event import EventKind
from controller.model.triggers import LogDirFailure
from controller.rules import timing
from controller.rules.states import ReplicaState
from controller.says.alert_kinds import kinds
from controller.transaction.transaction import Transaction


def written(tx: Transaction, where: ZnodePath, record: Record) -> None:
    """Handle a report's znode, which waits for its removal by the controller. Raise ZnodeError."""
    tx.header.triggers.note_log_dir_event(where.name, waits=True)
    if tx.header.phase is FOLLOWING:
        reported(tx, decode(record.content, LogDirEventZnode).broker)


def reported(tx: Transaction, broker: BrokerId) -> None:
    """Handle a broker's report of a failed log directory. The controller probes all replicas of the broker."""
    header = tx.header
    header.triggers.log_dir_failures = {**header.triggers.log_dir_failures, broker: LogDirFailure(header.time_ms)}
    cause = f"broker {broker} reported a failed log directory"
    occurrences.note(tx.state, kinds.LOG_DIR_FAILED, f"{cause}: its replicas there are offline", broker=broker)
    if header.acting and broker in header.brokers:
        tx.events.begin(EventKind.LOG_DIR_EVENT_NOTIFICATION, cause)
        replicas = [Replica(tp, broker) for tp in tx.state.hosted_by(broker)]
        replica_machine.enter_state(tx, replicas, ReplicaState.ONLINE)


def reported_by_unknown_broker(header: Header) -> None:
    """Note a report that vanished before it could be read. The first write that only it explains shows the broker."""
    header.triggers.log_dir_failures = {**header.triggers.log_dir_failures, NO_BROKER: LogDirFailure(header.time_ms)}


def named(tx: Transaction, broker: BrokerId) -> None:
    """Attribute the report that could not be read to this broker."""
    header = tx.header
    header.triggers.log_dir_failures = {
        key: value for key, value in header.triggers.log_dir_failures.items() if key != NO_BROKER
    }
    reported(tx, broker)


def reported_lately(header: Header, broker: BrokerId) -> bool:
    """Return whether a write may be a consequence of the broker's report."""
    failure = header.triggers.log_dir_failures.get(broker)
    return failure is not None and not header.has_passed(timing.REPORT_CONSEQUENCE, failure.reported_ms)


def failed(tx: Transaction, broker: BrokerId, tp: TopicPartition) -> None:
    """Handle a LeaderAndIsr response that reports this replica as failed, alone or with others."""
    header = tx.header
    tx.events.begin(EventKind.LEADER_AND_ISR_RESPONSE_RECEIVED, f"a log directory of broker {broker} failed")
    partition = tx.state.partition(tp)
    if partition is not None and broker not in partition.offline_dirs:
        tx.state.put_partition(tp, replace(partition, offline_dirs=(*partition.offline_dirs, broker)))
    failure = header.triggers.log_dir_failures[broker]
    # One response reports many replicas, each of which shows in its own write. The response triggers elections for
    # other partitions without a leader only once.
    replicas_went_offline(tx, [Replica(tp, broker)], alone=failure.handled)
    header.triggers.log_dir_failures = {**header.triggers.log_dir_failures, broker: replace(failure, handled=True)}
