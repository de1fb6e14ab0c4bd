"""Failovers and failures that went otherwise than assumed.

Their controller was believed to be poisoned, or a complete read found it amid its work.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

from msgspec.structs import replace

from controller.contract.ids import NO_LEADER, UNKNOWN_ZXID, BrokerId, ControllerEpoch, TopicPartition
from controller.contract.leader_and_isr import LeaderAndIsr
from controller.events import partition_reassignment, topic_deletion
from controller.events.broker_change import on_broker_failure, replicas_went_offline
from controller.events.controller_failover import start_machines
from controller.inference.hypotheses.observed_write import Hypothesis, ObservedWrite, WideHypothesis
from controller.machines.replica_machine import Replica
from controller.model.context import Header
from controller.model.event import Event, EventKind
from controller.model.leadership import AnyAction, RemoveFromIsr, StateChange
from controller.model.mutable_state import MutableState
from controller.model.topics import Topic
from controller.transaction.transaction import Transaction
from wording.sentences import listed


def never_poisoned(tx: Transaction, _: ObservedWrite) -> Iterator[Hypothesis]:
    """Propose that the controller failed over as any other controller does.

    It explains a controller believed to be poisoned (KAFKA-12315) that changes replica states, which disproves the
    belief. The end of a term among removals from the ISR shows a poisoned process. Two other cases look the same.
    One is a process that restarted while its broker's znode stayed, the other a term that ended there by chance. No
    recording has either case.
    """
    if tx.header.is_poisoned:
        yield _run_unpoisoned


def _run_unpoisoned(tx: Transaction) -> None:
    header = tx.header
    header.former.forget_poisoned(header.controller)
    _fail_over(tx, f"broker {header.controller} is not the process that was poisoned")


def failure_found_early(tx: Transaction, write: ObservedWrite) -> Iterator[Hypothesis]:
    """Propose that the found controller learns only now of brokers that the read lacked and the state names.

    A read cannot show how far the controller is with a failure (Kafka 3.9 `onBrokerFailure`). The write is none of its
    load, because a load writes otherwise, or because the read before had this controller already.
    """
    header, before = tx.header, write.before
    if before is None or header.term.began_ms:
        return
    missing = _missing(header, before).intersection((before.leader, *write.left_isr, *write.kept_as_last_in_isr))
    if not missing:
        return
    # A load that removes replicas from ISRs takes away a lost leader before it elects another. Others only elect.
    replaces_leader = write.elects_leader and before.leader in missing
    is_none_of_a_load = replaces_leader is header.profile.removes_offline_replicas_at_failover
    if is_none_of_a_load or (header.term.is_found_again and not header.read.cut_failover):
        whole = partial(_fail_since_the_read, brokers=missing)
        yield WideHypothesis(alone=partial(whole, only=write.tp), whole=whole)


def failover_found_early(tx: Transaction, write: ObservedWrite) -> Iterator[Hypothesis]:
    """Propose that the found controller loads the cluster now. The state names no leader, or a broker the read lacked.

    A read cannot show how far a failover is, so it counts as done (Kafka 3.9 `KafkaController.onControllerFailover`).
    Later writes show that it was not. A soak's first read had this moment, and another one's read after a gap, in
    which brokers had left with the controller.
    """
    header, before = tx.header, write.before
    if before is None or header.term.began_ms:
        return
    if before.leader == NO_LEADER or _missing(header, before):
        yield WideHypothesis(alone=partial(_fail_over_since_the_read, only=write.tp), whole=_fail_over_since_the_read)


def _missing(header: Header, before: LeaderAndIsr) -> set[BrokerId]:
    """Return the brokers that the state names and the last read lacked. A later departure is seen as it happens."""
    left_since = {
        broker
        for broker, departure in header.departures.last.items()
        if departure.zxid != UNKNOWN_ZXID and departure.time_ms > header.read.began_ms
    }
    return {before.leader, *before.isr} - header.brokers.keys() - left_since - {NO_LEADER}


def _fail_since_the_read(tx: Transaction, brokers: set[BrokerId], only: TopicPartition | None = None) -> None:
    failed = tuple(sorted(brokers))
    failure = tx.events.begin(EventKind.BROKER_CHANGE, f"{listed(failed)} left before the complete read")
    if only is None:
        on_broker_failure(tx, failed)
    else:
        replicas_went_offline(tx, [Replica(only, broker) for broker in failed], alone=True)
    _expect_no_removals(tx, failure, only, since=ControllerEpoch(0))


def _fail_over_since_the_read(tx: Transaction, only: TopicPartition | None = None) -> None:
    failover = _fail_over(tx, f"broker {tx.header.controller} took over before the complete read", only)
    _expect_no_removals(tx, failover, only, since=tx.header.term.epoch)


def _expect_no_removals(tx: Transaction, event: Event, only: TopicPartition | None, *, since: ControllerEpoch) -> None:
    """Take the removals of last in-sync replicas for done where a term since then has taken the leadership from them.

    Such a replica stays in sync, so the state that was read does not show its removal otherwise.
    """
    for name, topic in _topics(tx.state, only):
        for number, partition in topic.partitions.items():
            value = partition.zk_state
            if value is None or value.controller_epoch < since:
                continue
            if value.leader == NO_LEADER and len(value.isr) == 1:
                _expect_no_removal(tx, event, TopicPartition(name, number), value.isr[0])


def _expect_no_removal(tx: Transaction, event: Event, tp: TopicPartition, replica: BrokerId) -> None:
    queue: list[AnyAction] = []
    partition = tx.state.topics[tp.topic].partitions[tp.partition]
    for action in partition.queue:
        is_of_event = action.event == event.id
        if is_of_event and isinstance(action, RemoveFromIsr):
            tx.events.settle(action, seen=False)
            continue
        goes_offline = is_of_event and isinstance(action, StateChange) and action.replica == replica
        queue.append(replace(action, written=False) if goes_offline else action)
    tx.state.put_partition(tp, replace(partition, queue=tuple(queue)))


def _topics(state: MutableState, only: TopicPartition | None) -> list[tuple[str, Topic]]:
    """Return all topics, or one with one of its partitions."""
    if only is None:
        return list(state.topics)
    topic = state.topics[only.topic]
    return [(only.topic, replace(topic, partitions={only.partition: topic.partitions[only.partition]}))]


def _fail_over(tx: Transaction, cause: str, only: TopicPartition | None = None) -> Event:
    if only is None:  # a failover takes up the reassignments that the read found
        asked = [event for event in tx.events.open_events() if event.kind is EventKind.ZK_PARTITION_REASSIGNMENT]
        for event in [event for event in asked if not event.begun]:
            tx.requests.undo(event.id)
    failover = tx.events.begin(EventKind.CONTROLLER_FAILOVER, cause)
    start_machines(tx, _topics(tx.state, only))
    if only is None:
        partition_reassignment.take_up(tx)
        topic_deletion.resume_all(tx)
    return failover
