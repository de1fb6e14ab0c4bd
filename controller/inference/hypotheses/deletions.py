"""Topic deletions whose progress no znode shows, such as brokers' answers, or a beginning after a complete read."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

from msgspec.structs import replace

from controller.events import topic_deletion
from controller.events.topic_deletion import failed_unanswered, halted_answered
from controller.inference.hypotheses.observed_write import Hypothesis, ObservedWrite
from controller.machines.partition_machine import with_initial_states
from controller.model.event import EventKind
from controller.rules.states import ReplicaState
from controller.transaction.transaction import Transaction


def deletion_answered(tx: Transaction, write: ObservedWrite) -> Iterator[Hypothesis]:
    """Propose that the live brokers have deleted their replicas of the partition's topic.

    The rule explains the continued deletion of a topic that an offline replica holds up, after StopReplica responses of
    the live brokers. The responses are never seen, but the controller's next writes show it (Kafka 3.9
    `TopicDeletionManager`).
    """
    if write.is_next and write.tp.topic in tx.header.deletions.halted:
        yield lambda trial: halted_answered(trial, write.tp.topic)


def deletion_unanswered(tx: Transaction, write: ObservedWrite) -> Iterator[Hypothesis]:
    """Propose that a failed broker in the ISR had not deleted its replicas of the partition's topic.

    It explains a topic deletion that waits for a failed broker again, which had not answered its StopReplica
    despite enough time. After an answer, its failure would write nothing for a topic under deletion. A broker
    answers requests in their order, so it has not answered later ones either (Kafka's `RequestSendThread`).
    """
    topic = tx.state.topics[write.tp.topic]
    if not (write.is_next and write.before is not None and topic.queued_for_deletion):
        return
    for broker in write.before.isr:
        deleted = write.partition.replica_state(broker) is ReplicaState.DELETION_SUCCESSFUL
        if deleted and broker not in tx.header.brokers:
            yield partial(failed_unanswered, broker=broker, since_ms=topic.asked_ms)


def deletion_found_early(tx: Transaction, write: ObservedWrite) -> Iterator[Hypothesis]:
    """Propose that the controller begins now with a deletion that the read found.

    A read cannot show how far a deletion is, so it counts as done (Kafka 3.9 `TopicDeletionManager.onTopicDeletion`).
    Later writes show that it was not. A soak's first read had this moment.
    """
    topic = tx.state.topics[write.tp.topic]
    if topic.deletion_started and topic.asked_ms <= tx.header.read.began_ms:
        yield lambda trial: _delete(trial, write.tp.topic)


def _delete(tx: Transaction, name: str) -> None:
    topic = tx.state.topics[name]
    partitions = {
        number: with_initial_states(tx, partition, ReplicaState.OFFLINE)
        for number, partition in topic.partitions.items()
    }
    tx.state.put_topic(name, replace(topic, partitions=partitions, deletion_started=False, ineligible=False))
    tx.events.begin(EventKind.TOPIC_DELETION, f"the deletion of topic {name} was asked for")
    topic_deletion.start(tx, name)
