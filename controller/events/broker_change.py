"""Startup, failure and bounce of brokers, which are Kafka's BrokerChange.

The source is Kafka 3.9's `KafkaController.processBrokerChange`, `onBrokerStartup` and `onBrokerFailure`. Without an
active controller only the registered brokers change.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final

from controller.alerts import occurrences
from controller.contract.ids import UNKNOWN_ZXID, BrokerEpoch, BrokerId, TopicPartition
from controller.contract.records import Record
from controller.contract.znodes import BrokerZnode
from controller.events import (
    controlled_shutdown,
    controller_failover,
    fenced_controller,
    partition_reassignment,
    topic_deletion,
)
from controller.machines import partition_machine, replica_machine
from controller.machines.partition_machine import trigger_online
from controller.machines.replica_machine import Replica
from controller.model import shutdown_requests
from controller.model.brokers import Broker, Departure
from controller.model.context import FOLLOWING, LOADING, Header
from controller.model.event import BrokerBounced, BrokersChanged, Event, EventKind
from controller.model.mutable_state import MutableState
from controller.model.shutdown_requests import has_asked
from controller.model.topics import Partition
from controller.rules.releases import Release, least_release
from controller.rules.states import PartitionState, ReplicaState
from controller.says.alert_kinds import kinds
from controller.transaction.transaction import Transaction
from controller.view.ensemble import kept_its_connection
from controller.view.gauges import replicas_by_broker
from controller.view.rows import broker_row
from wording.sentences import listed

# A broker that was removed at any hour is still shown on the next working day at the same hour.
_FORGOTTEN_AFTER_MS = 24 * 3_600_000
# A session's requests before it registers its broker. Each of 799 started processes sent at least 20. Of 88 processes
# that had lost a session, 87 sent 2 to 11 and one sent 35. The numbers do not grow with the cluster.
_REQUESTS_OF_A_START: Final = 15
# A partition has up to seven. To plan them all again takes 0.1 s on an idle core.
_PLANNED_AGAIN_AT_ONCE: Final = 2_000
_ONLINE, _REPLICA_ONLINE = PartitionState.ONLINE, ReplicaState.ONLINE


def broker_written(tx: Transaction, broker: BrokerId, znode: BrokerZnode, record: Record) -> None:
    """Handle the content of a broker's znode after a registration, a bounce, or a change of endpoints."""
    header = tx.header
    in_two_steps = record.version >= 1 and record.mzxid == record.czxid
    header.witness(broker_version=znode.version, registers_in_two_steps=int(in_two_steps))
    before = header.brokers.get(broker)
    is_known = before is not None and before.epoch == BrokerEpoch(record.czxid)
    known = before if is_known else None  # the broker as known with this registration
    now = _registration(
        znode, record, known, began_ms(tx.state), least_release(znode.version, in_two_steps=in_two_steps)
    )
    _follow_process(tx, broker, now, registers=known is None)
    header.read.brokers = (*header.read.brokers, broker) if header.phase is LOADING else ()
    if before == now:
        return
    if known is None:
        tx.state.forget_offline_dirs(broker)
    if known is not None and header.acting:
        header.register(broker, now)
        if known.endpoints != now.endpoints:
            tx.events.begin(EventKind.BROKER_MODIFICATIONS, f"broker {broker} changed its endpoints")
            tx.requests.broadcast(tx.state.registered)
    elif header.acting:
        _registered(tx, broker, before, now)
    else:
        header.register(broker, now)
        touch_hosted(tx.state, broker)
    header.departures.end(broker)
    if before is not None and known is None and not before.inferred:
        cause = (
            f"broker {broker} registered again at once, after a restart or a lost session: clients may have met errors "
            f"(epoch {now.epoch:#x} after {before.epoch:#x})"
        )
        occurrences.note(tx.state, kinds.BROKER_BOUNCED, cause, broker=broker)
    publish_broker(tx, broker)


def _registered(tx: Transaction, broker: BrokerId, before: Broker | None, now: Broker) -> None:
    """Handle a registration by what the controller knows of the broker."""
    header = tx.header
    if now.epoch < header.term.controller_zxid:  # a gap hid it, and the controller loaded it after its election
        header.register(broker, now)
        if before is None:
            controller_failover.load_with(tx, broker)
    elif before is None:
        _started(tx, broker, now)
    elif header.profile.notices_bounces:
        _bounced(tx, broker, now)
    else:
        header.register(broker, now)
        touch_hosted(tx.state, broker)


def _started(tx: Transaction, broker: BrokerId, now: Broker) -> None:
    topic_deletion.judge_halted(tx, soon=True)
    tx.header.register(broker, now)
    event = tx.events.begin(EventKind.BROKER_CHANGE, f"broker {broker} registered with epoch {now.epoch}")
    event.detail = BrokersChanged(started=broker)
    tx.events.await_proof(event)
    tx.events.publish_transition("broker", "dead", "live", broker=broker)
    on_broker_startup(tx, broker)


def _registration(znode: BrokerZnode, record: Record, known: Broker | None, since_ms: int, release: Release) -> Broker:
    return Broker(
        epoch=BrokerEpoch(record.czxid),
        session=record.ephemeral_owner,
        since_ms=since_ms if known is None else known.since_ms,
        endpoints=znode.addresses(),
        rack=znode.rack,
        least_release=release,
        at_work=known is not None and known.at_work,
    )


def began_ms(state: MutableState) -> int:
    """Return the cluster's time when the record's ephemeral znode was created.

    A complete read computes it from the znode's ctime. A live record follows the creation at once, so its own time is
    taken, which rules can compare with the times of other records.
    """
    header, ctime_ms = state.header, state.record.ctime_ms
    if header.phase is FOLLOWING or not ctime_ms:
        return header.time_ms
    return header.time_ms - max(0, header.wall_ms - ctime_ms)


def _follow_process(tx: Transaction, broker: BrokerId, now: Broker, *, registers: bool) -> None:
    """Conclude the actions of the broker's former process, and follow a poisoned process to its new registration.

    Only ZooKeeper's transaction log has the number of a session's request. In a live watch each registration counts as
    a new process.
    """
    fenced_controller.registered(tx, broker)
    former, record = tx.header.former, tx.state.record
    if registers and record.author == now.session and 0 < record.cxid < _REQUESTS_OF_A_START:
        former.follow_poisoned(broker, now.epoch)
    elif registers:
        former.forget_poisoned(broker)


def waits_for_more(tx: Transaction, broker: BrokerId) -> bool:
    """Return whether the failure of this broker can wait to be planned with others that leave with it.

    The controller handles failures together that it has not begun to handle, so each further one plans all of them
    again. Beyond some plans, that waits for the next record that removes no broker, a heartbeat at the latest. A broker
    of which something else is expected does not wait.
    """
    header, last = tx.header, tx.events.last_event()
    if last is None or last.pending <= _PLANNED_AGAIN_AT_ONCE or not (last.writes_due and _may_be_joined(header, last)):
        return False
    expected = (header.controller, header.former.deposed, *header.shutdowns.attempts, *header.shutdowns.under_way)
    return header.acting and broker not in expected


def plan_failures(tx: Transaction) -> None:
    """Plan the failures that waited for each other."""
    if not tx.header.departures.unplanned:
        return
    failed = tx.header.departures.end_waiting()
    if tx.header.acting:
        _begin_failure(tx, failed)
    for broker in failed:
        touch_hosted(tx.state, broker)
    tx.state.judged_brokers = {}  # the alerts did not know of this failure


def broker_removed(tx: Transaction, broker: BrokerId, *, waits: bool = False) -> None:
    """Handle the removal of a broker's znode after a crash, a shutdown, or the loss of its session.

    `waits` leaves its partitions to `plan_failures`.
    """
    header = tx.header
    if broker not in header.brokers:
        return
    gone = header.brokers[broker]
    if header.acting:
        controlled_shutdown.give_up_on_missing(tx)
    if header.acting and not _was_silent(tx.state, broker, gone):
        topic_deletion.judge_halted(tx, soon=True)
    header.unregister((broker,))
    header.shutdowns.expect_no_more((broker,))
    hosted = tx.state.hosted_by(broker)
    _note_departure(tx.state, broker, gone, hosted)
    tx.state.forget_offline_dirs(broker)
    if waits:
        header.departures.plan_later(broker, gone)
    else:
        if header.acting:
            _begin_failure(tx, {broker: gone})
        for tp in (*hosted, *_led_while_moved_away(tx.state, broker)):
            tx.state.touch(tp)
    publish_broker(tx, broker)


def _note_departure(state: MutableState, broker: BrokerId, gone: Broker, hosted: Iterable[TopicPartition]) -> None:
    header, record = state.header, state.record
    closed_itself = record.author == gone.session and record.cxid > 0  # known from ZooKeeper's transaction log only
    in_order = closed_itself or header.shutdowns.asked.get(broker) == gone.epoch
    shares_with = _away_too(state, broker, hosted)
    hangs = not in_order and kept_its_connection(header, gone)
    departure = Departure(record.zxid, header.time_ms, in_order, gone, shares_with, hangs)
    header.departures.note(broker, departure)
    if in_order or header.phase is not FOLLOWING or (header.led_by_kraft and not record.author):
        return  # a live watch cannot recognise a controlled shutdown while KRaft leads
    header.shutdowns.forget_request(broker)
    header.departures.note_unordered(broker, header.time_ms)


def _away_too(state: MutableState, broker: BrokerId, hosted: Iterable[TopicPartition]) -> tuple[BrokerId, ...]:
    """Return the departed brokers that also have replicas of these partitions."""
    assignments = {partition.replicas for tp in hosted if (partition := state.partition(tp)) is not None}
    replicas = {replica for assigned in assignments for replica in assigned}
    return tuple(sorted(replicas - state.header.brokers.keys() - {broker}))


def _was_silent(state: MutableState, broker: BrokerId, gone: Broker) -> bool:
    """Return whether the broker may have answered no request in the last session timeout before its znode vanished.

    A broker that closes its session, or whose znode another session deletes, answered until then.
    """
    record = state.record
    if not record.author:
        return broker not in state.header.shutdowns.under_way
    return record.author == gone.session and record.cxid == 0


def _begin_failure(tx: Transaction, failed: Mapping[BrokerId, Broker]) -> None:
    last, failed_brokers = tx.events.last_event(), dict(failed)
    if last is not None and _may_be_joined(tx.header, last):
        tx.requests.undo(last.id)
        failed_brokers = {**last.failed_brokers, **failed}
    event = tx.events.begin(EventKind.BROKER_CHANGE, f"{listed(failed_brokers)} left")
    event.detail = BrokersChanged(failed_brokers)
    tx.events.await_proof(event)
    for broker in failed:
        tx.events.publish_transition("broker", "live", "dead", broker=broker)
    on_broker_failure(tx, tuple(failed_brokers))


def _may_be_joined(header: Header, event: Event) -> bool:
    """Return whether the event is a failure with which the controller will handle further ones."""
    return bool(event.failed_brokers) and not (event.begun or event.taken_up or is_any_back(header, event))


def is_any_back(header: Header, failure: Event) -> bool:
    """Return whether a broker of this failure has registered again."""
    return not header.brokers.keys().isdisjoint(failure.failed_brokers)


def forget_departed(tx: Transaction) -> None:
    """Forget brokers that departed more than a day ago, by the cluster's time, and host no replicas."""
    header = tx.header
    left_long_ago = [
        broker
        for broker, departure in header.departures.last.items()
        if header.time_ms - departure.time_ms > _FORGOTTEN_AFTER_MS
    ]
    if not left_long_ago:
        return
    forgotten = set(left_long_ago) - replicas_by_broker(header).keys()
    for broker in sorted(forgotten):
        publish_broker(tx, broker, forgotten=True)
    header.departures.forget(forgotten)
    header.shutdowns.forget(forgotten)


def publish_broker(tx: Transaction, broker: BrokerId, *, forgotten: bool = False) -> None:
    """Publish the broker's row, except during a complete read."""
    if tx.header.phase is FOLLOWING:
        tx.rows.effects.append(broker_row(broker, tx.header, tx.rows.stamp(), forgotten=forgotten))


def _bounced(tx: Transaction, broker: BrokerId, now: Broker) -> None:
    # One event covers the failure of the old registration and the start of the new one.
    header = tx.header
    event = tx.events.begin(
        EventKind.BROKER_CHANGE, f"broker {broker} bounced and registered again with epoch {now.epoch}"
    )
    event.detail = BrokerBounced(broker)
    header.unregister((broker,))
    tx.events.publish_transition("broker", "live", "dead", broker=broker)
    on_broker_failure(tx, (broker,))
    header.register(broker, now)
    tx.events.publish_transition("broker", "dead", "live", broker=broker)
    on_broker_startup(tx, broker)


def on_broker_startup(tx: Transaction, broker: BrokerId) -> None:
    """Handle the startup of a broker (Kafka 3.9 `onBrokerStartup`)."""
    if tx.header.profile.spares_known_metadata:
        tx.requests.broadcast([other for other in tx.state.registered if other != broker])
        tx.requests.broadcast((broker,), of_all=True)
    else:
        tx.requests.broadcast(tx.state.registered)
    hosted = tx.state.hosted_by(broker)
    replica_machine.enter_state(tx, [Replica(tp, broker) for tp in hosted], ReplicaState.ONLINE)
    trigger_online(tx)
    partition_reassignment.resume_on(tx, broker)
    topic_deletion.resume(tx, broker)
    touch_hosted(tx.state, broker)


def on_broker_failure(tx: Transaction, brokers: tuple[BrokerId, ...]) -> None:
    """Handle the failure of brokers (Kafka 3.9 `onBrokerFailure`).

    Elect other leaders and take the brokers' replicas offline.
    """
    header = tx.header
    header.shutdowns.end(brokers)
    header.shutdowns.expect_no_more(brokers)
    replicas = [Replica(tp, broker) for broker in brokers for tp in tx.state.hosted_by(broker)]
    replicas_went_offline(tx, replicas)


def replicas_went_offline(tx: Transaction, replicas: list[Replica], *, alone: bool = False) -> None:
    """Elect new leaders for partitions that lost theirs, then take the replicas offline and out of their ISR.

    The source is Kafka 3.9's `onReplicasBecomeOffline`. `alone` leaves out all partitions but those of the replicas.
    """
    theirs = {replica.tp for replica in replicas}
    leaderless = [tp for tp in without_online_leader(tx.state) if not alone or tp in theirs]
    if not tx.header.profile.offlines_every_leaderless:
        leaderless = [tp for tp in leaderless if _led_by(tx.state, tp, {replica.broker for replica in replicas})]
    partition_machine.enter_state(tx, leaderless, PartitionState.OFFLINE)
    elected = partition_machine.bring_online(tx, leaderless) if alone else trigger_online(tx)
    queued = [replica for replica in replicas if tx.state.topics[replica.tp.topic].queued_for_deletion]
    others = [replica for replica in replicas if not tx.state.topics[replica.tp.topic].queued_for_deletion]
    replica_machine.enter_state(tx, others, ReplicaState.OFFLINE)
    topic_deletion.replicas_failed(tx, queued)
    sent = others or elected if tx.header.profile.updates_metadata_on_every_failure else leaderless
    if not sent and tx.header.brokers:
        tx.requests.broadcast(tx.state.registered)


def _led_by(state: MutableState, tp: TopicPartition, brokers: set[BrokerId]) -> bool:
    partition = state.partition(tp)
    value = partition.value(state.header.controller_epoch) if partition else None
    return value is not None and value.leader in brokers


def without_online_leader(state: MutableState) -> list[TopicPartition]:
    """Return the partitions outside queued topics that have a state but no online leader."""
    epoch, live = state.header.controller_epoch, state.live

    def leaderless(partition: Partition) -> bool:
        value = partition.value(epoch)
        return value is not None and (value.leader not in live or value.leader in partition.offline_dirs)

    return [tp for tp in state.unled(leaderless) if not state.topics[tp.topic].queued_for_deletion]


def touch_hosted(state: MutableState, broker: BrokerId) -> None:
    """Judge partitions with a replica on the broker again."""
    if state.header.phase is FOLLOWING:
        for tp in (*state.hosted_by(broker), *_led_while_moved_away(state, broker)):
            state.touch(tp)


def _led_while_moved_away(state: MutableState, broker: BrokerId) -> list[TopicPartition]:
    """Return the partitions that the broker leads in ZooKeeper, while the controller plans to move them off it."""
    return state.unsettled(
        lambda partition: (
            (value := partition.zk_state) is not None and value.leader == broker and broker not in partition.replicas
        )
    )


def forget_unseen_brokers(header: Header) -> None:
    """Record brokers that a complete read did not name as departed, at its end."""
    seen = (*header.read.brokers, *(header.in_kraft_mode if header.kraft_owns_controller else ()))
    unseen = header.brokers.keys() - set(seen)
    header.read.ended = (*header.read.ended, *unseen)
    for broker in unseen:
        header.departures.note(broker, Departure(UNKNOWN_ZXID, header.time_ms, was=header.brokers[broker]))
    header.unregister(unseen)
    header.read.brokers = ()
    # A broker that registered again during the gap is not shutting down any more, and no event shows this.
    header.shutdowns.end([broker for broker in header.shutdowns.under_way if not has_asked(header, broker)])
    shutdown_requests.keep_attempts(header)
