"""Deletion of topics, which waits for offline brokers between the request and the removal of replicas.

The source is Kafka 3.9's `TopicDeletionManager`. StopReplica responses are never seen, but the controller's next writes
show them.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager
from functools import partial

from msgspec.structs import replace

from controller.contract.ids import BrokerId, TopicPartition
from controller.machines import partition_machine, replica_machine
from controller.machines.replica_machine import Replica
from controller.model.context import FOLLOWING, Header
from controller.model.event import Event, EventKind
from controller.model.leadership import AnyAction, RemoveFromIsr, StateChange, StopEntry
from controller.model.mutable_state import MutableState
from controller.model.shutdown_requests import has_closed
from controller.model.topics import Topic
from controller.rules import timing
from controller.rules.states import PartitionState, ReplicaState
from controller.transaction.certainty import CertaintyRules
from controller.transaction.transaction import RequestBatch, Transaction

ANSWERED_IN_TIME = "deletion-answered-in-time"  # the rule of inference for responses that no write shows
_TIME_SINCE_ASKED = "the time since StopReplica was sent"
_INELIGIBLE, _ANSWER = ReplicaState.DELETION_INELIGIBLE, EventKind.TOPIC_DELETION_STOP_REPLICA_RESPONSE_RECEIVED


def deletion_asked(tx: Transaction, name: str) -> None:
    """Handle an entry in /admin/delete_topics. Queue the topic for deletion, and start its deletion."""
    if tx.header.led_by_kraft:
        waiting = tx.header.migration.deletions_asked
        tx.header.migration.deletions_asked = tuple(dict.fromkeys((*waiting, name)))
        return  # KRaft does not read the entry, but the next ZooKeeper controller does
    topic = tx.state.topic(name)
    if topic is not None and topic.request_removed:
        tx.state.put_topic(name, replace(topic, request_removed=False))
    if topic is None or not topic.exists or topic.queued_for_deletion or not tx.header.settings.delete_topic_enable:
        return  # the controller removes the entry, and the topic stays
    held = name in tx.header.deletions.ineligible_leftovers
    tx.state.put_topic(name, replace(topic, queued_for_deletion=True, ineligible=held))
    if tx.header.phase is FOLLOWING and tx.header.acting:
        tx.events.begin(EventKind.TOPIC_DELETION, f"the deletion of topic {name} was asked for")
        start(tx, name)


@contextmanager
def deferring_deletions(tx: Transaction, broker: BrokerId) -> Iterator[None]:
    """Run a broker's shutdown (the body) before deletions that have written for all brokers but this one.

    The controller has one thread and has left the broker out, so the broker had asked before the deletion began.
    """
    deletions = [event for event in tx.events.open_events() if _waits_only_for(tx.certainty, event, broker)]
    for event in deletions:
        for tp in tx.certainty.waiting(event):
            tx.events.take_back(tp, partial(_concerns, event, broker))
        for name in event.topics:
            tx.state.put_topic(name, replace(tx.state.topics[name], queued_for_deletion=False))
    yield
    for event in deletions:
        tx.events.begin(event.kind, event.cause)
        for name in event.topics:
            topic = tx.state.topics[name]
            tx.state.put_topic(name, replace(topic, queued_for_deletion=True, ineligible=True))
            tx.header.deletions.halt(name, topic.asked_ms)
            offline = [replica for replica in _replicas(topic, name) if replica.broker == broker]
            replica_machine.enter_state(tx, offline, _INELIGIBLE)


def _waits_only_for(certainty: CertaintyRules, event: Event, broker: BrokerId) -> bool:
    if event.kind is not EventKind.TOPIC_DELETION or not (event.begun and event.writes_due):
        return False
    return all(action.replica == broker for action in certainty.actions_of(event) if isinstance(action, RemoveFromIsr))


def _concerns(event: Event, broker: BrokerId, action: AnyAction) -> bool:
    """Return whether an action of the event is about this broker's replica."""
    if action.event != event.id:
        return False
    if isinstance(action, StopEntry):
        return action.broker == broker
    return isinstance(action, (StateChange, RemoveFromIsr)) and action.replica == broker


def resume(tx: Transaction, broker: BrokerId) -> None:
    """Resume the deletion of topics with replicas on a broker that started."""
    for name, topic in _queued_on(tx.state, broker):
        tx.state.put_topic(name, replace(topic, ineligible=False))
        _retry(tx, name, judged=name in tx.header.deletions.halted)


def hold_up(state: MutableState, broker: BrokerId) -> None:
    """Hold up the deletion of topics with replicas on a broker whose startup is taken back."""
    for name, topic in _queued_on(state, broker):
        state.put_topic(name, replace(topic, ineligible=True))


def _queued_on(state: MutableState, broker: BrokerId) -> list[tuple[str, Topic]]:
    """Return the topics queued for deletion that have replicas on the broker."""
    return [
        (name, topic)
        for name, topic in state.topics
        if topic.queued_for_deletion and any(broker in partition.replicas for partition in topic.partitions.values())
    ]


def resume_all(tx: Transaction) -> None:
    """Take up every requested deletion in a new controller, unless a broker or a reassignment holds it up."""
    for name, topic in list(tx.state.topics):
        if topic.queued_for_deletion:
            held = any(
                partition.reassigning or not tx.state.is_online(broker, partition)
                for partition in topic.partitions.values()
                for broker in partition.replicas
            )
            tx.state.put_topic(name, replace(topic, deletion_started=False, ineligible=held))
            _retry(tx, name)


def replicas_failed(tx: Transaction, replicas: Sequence[Replica]) -> None:
    """Make replicas of queued topics ineligible whose broker failed (Kafka 3.9 `failReplicaDeletion`).

    A broker that fails before it answered a StopReplica was already silent when the request was sent.
    """
    by_topic = defaultdict[str, list[Replica]](list)
    for replica in replicas:
        by_topic[replica.tp.topic].append(replica)
    for name, failed in by_topic.items():
        unanswered = any(_state(tx.state, replica) is ReplicaState.DELETION_STARTED for replica in failed)
        replica_machine.enter_state(tx, failed, _INELIGIBLE)
        topic = tx.state.topics[name]
        silent_ms = tx.header.time_ms - topic.asked_ms if unanswered else 0
        tx.state.put_topic(name, replace(topic, ineligible=True, doubtful_ms=topic.doubtful_ms or silent_ms))
        tx.header.deletions.halt(name, topic.asked_ms)
        _retry(tx, name)


def failed_unanswered(tx: Transaction, broker: BrokerId, since_ms: int) -> None:
    """Handle the failure of a broker that has answered no StopReplica since this time, contrary to the assumption."""
    failed: list[Replica] = []
    for name, topic in _queued_on(tx.state, broker):
        if topic.asked_ms >= since_ms:
            failed += [each for each in _in_state(tx, name, ReplicaState.DELETION_SUCCESSFUL) if each.broker == broker]
    for replica in failed:
        tx.events.take_back(replica.tp, partial(_is_success_of, broker))
        partition = tx.state.topics[replica.tp.topic].partitions[replica.tp.partition]
        tx.state.put_partition(replica.tp, partition.with_replica_state(broker, ReplicaState.DELETION_STARTED))
    tx.events.begin(EventKind.BROKER_CHANGE, f"broker {broker} left, and had not deleted its replicas")
    replicas_failed(tx, failed)


def _is_success_of(broker: BrokerId, action: AnyAction) -> bool:
    return (
        isinstance(action, StateChange)
        and action.replica == broker
        and action.to_state == ReplicaState.DELETION_SUCCESSFUL
    )


def answered(tx: Transaction, name: str, brokers: Collection[BrokerId]) -> None:
    """Handle the StopReplica responses of brokers that had to delete their replicas of the topic."""
    started = _in_state(tx, name, ReplicaState.DELETION_STARTED)
    theirs = [replica for replica in started if replica.broker in brokers]
    if theirs:
        named = sorted({replica.broker for replica in theirs})
        with tx.events.another_event(_ANSWER, f"brokers {named} deleted their replicas of topic {name}"):
            replica_machine.enter_state(tx, theirs, ReplicaState.DELETION_SUCCESSFUL)


def completed(tx: Transaction, name: str) -> None:
    """Complete a topic's deletion. All replicas are deleted, and the controller removes the znodes."""
    topic = tx.state.topic(name)
    if topic is None or not any(partition.all_replica_states for partition in topic.partitions.values()):
        return
    # No release removes a deleted topic from the list of ineligible topics.
    if topic.ineligible:
        tx.header.deletions.leave_ineligible(name)
    tx.certainty.make_certain(name)
    event = tx.events.begin(_ANSWER, f"all brokers deleted their replicas of topic {name}")
    event.begun = True  # the topic's znodes go only after this event
    tx.state.note_at_work(*_receivers_of_deletion(tx, name))
    answered(tx, name, tx.header.brokers)
    _delete_the_rest(tx, name)
    if not tx.header.profile.retires_partitions_at_deletion_start:
        _retire_partitions(tx, name)
    done = _in_state(tx, name, ReplicaState.DELETION_SUCCESSFUL)
    if done:
        replica_machine.enter_state(tx, done, ReplicaState.NON_EXISTENT)


def _delete_the_rest(tx: Transaction, name: str) -> None:
    """Delete replicas that came back while others were still being deleted."""
    rest = [*_in_state(tx, name, ReplicaState.ONLINE), *_in_state(tx, name, ReplicaState.OFFLINE)]
    if rest:
        with tx.events.another_event(_ANSWER, f"the deletion of topic {name} went on with replicas that had come back"):
            replica_machine.enter_state(tx, rest, ReplicaState.OFFLINE)
            replica_machine.enter_state(tx, rest, ReplicaState.DELETION_STARTED)
        answered(tx, name, tx.header.brokers)


def _retire_partitions(tx: Transaction, name: str) -> None:
    topic = tx.state.topic(name)
    tps = [TopicPartition(name, number) for number in topic.partitions] if topic else []
    partition_machine.enter_state(tx, tps, PartitionState.OFFLINE)
    partition_machine.enter_state(tx, tps, PartitionState.NON_EXISTENT)


def start(tx: Transaction, name: str) -> None:
    """Take the replicas of a queued topic offline and send their brokers StopReplica, unless something holds it up."""
    topic = tx.state.topic(name)
    if topic is None or topic.ineligible:
        return
    if not topic.deletion_started and tx.header.profile.retires_partitions_at_deletion_start:
        _retire_partitions(tx, name)
    # UpdateMetadata has the leader that marks a deletion, so that brokers stop serving the topic.
    batch = RequestBatch(tx)
    for number in topic.partitions:
        batch.update_metadata(TopicPartition(name, number))
    batch.send()
    replicas = _replicas(tx.state.topic(name) or topic, name)
    offline = [replica for replica in replicas if not _is_online(tx.state, replica)]
    todo = [
        replica
        for replica in replicas
        if _is_online(tx.state, replica) and _state(tx.state, replica) is not ReplicaState.DELETION_SUCCESSFUL
    ]
    if offline:
        replica_machine.enter_state(tx, offline, _INELIGIBLE)
    replica_machine.enter_state(tx, todo, ReplicaState.OFFLINE)
    replica_machine.enter_state(tx, todo, ReplicaState.DELETION_STARTED)
    started = tx.state.topic(name) or topic
    asked_ms = tx.header.time_ms
    tx.state.put_topic(
        name, replace(started, deletion_started=True, ineligible=bool(offline), asked_ms=asked_ms, doubtful_ms=0)
    )
    if offline:
        tx.header.deletions.halt(name, asked_ms)


def written_before_asking(state: MutableState, name: str) -> None:
    """Restart the time for responses. The controller sends StopReplica only after this write of the topic's state."""
    topic = state.topic(name)
    if topic is not None and topic.deletion_started:
        # `put_topic` is not needed, because no partition's health depends on that time.
        state.topics.put(name, replace(topic, asked_ms=state.header.time_ms))


def judge_halted(tx: Transaction, *, soon: bool = False) -> None:
    """Judge whether the live brokers have deleted their replicas, for deletions that an offline replica holds up.

    The answer is certain once silent brokers would have lost their sessions. If another event begins before that
    (`soon`), the usual response time decides.
    """
    for name in list(tx.header.deletions.halted):
        topic = tx.state.topic(name)
        brokers = frozenset(tx.header.brokers) if topic is None else _have_answered(tx, name, topic, soon=soon)
        if not brokers or _will_write(tx, name) or (topic is not None and topic.seems_unread):
            continue
        with tx.events.inferring(ANSWERED_IN_TIME, _TIME_SINCE_ASKED):
            if brokers.issuperset(_receivers_of_deletion(tx, name)):
                halted_answered(tx, name)
            else:
                answered(tx, name, brokers)


def _will_write(tx: Transaction, name: str) -> bool:
    """Return whether the controller will write once the live brokers have answered.

    Without that write they have not answered. It writes if an ineligible offline replica is still in an ISR.
    """
    epoch = tx.header.controller_epoch
    halted = ((replica, tx.state.partition(replica.tp)) for replica in _in_state(tx, name, _INELIGIBLE))
    values = ((replica, partition.value(epoch)) for replica, partition in halted if partition)
    return any(value is not None and replica.broker in value.isr for replica, value in values)


def _receivers_of_deletion(tx: Transaction, name: str) -> set[BrokerId]:
    """Return the live brokers that were sent a StopReplica with delete for the topic."""
    started = {replica.broker for replica in _in_state(tx, name, ReplicaState.DELETION_STARTED)}
    return started.intersection(tx.header.brokers)


def _have_answered(tx: Transaction, name: str, topic: Topic, *, soon: bool) -> frozenset[BrokerId]:
    """Return the live brokers that must have answered by now, or (`soon`) most likely have.

    A broker whose requests hang keeps its session. No answer is proven until one of the topic's brokers was at work.
    """
    in_time = _had_time_to_answer(tx.header, topic, soon=soon)
    receivers = _receivers_of_deletion(tx, name) if in_time else ()
    unproven = receivers and not any(tx.header.brokers[broker].at_work for broker in receivers)
    return frozenset() if unproven else in_time


def _had_time_to_answer(header: Header, topic: Topic, *, soon: bool) -> frozenset[BrokerId]:
    waited_ms = header.time_ms - topic.asked_ms
    if not topic.asked_ms:
        return frozenset()
    if waited_ms > header.settings.zookeeper_session_timeout_ms:
        return frozenset(header.brokers)
    # If one broker was silent, another may be too, but hardly one that has kept its session for half the timeout since.
    likely_ms = header.settings.zookeeper_session_timeout_ms // 2 if topic.doubtful_ms else timing.ANSWER.ms
    if not soon or waited_ms <= likely_ms:
        return frozenset()
    return frozenset(broker for broker in header.brokers if _has_likely_answered(header, broker, topic.asked_ms))


def _has_likely_answered(header: Header, broker: BrokerId, asked_ms: int) -> bool:
    """Return whether a live broker was up when asked, or has started since, and had not closed its sockets."""
    since_ms = header.brokers[broker].since_ms
    is_up = asked_ms - since_ms > timing.STARTING.ms or header.time_ms - since_ms > timing.STARTED.ms
    return is_up and not has_closed(header, broker, asked_ms + timing.CLOSING_SOCKETS.ms)


def halted_answered(tx: Transaction, name: str) -> None:
    """Handle the last response for a topic that offline replicas hold up, and retry these replicas."""
    header = tx.header
    header.deletions.go_on(name)
    topic = tx.state.topic(name)
    if topic is None or not topic.queued_for_deletion or not header.acting:
        return
    tx.events.begin(_ANSWER, f"the live brokers deleted their replicas of topic {name}")
    answered(tx, name, header.brokers)
    if topic.doubtful_ms > timing.ANSWER.ms:  # brokers had answered before the failure, which then retried the deletion
        tx.events.begin(EventKind.BROKER_CHANGE, f"the deletion of topic {name} waits for a broker that left")
    _start_again(tx, name)


def _retry(tx: Transaction, name: str, *, judged: bool = False) -> None:
    if not judged:
        with tx.events.inferring(ANSWERED_IN_TIME, _TIME_SINCE_ASKED):
            answered(tx, name, _have_answered(tx, name, tx.state.topics[name], soon=True))
    if not _in_state(tx, name, ReplicaState.DELETION_STARTED):
        _start_again(tx, name)


def _start_again(tx: Transaction, name: str) -> None:
    """Retry a deletion without pending responses. Held-up replicas become offline, and live replicas are deleted."""
    halted = _in_state(tx, name, _INELIGIBLE)
    if halted:
        replica_machine.enter_state(tx, halted, ReplicaState.OFFLINE)
    start(tx, name)


def _replicas(topic: Topic, name: str) -> list[Replica]:
    return [
        Replica(TopicPartition(name, number), broker)
        for number, partition in topic.partitions.items()
        for broker in partition.replicas
    ]


def _in_state(tx: Transaction, name: str, state: ReplicaState) -> list[Replica]:
    topic = tx.state.topic(name)
    return [replica for replica in (_replicas(topic, name) if topic else ()) if _state(tx.state, replica) is state]


def _state(state: MutableState, replica: Replica) -> ReplicaState:
    partition = state.partition(replica.tp)
    return partition.replica_state(replica.broker) if partition else ReplicaState.NON_EXISTENT


def _is_online(state: MutableState, replica: Replica) -> bool:
    partition = state.partition(replica.tp)
    return partition is not None and state.is_online(replica.broker, partition)
