"""Topics created without a live broker, because of what the controller knew at that moment."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial

from msgspec.structs import replace

from controller.contract.ids import BrokerId, TopicPartition
from controller.contract.leader_and_isr import LeaderAndIsr
from controller.events import controlled_shutdown
from controller.events.controller_failover import load
from controller.inference.deferral import waits_for_actions_of
from controller.inference.expected_writes import match_expected_write
from controller.inference.hypotheses.observed_write import Hypothesis, ObservedWrite, WideHypothesis
from controller.machines import partition_machine, replica_machine
from controller.machines.partition_machine import trigger_online
from controller.machines.replica_machine import Replica
from controller.model.event import CREATIONS, Event, EventKind
from controller.model.leadership import Create
from controller.rules.states import PartitionState, ReplicaState
from controller.transaction.transaction import Transaction


def created_without_broker(tx: Transaction, write: ObservedWrite) -> Iterator[Hypothesis]:
    """Propose that the missing brokers sent ControlledShutdown before the topic was created.

    It explains a topic created without a live broker, because that broker had sent ControlledShutdown before. If
    the broker leads no partition and is in no ISR, no other write shows its request. No request precedes a failover,
    and other events only try again.
    """
    event, missing = missing_brokers(tx, write)
    if event is None or event.kind not in CREATIONS:
        return
    states = [tx.state.topics[tp.topic].partitions[tp.partition].zk_state for tp in tx.certainty.waiting(event)]
    if all(state is None or missing.isdisjoint(state.isr) for state in states):
        yield lambda trial: _create_without(trial, trial.events.open_event(event.id), missing)


def creation_found_early(tx: Transaction, write: ObservedWrite) -> Iterator[Hypothesis]:
    """Propose that the controller creates the partitions that the read found without a state.

    A read cannot show how far a creation is (Kafka 3.9 `KafkaController.onNewPartitionCreation`).
    """
    if write.before is None and not tx.header.term.began_ms:
        alone = partial(_create_since_the_read, only=write.tp)
        yield WideHypothesis(alone=alone, whole=_create_since_the_read)


def _create_since_the_read(tx: Transaction, only: TopicPartition | None = None) -> None:
    tx.events.begin(EventKind.TOPIC_CHANGE, "the complete read found partitions without a state")
    tps = [only] if only is not None else tx.state.unsettled(lambda partition: partition.state is PartitionState.NEW)
    partition_machine.bring_online(tx, [tp for tp in tps if not tx.state.topics[tp.topic].queued_for_deletion])


def missing_brokers(tx: Transaction, write: ObservedWrite) -> tuple[Event | None, set[BrokerId]]:
    """Return the live brokers that a partition was created without, if any, and the event that creates it."""
    create = next((action for action in write.partition.queue if isinstance(action, Create)), None)
    if write.before is not None or create is None:
        return None, set()
    missing = set(create.isr) - set(write.written.isr)
    if not missing or not missing <= set(tx.header.brokers):
        return None, set()
    return tx.events.open_event(create.event), missing


def _create_without(tx: Transaction, event: Event, leaving: set[BrokerId]) -> None:
    tps = [tp for tp in tx.certainty.waiting(event) if waits_for_actions_of(tx.state, tp, event)]
    tx.requests.undo(event.id)
    with _written_again(tx, tps):
        for broker in sorted(leaving):
            controlled_shutdown.ask(tx, broker)
        tx.events.begin(event.kind, event.cause)
        partition_machine.create(tx, tps)


@contextmanager
def _written_again(tx: Transaction, tps: list[TopicPartition]) -> Iterator[None]:
    """Run the body without the states of these partitions, which its creations then write again."""
    written: dict[TopicPartition, LeaderAndIsr] = {}
    for tp in tps:
        partition = tx.state.topics[tp.topic].partitions[tp.partition]
        if partition.zk_state is not None:
            written[tp] = partition.zk_state
            tx.state.put_partition(tp, replace(partition, zk_state=None))
    yield
    for tp, state in written.items():
        match_expected_write(tx, tp, state)
        tx.state.put_partition(tp, replace(tx.state.topics[tp.topic].partitions[tp.partition], zk_state=state))


def loaded_before_registration(tx: Transaction, write: ObservedWrite) -> Iterator[Hypothesis]:
    """Propose that the failover created the topic, without a broker that it may not have known.

    It explains a topic created without a live broker, because the failover had read the topic before that broker
    registered. A failover reads the brokers before the topics (Kafka 3.9 `initializeControllerContext`), so a
    BrokerChange after it handles a broker that registers in between.
    """
    event, missing = missing_brokers(tx, write)
    if event is not None and event.may_not_know in missing:
        yield lambda trial: _load_before(trial, trial.events.open_event(event.id), missing)


def _load_before(tx: Transaction, event: Event, registered: set[BrokerId]) -> None:
    """Load the topic that this event creates in the failover, before these brokers had registered."""
    (name,) = event.topics
    tx.requests.undo(event.id)
    others = {broker: known for broker, known in tx.header.brokers.items() if broker not in registered}
    with _written_again(tx, [TopicPartition(name, number) for number in tx.state.topics[name].partitions]):
        with tx.header.knowing(others):
            load(tx, name, tx.state.topics[name].partitions)
        for broker in sorted(registered):
            tx.events.begin(EventKind.BROKER_CHANGE, f"broker {broker} had registered while the cluster was read")
            hosted = [tp for tp in tx.state.hosted_by(broker) if tp.topic == name]
            replica_machine.enter_state(tx, [Replica(tp, broker) for tp in hosted], ReplicaState.ONLINE)
            trigger_online(tx)
