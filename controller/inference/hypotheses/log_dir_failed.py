"""Live broker that loses a replica to a failed log directory, which it or an unknown broker reported shortly before.

The report names no replicas. The broker's LeaderAndIsr response does, and is never seen (KIP-112).
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

from controller.contract.ids import NO_BROKER, BrokerId, TopicPartition
from controller.events.log_dir_event_notification import failed, named, reported_lately
from controller.inference.hypotheses.observed_write import Hypothesis, ObservedWrite
from controller.transaction.transaction import Transaction


def propose(tx: Transaction, write: ObservedWrite) -> Iterator[Hypothesis]:
    """Propose that the lost replica is in the failed directory of its broker."""
    if not write.is_next:
        return
    for broker in write.departed(tx.header.brokers):
        if reported_lately(tx.header, broker):
            yield partial(failed, broker=broker, tp=write.tp)
        elif reported_lately(tx.header, NO_BROKER):
            yield partial(_failed_unnamed, broker=broker, tp=write.tp)


def _failed_unnamed(tx: Transaction, broker: BrokerId, tp: TopicPartition) -> None:
    """Run the failure of a broker whose report vanished before it could be read. This write shows the broker."""
    named(tx, broker)
    failed(tx, broker, tp)
