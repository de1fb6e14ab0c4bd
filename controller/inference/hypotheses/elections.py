"""Elections and reassignments that the API requested, or that an event caused although this was not expected."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from controller.contract.ids import TopicPartition
from controller.events import partition_reassignment
from controller.events.replica_leader_election import preferred, unclean
from controller.inference.hypotheses.observed_write import Hypothesis, ObservedWrite
from controller.machines import partition_machine
from controller.model.event import EventKind
from controller.rules import timing
from controller.rules.states import PartitionState
from controller.transaction.transaction import Transaction

# Events that try to elect a leader for every offline partition.
_TRY_AGAIN: Final = (EventKind.BROKER_CHANGE, EventKind.CONTROLLER_FAILOVER)


def elected_after_all(_: Transaction, write: ObservedWrite) -> Iterator[Hypothesis]:
    """Propose that the newest event that tries offline partitions elected the new leader.

    It explains an offline partition that gets a leader from its ISR, elected among others after a broker change. If all
    members of an ISR leave at once, only the write shows which member stays, and so which can lead again.
    """
    elected = write.is_next and write.elects_leader and not write.left_isr
    if elected and write.partition.state is PartitionState.OFFLINE:
        yield lambda trial: _elect(trial, write.tp)


def _elect(tx: Transaction, tp: TopicPartition) -> None:
    tried = [(event.kind, event.cause) for event in tx.events.open_events() if event.kind in _TRY_AGAIN]
    tx.events.begin(*(tried[-1] if tried else (EventKind.BROKER_CHANGE, f"partition {tp} can be led again")))
    partition_machine.bring_online(tx, [tp])


def preferred_election(_: Transaction, write: ObservedWrite) -> Iterator[Hypothesis]:
    """Propose that the preferred replica was elected, and the ISR stayed.

    It explains a preferred replica that leads again, by the automatic rebalance or by a request to the API.
    """
    leads = write.elects_leader and write.partition.replicas[:1] == (write.written.leader,)
    if write.is_next and leads and not write.left_isr:
        yield lambda trial: preferred(trial, write.tp)


def preferred_election_in_vain(tx: Transaction, write: ObservedWrite) -> Iterator[Hypothesis]:
    """Propose an election of the preferred replica that leads already.

    From 1.1 to 2.1 the election increments the leader epoch, which is written too. No recording has such a write.
    """
    # The znode of a request vanished before it could be read, so this write may be a consequence.
    requested_lately = not tx.header.has_passed(timing.REQUEST_CONSEQUENCE, tx.header.triggers.preferred_asked_ms)
    if requested_lately and write.is_next and not (write.moves_leader or write.left_isr):
        yield lambda trial: preferred(trial, write.tp)


def reassigned_again(_: Transaction, write: ObservedWrite) -> Iterator[Hypothesis]:
    """Propose a reassignment requested by the API that completed at once.

    It explains a leader epoch that grows alone, because the partition was reassigned to its present replicas.
    """
    if write.is_next and not (write.moves_leader or write.left_isr):
        yield lambda trial: _reassign(trial, write)


def _reassign(tx: Transaction, write: ObservedWrite) -> None:
    tx.events.begin(EventKind.API_PARTITION_REASSIGNMENT, f"partition {write.tp} was reassigned to the replicas it has")
    partition_reassignment.run(tx, write.tp, write.partition.assignment)


def unclean_election(_: Transaction, write: ObservedWrite) -> Iterator[Hypothesis]:
    """Propose an unclean election regardless of the settings (ElectLeaders, from Kafka 2.4 on).

    It explains a leader that no election by the settings gives, after a request for an unclean election by the API.
    """
    if write.is_next and write.elects_leader:
        yield lambda trial: unclean(trial, write.tp)
