"""Continued deletion of a topic that an offline replica holds up, after StopReplica responses of the live brokers.

The response is never seen, but the controller's next writes show it (Kafka 3.9 `TopicDeletionManager`).
"""

from __future__ import annotations

from collections.abc import Iterator

from controller.events.topic_deletion import halted_answered
from controller.inference.hypotheses.observed_write import Hypothesis, ObservedWrite
from controller.transaction.transaction import Transaction


def propose(tx: Transaction, write: ObservedWrite) -> Iterator[Hypothesis]:
    """Propose that the live brokers have deleted their replicas of the partition's topic."""
    if write.is_next and write.tp.topic in tx.header.deletions.halted:
        yield lambda trial: halted_answered(trial, write.tp.topic)
