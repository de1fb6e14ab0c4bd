"""Deposed controllers that do not know it yet: what one that slept through the end of its term does when it goes on.

Here belongs what Kafka up to 2.0 does: nothing fences a controller's writes (KAFKA-6082), and one that waits for a dead
broker's connection to close hears of nothing meanwhile. It then goes on with what it had taken up or heard of, by what
it knew then. Only states and triggers are read anew, and states that a newer controller has written are left alone.
From 2.1 on its first write ends its term.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from controller.machines import partition_creation
from controller.model.controllership import UnfencedController
from controller.model.event import Event, EventKind
from controller.model.leadership import AnyAction, LeaderAndIsr, StateChange, StopEntry, Write
from controller.model.topics import Partition, TopicPartition
from controller.transaction.transaction import Transaction, replace

# Within this a new controller has read the cluster and done what it found to do. What the old one writes while that
# goes on may be read by the new one or not: it is taken for what either was expected to write.
_TAKING_OVER_MS: Final = 1_000

# A controller waits no longer for a connection (controller.socket.timeout.ms).
_LONGEST_SLEEP_MS: Final = 30_000

_CREATIONS: Final = (EventKind.PARTITION_MODIFICATIONS, EventKind.TOPIC_CHANGE)
_REASSIGNMENT: Final = EventKind.ZK_PARTITION_REASSIGNMENT


def fall_asleep(tx: Transaction, broker: int) -> None:
    """Keep what the deposed controller on this broker was still to do, for when it goes on as if nothing had been."""
    header = tx.header
    events = {event.id: event for event in tx.open_events() if event.epoch == header.term.epoch}
    if header.profile.fences_writes or broker not in header.brokers or not events:
        return
    waiting = dict.fromkeys(tp for event in events.values() for tp in tx.waiting(event))
    queues = tuple((tp.topic, tp.partition, tx.topics[tp.topic].partitions[tp.partition].queue) for tp in waiting)
    header.former.unfenced = UnfencedController(broker, header.term.epoch, header.time_ms, events, queues)


def forget(tx: Transaction, broker: int) -> None:
    """The broker goes, or becomes controller again: it does not go on as the controller that it was."""
    unfenced = tx.header.former.unfenced
    if unfenced is not None and unfenced.broker == broker:
        tx.header.former.unfenced = None


def forget_in_time(tx: Transaction) -> None:
    """A controller that should have woken up by now has heard that it is none any more."""
    unfenced = tx.header.former.unfenced
    if unfenced is not None and tx.header.time_ms - unfenced.since_ms > _LONGEST_SLEEP_MS:
        tx.header.former.unfenced = None


def goes_on(tx: Transaction, before: LeaderAndIsr | None, written: LeaderAndIsr) -> bool:
    """Whether a write is a controller's, not a leader's, of the term that one slept through the end of."""
    header = tx.header
    if header.former.unfenced is None or header.former.unfenced.epoch != written.controller_epoch:
        return False
    slept = header.time_ms - header.term.began_ms > _TAKING_OVER_MS
    return slept and (before is None or written.leader_epoch > before.leader_epoch)


def go_on(tx: Transaction) -> None:
    """The deposed controller goes on: its writes are due, and its moves and requests are certain behind them.

    The states of partitions and replicas are the acting controller's, and stay.
    """
    unfenced = tx.header.former.unfenced
    assert unfenced is not None, "nobody slept"
    tx.header.former.unfenced = None
    for event in unfenced.events.values():
        if event.kind == _REASSIGNMENT and not tx.header.triggers.reassign:
            continue  # what it heard of is gone by the time at which it reads it
        resumed = tx.begin(event.kind, event.cause)
        resumed.epoch = unfenced.epoch
        resumed.controller = unfenced.broker
        resumed.due = [0] * len(event.due)
        if event.kind not in _CREATIONS:
            resumed.batches = event.batches
            resumed.pending += len(event.batches)
        for tp, partition, steps in _planned(tx, unfenced, event):
            if event.kind in _CREATIONS:
                _create(tx, tp, partition)
            else:
                going_on = _as_read_now(partition, steps, unfenced.epoch)
                tx.queue(tp, partition, *(replace(step, event=resumed.id) for step in going_on))
        resumed.begun = resumed.writes_due > 0


def _planned(
    tx: Transaction, unfenced: UnfencedController, event: Event
) -> Iterator[tuple[TopicPartition, Partition, tuple[AnyAction, ...]]]:
    for topic, number, queue in unfenced.queues:
        steps = tuple(step for step in queue if step.event == event.id)
        partition = tx.partition(TopicPartition(topic, number))
        if steps and partition is not None:
            yield TopicPartition(topic, number), partition, steps


def _create(tx: Transaction, tp: TopicPartition, partition: Partition) -> None:
    """The partition is created as its topic's znode says now, by a controller that knows nothing of it yet."""
    tx.put_partition(tp, Partition(partition.replicas, zk_state=partition.zk_state))
    partition_creation.create(tx, [tp])
    created = tx.topics[tp.topic].partitions[tp.partition]
    tx.put_partition(tp, replace(partition, queue=(*partition.queue, *created.queue)))


def _as_read_now(partition: Partition, steps: tuple[AnyAction, ...], epoch: int) -> Iterator[AnyAction]:
    """What comes of the steps that the controller of this epoch had planned, with the state as it is now."""
    value = partition.zk_state
    if value is None or value.controller_epoch > epoch:
        yield from _left_alone(steps)
        return
    for step in steps:
        after = step.apply(value, epoch) if isinstance(step, Write) else value
        if after is not None:  # else a leader has written it already
            value = after
            yield step


def _left_alone(steps: tuple[AnyAction, ...]) -> Iterator[AnyAction]:
    """What comes of the steps for a partition that a newer controller wrote: nothing that its state is needed for."""
    stuck: set[int | None] = set()
    for step in steps:
        if isinstance(step, StateChange) and (step.written or step.replica in stuck or step.takes_replica_offline):
            stuck.add(step.replica)
        elif isinstance(step, StateChange) or (isinstance(step, StopEntry) and not step.delete):
            yield step
