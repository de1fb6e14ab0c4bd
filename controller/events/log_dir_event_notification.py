"""LogDirEventNotification: a broker's log directory fails while the broker lives on.

Here belongs what Kafka 3.9 does about it: probe the broker, and treat the replicas that it calls failed as offline.
Which ones they are is an answer that nobody sees; each write that only this explains names one.
"""

from __future__ import annotations

from controller.alerts import kinds, occurrences
from controller.events.broker_change import replicas_went_offline
from controller.machines import replica_machine
from controller.machines.replica_machine import Replica
from controller.model.brokers import NO_BROKER
from controller.model.event import EventKind
from controller.model.topics import TopicPartition
from controller.model.triggers import LogDirFailure
from controller.rules.states import ReplicaState
from controller.transaction.transaction import Transaction, replace

# How long after a broker's report a write may be a consequence of it.
_CONSEQUENCE_MS = 5_000


def reported(tx: Transaction, broker: int) -> None:
    """A broker reported a failed log directory: the controller probes all its replicas."""
    header = tx.header
    header.triggers.log_dir_failures = {**header.triggers.log_dir_failures, broker: LogDirFailure(header.time_ms)}
    cause = f"broker {broker} reported a failed log directory"
    consequence = "the replicas in it are offline until the disk is replaced and the broker restarted"
    occurrences.note(tx, kinds.LOG_DIR_FAILED, f"{cause}: {consequence}", broker=broker)
    if header.acting and broker in header.brokers:
        tx.begin(EventKind.LOG_DIR_EVENT_NOTIFICATION, cause)
        replicas = [Replica(tp, broker) for tp in tx.hosted_by(broker)]
        replica_machine.enter_state(tx, replicas, ReplicaState.ONLINE)


def reported_by_unknown_broker(tx: Transaction) -> None:
    """A report was gone before it could be read: the first write that only it explains names the broker."""
    header = tx.header
    header.triggers.log_dir_failures = {**header.triggers.log_dir_failures, NO_BROKER: LogDirFailure(header.time_ms)}


def named(tx: Transaction, broker: int) -> None:
    """The report that nobody could read was this broker's."""
    header = tx.header
    header.triggers.log_dir_failures = {
        key: value for key, value in header.triggers.log_dir_failures.items() if key != NO_BROKER
    }
    reported(tx, broker)


def reported_lately(tx: Transaction, broker: int) -> bool:
    """Whether a write may be a consequence of the broker's report."""
    failure = tx.header.triggers.log_dir_failures.get(broker)
    return failure is not None and tx.header.time_ms - failure.reported_ms <= _CONSEQUENCE_MS


def failed(tx: Transaction, broker: int, tp: TopicPartition) -> None:
    """The broker answered that this replica is on the failed directory, alone or with others in one answer."""
    header = tx.header
    tx.begin(EventKind.LEADER_AND_ISR_RESPONSE_RECEIVED, f"a log directory of broker {broker} failed")
    partition = tx.partition(tp)
    if partition is not None and broker not in partition.offline_dirs:
        tx.put_partition(tp, replace(partition, offline_dirs=(*partition.offline_dirs, broker)))
    failure = header.triggers.log_dir_failures[broker]
    # One answer names many replicas, each of which shows by a write of its own: what else is without a leader is
    # looked after once.
    replicas_went_offline(tx, [Replica(tp, broker)], alone=failure.handled)
    header.triggers.log_dir_failures = {**header.triggers.log_dir_failures, broker: replace(failure, handled=True)}
