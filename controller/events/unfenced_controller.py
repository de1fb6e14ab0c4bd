"""Unfenced (zombie) controller: deposed while it waits, it resumes its in-flight events when it wakes up.

Up to Kafka 2.0 a controller's writes are not fenced (KAFKA-6082), and one that waits for a failed broker's connection
to close is not notified of anything meanwhile. It then resumes its in-flight and queued events with its old memory; it
reads again only states and triggers, and leaves states alone that a newer controller wrote. From 2.1 on its first
write ends in an exception.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from controller.machines import partition_creation
from controller.model.controllership import UnfencedController
from controller.model.event import Event, EventKind
from controller.model.leadership import AnyAction, LeaderAndIsr, StateChange, StopEntry, Write
from controller.model.topics import Partition, TopicPartition
from controller.rules import timing
from controller.transaction.transaction import Transaction, replace

_CREATIONS: Final = (EventKind.PARTITION_MODIFICATIONS, EventKind.TOPIC_CHANGE)
_REASSIGNMENT: Final = EventKind.ZK_PARTITION_REASSIGNMENT


def keep_in_flight_events(tx: Transaction, broker: int) -> None:
    """Keep the in-flight events of the deposed controller on this broker, for the time when it resumes unfenced."""
    header = tx.header
    events = {event.id: event for event in tx.open_events() if event.epoch == header.term.epoch}
    if header.profile.fences_writes or broker not in header.brokers or not events:
        return
    waiting = dict.fromkeys(tp for event in events.values() for tp in tx.waiting(event))
    queues = tuple((tp.topic, tp.partition, tx.topics[tp.topic].partitions[tp.partition].queue) for tp in waiting)
    header.former.unfenced = UnfencedController(broker, header.term.epoch, header.time_ms, events, queues)


def forget(tx: Transaction, broker: int) -> None:
    """Forget a deposed controller whose broker left or became controller again: it does not resume the old term."""
    unfenced = tx.header.former.unfenced
    if unfenced is not None and unfenced.broker == broker:
        tx.header.former.unfenced = None


def forget_in_time(tx: Transaction) -> None:
    """Forget a deposed controller after its longest wait: it has found out that it was deposed."""
    unfenced = tx.header.former.unfenced
    if unfenced is not None and tx.header.has_passed(timing.LONGEST_WAIT, unfenced.since_ms):
        tx.header.former.unfenced = None


def has_resumed(tx: Transaction, before: LeaderAndIsr | None, written: LeaderAndIsr) -> bool:
    """Whether a write is the deposed controller's own, and not a leader's of its term."""
    header = tx.header
    if header.former.unfenced is None or header.former.unfenced.epoch != written.controller_epoch:
        return False
    # A write while the new controller takes over may be read by it: it is matched with the expected writes of either.
    taken_over = header.has_passed(timing.STATES_READ, header.term.began_ms)
    return taken_over and (before is None or written.leader_epoch > before.leader_epoch)


def resume(tx: Transaction) -> None:
    """Resume the deposed controller: its writes are due, with its state changes and requests after them.

    The states of partitions and replicas are the active controller's, and stay.
    """
    unfenced = tx.header.former.unfenced
    assert unfenced is not None, "no deposed controller waits"
    tx.header.former.unfenced = None
    for event in unfenced.events.values():
        if event.kind == _REASSIGNMENT and not tx.header.triggers.reassign:
            continue  # it reads the znode only now, and the znode is gone
        resumed = tx.begin(event.kind, event.cause)
        resumed.epoch = unfenced.epoch
        resumed.controller = unfenced.broker
        resumed.due = [0] * len(event.due)
        if event.kind not in _CREATIONS:
            resumed.batches = event.batches
            resumed.pending += len(event.batches)
        for tp, partition, actions in _planned(tx, unfenced, event):
            if event.kind in _CREATIONS:
                _create(tx, tp, partition)
            else:
                still_done = _as_read_now(partition, actions, unfenced.epoch)
                tx.queue(tp, partition, *(replace(action, event=resumed.id) for action in still_done))
        resumed.begun = resumed.writes_due > 0


def _planned(
    tx: Transaction, unfenced: UnfencedController, event: Event
) -> Iterator[tuple[TopicPartition, Partition, tuple[AnyAction, ...]]]:
    for topic, number, queue in unfenced.queues:
        actions = tuple(action for action in queue if action.event == event.id)
        partition = tx.partition(TopicPartition(topic, number))
        if actions and partition is not None:
            yield TopicPartition(topic, number), partition, actions


def _create(tx: Transaction, tp: TopicPartition, partition: Partition) -> None:
    """Create the partition by its topic's present znode, for a controller that does not know the partition yet."""
    tx.put_partition(tp, Partition(partition.replicas, zk_state=partition.zk_state))
    partition_creation.create(tx, [tp])
    created = tx.topics[tp.topic].partitions[tp.partition]
    tx.put_partition(tp, replace(partition, queue=(*partition.queue, *created.queue)))


def _as_read_now(partition: Partition, actions: tuple[AnyAction, ...], epoch: int) -> Iterator[AnyAction]:
    """Actions that the controller of this epoch had planned and still does, with the present state."""
    value = partition.zk_state
    if value is None or value.controller_epoch > epoch:
        yield from _without_state(actions)
        return
    for action in actions:
        after = action.apply(value, epoch) if isinstance(action, Write) else value
        if after is not None:  # else a leader has written it already
            value = after
            yield action


def _without_state(actions: tuple[AnyAction, ...]) -> Iterator[AnyAction]:
    """Actions that need no partition state: all that is done for a partition that a newer controller wrote."""
    stuck: set[int | None] = set()
    for action in actions:
        if isinstance(action, StateChange) and (
            action.written or action.replica in stuck or action.takes_replica_offline
        ):
            stuck.add(action.replica)
        elif isinstance(action, StateChange) or (isinstance(action, StopEntry) and not action.delete):
            yield action
