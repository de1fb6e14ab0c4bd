"""Topic deletion that waits for a failed broker again, which had not answered its StopReplica despite enough time.

After an answer, its failure would write nothing for a topic under deletion. A broker answers requests in their order,
so it has not answered later ones either (Kafka's `RequestSendThread`).
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

from controller.events.topic_deletion import failed_unanswered
from controller.inference.hypotheses.observed_write import Hypothesis, ObservedWrite
from controller.rules.states import ReplicaState
from controller.transaction.transaction import Transaction


def propose(tx: Transaction, write: ObservedWrite) -> Iterator[Hypothesis]:
    """Propose that a failed broker in the ISR had not deleted its replicas of the partition's topic."""
    topic = tx.state.topics[write.tp.topic]
    if not (write.is_next and write.before is not None and topic.queued_for_deletion):
        return
    for broker in write.before.isr:
        deleted = write.partition.replica_state(broker) is ReplicaState.DELETION_SUCCESSFUL
        if deleted and broker not in tx.header.brokers:
            yield partial(failed_unanswered, broker=broker, since_ms=topic.asked_ms)
