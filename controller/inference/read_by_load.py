"""Broker failure that a new controller's load had read, so that its failover takes the replicas offline.

No BrokerChange does this then. A failover first removes offline replicas from their ISRs and then elects leaders, but a
BrokerChange elects first. So a removal that is written while elections of the same failure are due is the failover's.
Kafka 3.9 runs `ReplicaStateMachine.startup` before `PartitionStateMachine.startup`, but `onReplicasBecomeOffline` has
the opposite order.

If the failure needs no write, only time shows it. A load reads the brokers within milliseconds of the election.
"""

from __future__ import annotations

from typing import Final

from controller.contract.ids import NO_LEADER, BrokerId, TopicPartition
from controller.contract.leader_and_isr import LeaderAndIsr
from controller.events import broker_change, controller_failover
from controller.inference.expected_writes import match_under
from controller.machines.replica_machine import Replica
from controller.model.context import Header
from controller.model.event import Event, EventKind
from controller.model.leadership import Elect, RemoveFromIsr
from controller.model.mutable_state import MutableState
from controller.rules import timing
from controller.transaction.transaction import Transaction
from wording.sentences import listed

RULE: Final = "read-by-load"


def judge_failure(tx: Transaction, broker: BrokerId) -> None:
    """Count a removed broker's failure as read by the load, if the load had probably not read the brokers yet."""
    failure = tx.events.last_event()
    if failure is None or broker not in failure.failed_brokers or failure.writes_due:
        return
    term = tx.header.term
    if controller_failover.load_in_flight(tx) and not tx.header.has_passed(timing.BROKERS_READ, term.began_ms):
        after_ms = failure.time_ms - term.began_ms
        with tx.events.inferring(
            RULE, f"it left {after_ms} ms after broker {term.broker} was elected, and nothing was due"
        ):
            _read_by_load(tx, failure)


def shows_failure_read(tx: Transaction, tp: TopicPartition, written: LeaderAndIsr) -> bool:
    """Count a failure as read by the load, if the failover takes the replica out of the ISR before any election."""
    failure = next((event for event in tx.header.events.values() if _may_be_read(tx.header, event)), None)
    if failure is None or not _is_removed_before_elections(tx.state, tp, written, failure):
        return False
    return match_under(tx, RULE, tp, written, lambda trial: _read_by_load(trial, trial.events.open_event(failure.id)))


def _may_be_read(header: Header, event: Event) -> bool:
    """Return whether the event is a failure without an observed write, soon enough after the election for the load."""
    return (
        bool(event.failed_brokers)
        and event.writes_due > 0
        and not broker_change.is_any_back(header, event)
        and not (event.begun or event.taken_up)
        and header.profile.removes_offline_replicas_at_failover
        and controller_failover.may_have_read(header, event)
    )


def _is_removed_before_elections(
    state: MutableState, tp: TopicPartition, written: LeaderAndIsr, failure: Event
) -> bool:
    """Return whether a failed broker left the ISR while the failure's own event still has to elect leaders."""
    partition = state.partition(tp)
    before = partition.zk_state if partition is not None else None
    if partition is None or before is None or written.leader_epoch != before.leader_epoch + 1:
        return False
    left = set(before.isr) - set(written.isr)
    if not left or not failure.failed_brokers.keys() >= left:
        return False
    return any(
        isinstance(action, Elect)
        and written.leader == NO_LEADER
        or isinstance(action, RemoveFromIsr)
        and action.at_batch > failure.next_batch
        for action in partition.queue
        if action.event == failure.id
    )


def _read_by_load(tx: Transaction, failure: Event) -> None:
    failed = failure.failed_brokers
    tx.requests.undo(failure.id)
    controller_failover.leave_out(tx, failed)
    event = tx.events.begin(EventKind.CONTROLLER_FAILOVER, f"{listed(failed, 'was')} gone when the cluster was read")
    tx.events.await_proof(event)
    if tx.header.profile.removes_offline_replicas_at_failover:
        controller_failover.take_offline(
            tx, [Replica(tp, broker) for broker in failed for tp in tx.state.hosted_by(broker)]
        )
