"""Deletions and failovers that a complete read found before the controller had written their states.

A read cannot show how far they are, so they count as done (Kafka 3.9 `TopicDeletionManager.onTopicDeletion`,
`KafkaController.onControllerFailover`). Later writes show that they were not. A soak's first read had this moment.
"""

from __future__ import annotations

from collections.abc import Iterator

from msgspec.structs import replace

from controller.events import topic_deletion
from controller.events.broker_change import with_initial_states
from controller.events.controller_failover import start_machines
from controller.inference.hypotheses.observed_write import Hypothesis, ObservedWrite
from controller.model.event import EventKind
from controller.rules.states import ReplicaState
from controller.transaction.transaction import Transaction


def propose_deletion(tx: Transaction, write: ObservedWrite) -> Iterator[Hypothesis]:
    """Propose that the controller begins now with a deletion of which only the read is known."""
    topic = tx.state.topics[write.tp.topic]
    if topic.deletion_started and not topic.asked_ms:
        yield lambda trial: _delete(trial, write.tp.topic)


def propose_failover(tx: Transaction, write: ObservedWrite) -> Iterator[Hypothesis]:
    """Propose that the found controller loads the cluster now. The read lacked a broker that the state names."""
    header, before = tx.header, write.before
    if header.term.began_ms or before is None:
        return
    seen = header.brokers.keys() | header.departures.last.keys()
    if not seen.issuperset((before.leader, *before.isr)):
        yield _fail_over


def _delete(tx: Transaction, name: str) -> None:
    topic = tx.state.topics[name]
    partitions = {
        number: with_initial_states(tx, partition, ReplicaState.OFFLINE)
        for number, partition in topic.partitions.items()
    }
    tx.state.put_topic(name, replace(topic, partitions=partitions, deletion_started=False, ineligible=False))
    tx.events.begin(EventKind.TOPIC_DELETION, f"the deletion of topic {name} was asked for")
    topic_deletion.start(tx, name)


def _fail_over(tx: Transaction) -> None:
    tx.events.begin(EventKind.CONTROLLER_FAILOVER, f"broker {tx.header.controller} took over before the complete read")
    start_machines(tx, list(tx.state.topics))
    topic_deletion.resume_all(tx)
