"""A complete read of the cluster: values are taken as they come, and judged once at the end.

Here belongs the beginning and the end of a read. In between nothing is concluded: a read has an order of its own, not
the controller's. Afterwards the replica stands where a controller stands that has just loaded its context.
"""

from __future__ import annotations

from controller.events import controller_failover, topic_deletion
from controller.events.broker_change import forget_unseen_brokers, publish_broker, with_initial_states
from controller.events.controller_change import adopt, publish_controller
from controller.model.context import FOLLOWING, LOADING
from controller.model.topics import Topic
from controller.rules.states import PartitionState, ReplicaState
from controller.transaction.transaction import Turn, replace


def begin(turn: Turn) -> None:
    """A complete read starts: what is known stays until the read says otherwise."""
    header = turn.header
    controller_failover.cut(turn, turn.header.controller)
    header.phase = LOADING
    header.term_active = False
    header.seen_controller, header.seen_brokers, header.seen_deletions = False, (), ()
    header.isr_notifications = {}
    header.migrating, header.reassign_znode, header.preferred_znode = False, None, None


def end(turn: Turn) -> None:
    """The read is complete: forget what it did not name, set the machines up, publish everything."""
    header = turn.header
    if header.phase is not LOADING:
        return
    header.phase, header.lacks_records, header.quarantined = FOLLOWING, False, ""
    turn.shows_all, header.judged_by = True, turn.rules
    for name, topic in turn.topics:
        if topic.seen_generation != turn.record.generation and topic.exists:
            turn.put_topic(name, None)
    forget_unseen_brokers(turn)
    adopt(turn)
    for name, topic in turn.topics:
        if topic.exists:
            turn.put_topic(name, _set_up(turn, topic, queued=name in header.seen_deletions))
    header.seen_deletions = ()
    publish_controller(turn)
    for broker in sorted({*header.brokers, *header.departed}):
        publish_broker(turn, broker)


def deletion_listed(turn: Turn, name: str) -> None:
    """The read found an entry in /admin/delete_topics."""
    turn.header.seen_deletions = (*turn.header.seen_deletions, name)
    topic_deletion.deletion_asked(turn, name)


def _set_up(turn: Turn, topic: Topic, *, queued: bool) -> Topic:
    dead = ReplicaState.OFFLINE
    partitions = {number: with_initial_states(turn, partition, dead) for number, partition in topic.partitions.items()}
    if not queued:
        return replace(
            topic, partitions=partitions, queued=False, deletion_started=False, ineligible=False, unasked=False
        )
    deleting = {
        number: replace(
            partition,
            state=PartitionState.NON_EXISTENT,
            replica_states={broker: _deletion_state(state) for broker, state in partition.replica_states.items()},
        )
        for number, partition in partitions.items()
    }
    waits = any(state is ReplicaState.OFFLINE for part in partitions.values() for state in part.replica_states.values())
    return replace(topic, partitions=deleting, queued=True, deletion_started=True, ineligible=waits)


def _deletion_state(state: ReplicaState) -> ReplicaState:
    # Whether the deletion had begun is not known; a live replica is taken as asked, a dead one as waiting.
    return ReplicaState.DELETION_STARTED if state is ReplicaState.ONLINE else ReplicaState.DELETION_INELIGIBLE
