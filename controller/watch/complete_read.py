"""Complete read of a cluster. Its values are stored as they come, and judged at the end.

Conclusions wait for the end, because the order of a read is not the order of the controller's writes. After the read
the state is that of a controller that has just loaded its context.

A forwarder that has published everything before reads it again after a gap, and publishes the differences
(`Record.resync`). They are a history in ZooKeeper's order, which the handlers receive like a watched one. A gap hides
merged writes, brokers that left and returned, and controllers that came and went. So a merged write is taken as it is,
and the controller counts as having acted in the gap.
"""

from __future__ import annotations

from typing import Final

from msgspec.structs import replace

from controller.contract.ids import UNKNOWN_ZXID, TopicPartition
from controller.events import (
    controller_failover,
    deletion_requests,
    fenced_controller,
    migration,
    partition_reassignment,
    topic_change,
    topic_deletion,
)
from controller.events.broker_change import forget_unseen_brokers, publish_broker
from controller.events.controller_change import adopt, publish_controller, take_over_if_due
from controller.machines.partition_machine import with_initial_states
from controller.model.context import FOLLOWING, LOADING
from controller.model.topics import Topic
from controller.rules.states import PartitionState, ReplicaState
from controller.transaction.transaction import Transaction
from controller.view.health import ordinary
from controller.watch import ensemble

_OFFLINE: Final = ReplicaState.OFFLINE


def begin(tx: Transaction) -> None:
    """Begin a complete read.

    Values stay until the read replaces them, except settings of topics and brokers.
    """
    header, newest = tx.header, tx.header.zxid
    header.read.cut_failover = controller_failover.is_under_way(tx.events)
    controller_failover.forget_in_flight_events(tx)
    fenced_controller.give_up(tx)
    header.enter(LOADING)
    header.term.activate(active=False)
    header.read.began_ms = header.time_ms
    header.read.names_controller, header.read.brokers, header.read.deletions = False, (), ()
    header.read.ended = ()
    topic_change.forget_settings(tx.state)
    header.configuration.dynamic = {}
    header.damaged.begin_read()
    header.flawed = {}
    header.configuration.unparsable = {}
    header.triggers.isr_notifications, header.triggers.log_dir_events = {}, ()
    header.triggers.reassign, header.triggers.preferred = None, None
    header.migration.exists, header.migration.offset, header.migration.deletions_asked = False, -1, ()
    ensemble.note_rollback(tx.state, newest if 0 <= tx.state.record.zxid < newest else UNKNOWN_ZXID)


def end(tx: Transaction) -> None:
    """End a complete read. Forget znodes that it did not name, set up the state machines, publish everything."""
    header = tx.header
    if header.phase is not LOADING:
        return
    header.enter(FOLLOWING)
    header.read.is_ahead = True
    header.feed.lacks_records, header.feed.quarantined = False, ""
    header.tally.judged_by = tx.state.rules
    for name, topic in tx.state.topics:
        if topic.seen_generation != tx.state.record.generation and topic.exists:
            topic_change.forget_topic(tx.state, name, topic)
    if header.damaged.lost_ids or header.damaged.changed_ids:
        header.damaged.keep_ids(frozenset(name for name, topic in tx.state.topics if topic.exists))
    forget_unseen_brokers(header)
    adopt(tx.state)
    migration.adopt(tx)
    queued = frozenset(header.read.deletions if header.settings.delete_topic_enable else ())
    deletes_on = header.acting and header.term.is_found_again  # also topics whose entry was removed by hand
    for name, topic in tx.state.topics:
        if topic.exists:
            is_queued = name in queued or (deletes_on and topic.request_removed)
            tx.state.put_topic(name, _set_up(tx, name, topic, queued=is_queued))
    partition_reassignment.adopt(tx)
    deletion_requests.note_read(tx.state, header.read.deletions)
    header.read.deletions = ()
    publish_controller(tx)
    for broker in sorted({*header.brokers, *header.departures.last}):
        publish_broker(tx, broker)


def end_gap(tx: Transaction) -> None:
    """End a gap whose differences have all come."""
    feed = tx.header.feed
    if not feed.catches_up:
        return
    feed.catches_up, feed.caught_up_ms = False, tx.header.time_ms
    tx.header.read.is_ahead = True
    take_over_if_due(tx)  # of the /controller that was known, if the gap hid only its epoch
    if tx.header.acting:
        partition_reassignment.judge_unseen(tx)


def deletion_listed(tx: Transaction, name: str) -> None:
    """Store an entry in /admin/delete_topics that the read found."""
    if not tx.header.led_by_kraft:
        tx.header.read.deletions = (*tx.header.read.deletions, name)
    topic_deletion.deletion_asked(tx, name)


def _set_up(tx: Transaction, name: str, topic: Topic, *, queued: bool) -> Topic:
    well = frozenset() if queued else ordinary(topic, tx.state.live, tx.state.rules)
    partitions = dict(topic.partitions)
    for number in [number for number in partitions if number not in well] if len(well) < len(partitions) else ():
        tx.state.touch(TopicPartition(name, number))
        partitions[number] = with_initial_states(tx, partitions[number].with_dirs_back(tx.header.read.ended), _OFFLINE)
    if not queued:
        return replace(
            topic,
            partitions=partitions,
            queued_for_deletion=False,
            deletion_started=False,
            ineligible=False,
            request_removed=False,
        )
    deleting = {
        number: replace(
            partition,
            state=PartitionState.NON_EXISTENT,
            replica_states={broker: _deletion_state(state) for broker, state in partition.all_replica_states.items()},
        )
        for number, partition in partitions.items()
    }
    waits = any(state is _OFFLINE for part in partitions.values() for state in part.all_replica_states.values())
    return replace(topic, partitions=deleting, queued_for_deletion=True, deletion_started=True, ineligible=waits)


def _deletion_state(state: ReplicaState) -> ReplicaState:
    # The deletion may have begun or not. Live replicas count as having got a StopReplica, offline ones as waiting.
    return ReplicaState.DELETION_STARTED if state is ReplicaState.ONLINE else ReplicaState.DELETION_INELIGIBLE
