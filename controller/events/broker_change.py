"""BrokerChange: brokers register, vanish and bounce.

Here belongs what the controller does about brokers (Kafka 3.9 `KafkaController.processBrokerChange`,
`onBrokerStartup`, `onBrokerFailure`). Without an acting controller only the observed brokers change: nobody acts.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from functools import lru_cache
from typing import TypeVar

from controller.alerts import kinds, occurrences
from controller.contract.outputs import BrokerRow
from controller.contract.records import Record
from controller.contract.znodes import BrokerZnode
from controller.derived.gauges import replicas_by_broker
from controller.events import controlled_shutdown, partition_reassignment, topic_deletion
from controller.machines import partition_machine, replica_machine
from controller.machines.replica_machine import Replica
from controller.model.context import FOLLOWING, LOADING, Broker, Departure
from controller.model.topics import Partition, TopicPartition
from controller.rules.states import PartitionState, ReplicaState
from controller.transaction.transaction import Turn, replace

_DEPARTURES_KEPT = 10

# One that was taken out at any hour is still shown when the same people are at work again.
_FORGOTTEN_AFTER_MS = 24 * 3_600_000
_ONLINE = PartitionState.ONLINE
_Known = TypeVar("_Known")


def broker_written(turn: Turn, broker: int, znode: BrokerZnode, record: Record) -> None:
    """A broker's znode has this value: it registered, bounced, or changed its endpoints."""
    header = turn.header
    in_two_steps = record.version >= 1 and record.mzxid == record.czxid
    header.witness(broker_version=znode.version, registers_in_two_steps=int(in_two_steps))
    known = header.brokers.get(broker)
    since_ms = known.since_ms if known and known.epoch == record.czxid else header.time_ms
    now = Broker(record.czxid, record.ephemeral_owner, since_ms, znode.addresses(), znode.rack)
    header.seen_brokers = (*header.seen_brokers, broker) if header.phase is LOADING else ()
    if known == now:
        return
    if known is not None and header.acting and known.epoch == now.epoch:
        header.brokers = {**header.brokers, broker: now}
        if known.endpoints != now.endpoints:
            turn.begin("BrokerModifications", f"broker {broker} changed its endpoints")
            turn.broadcast(turn.registered)
    elif known is not None and header.acting and header.profile.notices_bounces:
        _forget_offline_dirs(turn, broker, turn.hosted_by(broker))
        _bounced(turn, broker, now)
    elif known is None and header.acting:
        topic_deletion.judge_halted(turn, soon=True)
        header.brokers = {**header.brokers, broker: now}
        event = turn.begin("BrokerChange", f"broker {broker} registered with epoch {now.epoch}")
        event.born = broker
        turn.await_proof(event)
        turn.moved("broker", "dead", "live", broker=broker)
        on_broker_startup(turn, broker)
    else:
        header.brokers = {**header.brokers, broker: now}
        _touch_hosted(turn, broker)
    header.departed = {key: value for key, value in header.departed.items() if key != broker}
    if known is not None and known.epoch != now.epoch:
        cause = (
            f"broker {broker} restarted, or lost its session and was back at once: clients may have met errors "
            f"(epoch {now.epoch:#x} after {known.epoch:#x})"
        )
        occurrences.note(turn, kinds.BROKER_BOUNCED, cause, broker=broker)
    publish_broker(turn, broker)


def broker_removed(turn: Turn, broker: int) -> None:
    """A broker's znode vanished: it crashed, was shut down, or lost its session."""
    header = turn.header
    if broker not in header.brokers:
        return
    gone = header.brokers[broker]
    if header.acting:
        controlled_shutdown.give_up_on_missing(turn)
    if header.acting and not _was_silent(turn, broker, gone):
        topic_deletion.judge_halted(turn, soon=True)
    header.brokers = {key: value for key, value in header.brokers.items() if key != broker}
    hosted = turn.hosted_by(broker)
    _note_departure(turn, broker, gone, hosted)
    _forget_offline_dirs(turn, broker, hosted)
    if header.acting:
        _died(turn, broker, gone)
    for tp in hosted:
        turn.touch(tp)
    publish_broker(turn, broker)


def _note_departure(turn: Turn, broker: int, gone: Broker, hosted: Iterable[TopicPartition]) -> None:
    header, record = turn.header, turn.record
    closed_itself = record.author == gone.session and record.cxid > 0  # only ZooKeeper's log tells
    in_order = closed_itself or header.asked_to_shut_down.get(broker) == gone.epoch
    shares_with = _away_too(turn, broker, hosted)
    departure = Departure(record.zxid, header.time_ms, in_order, gone.rack, shares_with)
    header.departed = {**header.departed, broker: departure}
    if in_order or header.phase is not FOLLOWING:
        return
    header.asked_to_shut_down = {key: epoch for key, epoch in header.asked_to_shut_down.items() if key != broker}
    before = header.unordered_departures.get(broker, ())
    header.unordered_departures = {**header.unordered_departures, broker: (*before, header.time_ms)[-_DEPARTURES_KEPT:]}


def _away_too(turn: Turn, broker: int, hosted: Iterable[TopicPartition]) -> tuple[int, ...]:
    """The brokers that are away and have replicas of these partitions of the broker."""
    assignments = {partition.replicas for tp in hosted if (partition := turn.partition(tp)) is not None}
    replicas = {replica for assigned in assignments for replica in assigned}
    return tuple(sorted(replicas - turn.header.brokers.keys() - {broker}))


def _was_silent(turn: Turn, broker: int, gone: Broker) -> bool:
    """Whether the broker may have answered nobody for as long as its session lasted: then it was not heard to the end.

    One that closes its session, or whose znode somebody else deletes, was there until then.
    """
    record = turn.record
    if not record.author:
        return broker not in turn.header.shutting_down
    return record.author == gone.session and record.cxid == 0


def _died(turn: Turn, broker: int, gone: Broker) -> None:
    # Deaths that the controller has not begun to handle are handled together: one event for all.
    last = turn.last_event()
    together = last.died if last is not None and not (last.begun or last.taken_up) else {}
    if last is not None and together:
        turn.undo(last)
    died = {**together, broker: gone}
    event = turn.begin("BrokerChange", f"broker {names_of(died)} left")
    event.died = died
    turn.await_proof(event)
    turn.moved("broker", "live", "dead", broker=broker)
    on_broker_failure(turn, tuple(died))


def names_of(brokers: Iterable[int]) -> str:
    """Brokers as an event's cause names them."""
    return " and ".join(map(str, brokers))


def forget_departed(turn: Turn) -> None:
    """Brokers that left more than a day ago, by the cluster's time, and host nothing are no longer known."""
    header = turn.header
    left_long_ago = [
        broker
        for broker, departure in header.departed.items()
        if header.time_ms - departure.time_ms > _FORGOTTEN_AFTER_MS
    ]
    if not left_long_ago:
        return
    forgotten = set(left_long_ago) - replicas_by_broker(header).keys()
    for broker in sorted(forgotten):
        publish_broker(turn, broker, forgotten=True)
    header.departed = _without(header.departed, forgotten)
    header.unordered_departures = _without(header.unordered_departures, forgotten)
    header.asked_to_shut_down = _without(header.asked_to_shut_down, forgotten)
    header.last_asked_ms = _without(header.last_asked_ms, forgotten)


def _without(by_broker: Mapping[int, _Known], brokers: Collection[int]) -> dict[int, _Known]:
    return {broker: known for broker, known in by_broker.items() if broker not in brokers}


def publish_broker(turn: Turn, broker: int, *, forgotten: bool = False) -> None:
    """The broker's row as it is now; during a complete read nothing is published."""
    if turn.header.phase is not FOLLOWING:
        return
    now, departure = turn.header.brokers.get(broker), turn.header.departed.get(broker)
    since_ms = now.since_ms if now else departure.time_ms if departure else turn.header.time_ms
    turn.effects.append(
        BrokerRow(
            *turn.stamp(),
            broker=broker,
            registered=now is not None,
            epoch=now.epoch if now else -1,
            since_ms=since_ms,
            endpoints=now.endpoints if now else (),
            rack=now.rack if now else None,
            forgotten=forgotten,
        )
    )


def trigger_online(turn: Turn) -> int:
    """Try to bring every New and Offline partition online, queued topics left out; how many will be elected."""
    waiting = turn.unsettled(lambda partition: partition.state in (PartitionState.NEW, PartitionState.OFFLINE))
    return partition_machine.bring_online(turn, [tp for tp in waiting if not turn.topics[tp.topic].queued])


def _bounced(turn: Turn, broker: int, now: Broker) -> None:
    # One event: failure of the old registration, then start of the new one.
    header = turn.header
    turn.begin("BrokerChange", f"broker {broker} bounced: it registered again with epoch {now.epoch}")
    header.brokers = {key: value for key, value in header.brokers.items() if key != broker}
    turn.moved("broker", "live", "dead", broker=broker)
    on_broker_failure(turn, (broker,))
    header.brokers = {**header.brokers, broker: now}
    turn.moved("broker", "dead", "live", broker=broker)
    on_broker_startup(turn, broker)


def on_broker_startup(turn: Turn, broker: int) -> None:
    """Take up a broker that registered (Kafka 3.9 `onBrokerStartup`)."""
    if turn.header.profile.spares_known_metadata:
        turn.broadcast([other for other in turn.registered if other != broker])
        turn.broadcast((broker,), of_all=True)
    else:
        turn.broadcast(turn.registered)
    hosted = turn.hosted_by(broker)
    replica_machine.enter_state(turn, [Replica(tp, broker) for tp in hosted], ReplicaState.ONLINE)
    trigger_online(turn)
    partition_reassignment.resume_on(turn, broker)
    topic_deletion.resume(turn, broker)
    _touch_hosted(turn, broker)


def on_broker_failure(turn: Turn, brokers: tuple[int, ...]) -> None:
    """Take replicas offline and elect leaders elsewhere after brokers left (Kafka 3.9 `onBrokerFailure`)."""
    header = turn.header
    header.shutting_down = tuple(broker for broker in header.shutting_down if broker not in brokers)
    header.shutdown_attempts = {key: value for key, value in header.shutdown_attempts.items() if key not in brokers}
    replicas = [Replica(tp, broker) for broker in brokers for tp in turn.hosted_by(broker)]
    replicas_went_offline(turn, replicas)


def replicas_went_offline(turn: Turn, replicas: list[Replica], *, alone: bool = False) -> None:
    """Everything that lost its leader goes offline and is elected again; then the replicas leave their ISR.

    `alone` looks after no other partitions than theirs.
    """
    theirs = {replica.tp for replica in replicas}
    leaderless = [tp for tp in without_online_leader(turn) if not alone or tp in theirs]
    if not turn.header.profile.offlines_every_leaderless:
        leaderless = [tp for tp in leaderless if _led_by(turn, tp, {replica.broker for replica in replicas})]
    partition_machine.enter_state(turn, leaderless, PartitionState.OFFLINE)
    elected = partition_machine.bring_online(turn, leaderless) if alone else trigger_online(turn)
    queued = [replica for replica in replicas if turn.topics[replica.tp.topic].queued]
    others = [replica for replica in replicas if not turn.topics[replica.tp.topic].queued]
    replica_machine.enter_state(turn, others, ReplicaState.OFFLINE)
    topic_deletion.replicas_failed(turn, queued)
    told = others or elected if turn.header.profile.tells_brokers_of_every_death else leaderless
    if not told and turn.header.brokers:
        turn.broadcast(turn.registered)


def _led_by(turn: Turn, tp: TopicPartition, brokers: set[int]) -> bool:
    partition = turn.partition(tp)
    value = partition.value(turn.header.controller_epoch) if partition else None
    return value is not None and value.leader in brokers


def without_online_leader(turn: Turn) -> list[TopicPartition]:
    """The partitions that have a state and whose leader is not online, those of queued topics left out."""
    epoch, live = turn.header.controller_epoch, turn.live

    def leaderless(partition: Partition) -> bool:
        value = partition.value(epoch)
        return value is not None and (value.leader not in live or value.leader in partition.offline_dirs)

    return [tp for tp in turn.unled(leaderless) if not turn.topics[tp.topic].queued]


def _touch_hosted(turn: Turn, broker: int) -> None:
    if turn.header.phase is FOLLOWING:
        for tp in turn.hosted_by(broker):
            turn.touch(tp)


def _forget_offline_dirs(turn: Turn, broker: int, hosted: list[TopicPartition]) -> None:
    for tp in hosted:
        partition = turn.partition(tp)
        if partition is not None and broker in partition.offline_dirs:
            left = tuple(other for other in partition.offline_dirs if other != broker)
            turn.put_partition(tp, replace(partition, offline_dirs=left))


def forget_unseen_brokers(turn: Turn) -> None:
    """At the end of a complete read: brokers that it did not name are gone."""
    header = turn.header
    for broker in set(header.brokers) - set(header.seen_brokers):
        gone = Departure(-1, header.time_ms, rack=header.brokers[broker].rack)
        header.departed = {**header.departed, broker: gone}
    header.brokers = {broker: header.brokers[broker] for broker in header.seen_brokers if broker in header.brokers}
    header.seen_brokers = ()


def initial_partition_state(turn: Turn, partition: Partition) -> PartitionState:
    """A partition's state after a start: New without a state znode, else online or offline with its leader."""
    value = partition.value(turn.header.controller_epoch)
    if value is None:
        return PartitionState.NEW
    return _ONLINE if turn.is_online(value.leader, partition) else PartitionState.OFFLINE


def with_initial_states(turn: Turn, partition: Partition, dead: ReplicaState) -> Partition:
    """The partition as a start finds it; replicas on brokers that are not there are in the state `dead`."""
    live = turn.live.difference(partition.offline_dirs) if partition.offline_dirs else turn.live
    states = _initial_replica_states(partition.replicas, live, dead)
    return replace(partition, state=initial_partition_state(turn, partition), replica_states=states)


@lru_cache(1 << 15)
def _initial_replica_states(
    replicas: tuple[int, ...], live: frozenset[int], dead: ReplicaState
) -> dict[int, ReplicaState]:
    """Shared by all partitions with these replicas: such a dict is never changed, only replaced."""
    return {replica: ReplicaState.ONLINE if replica in live else dead for replica in replicas}
