"""Unfenced (zombie) controllers, which are deposed in the midst of their events and continue them, perhaps later.

Up to Kafka 2.0 a controller's writes are not fenced (KAFKA-6082). The loss of /controller is an event in its queue. The
controller first handles the events before it, while the next controller loads, or much later if it waits for a failed
broker's connection to close. It does so with its old memory. It reads only states and triggers again, and skips states
that a newer controller wrote. Several such controllers may continue at once. From 2.1 on the first write ends in an
exception.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from typing import Final

from msgspec.structs import replace

from controller.contract.ids import BrokerId, ControllerEpoch, TopicPartition
from controller.contract.leader_and_isr import LeaderAndIsr
from controller.events import controller_failover
from controller.events.topic_deletion import ANSWERED_IN_TIME
from controller.machines import partition_machine
from controller.model.brokers import Broker
from controller.model.context import Header
from controller.model.controllership import UnfencedController
from controller.model.event import CREATIONS, Event, EventKind
from controller.model.leadership import AnyAction, StateChange, StateEntry, StopEntry, Write, fold
from controller.model.mutable_state import MutableState
from controller.model.topics import Partition
from controller.rules import timing
from controller.transaction.certainty import sent_value
from controller.transaction.transaction import Transaction

# The rule by which a deposed controller has handled its events without a write.
RAN_UNFENCED: Final = "ran-unfenced"

_REASSIGNMENT: Final = EventKind.ZK_PARTITION_REASSIGNMENT


def keep_in_flight_events(tx: Transaction, broker: BrokerId) -> None:
    """Keep the in-flight events of the deposed controller on this broker, for the time when it resumes unfenced."""
    header = tx.header
    if header.profile.fences_writes or broker not in header.brokers or broker == header.controller:
        return
    own = [event for event in tx.events.open_events() if event.epoch == header.term.epoch]
    # A controller that still loads resigns right after its load, whatever came meanwhile.
    loading = [event for event in own if event.kind is EventKind.CONTROLLER_FAILOVER]
    kept = [event for event in loading or own if _waits(own[0]) or event.inferred_by != ANSWERED_IN_TIME]
    events = {event.id: replace(event, due=list(event.due)).stored() for event in kept}  # the events are aborted
    if not events:
        return
    waiting = dict.fromkeys(tp for event in events.values() for tp in tx.certainty.waiting(event))
    queues = tuple((tp.topic, tp.partition, tx.state.topics[tp.topic].partitions[tp.partition].queue) for tp in waiting)
    deposed = UnfencedController(broker, header.term.epoch, header.time_ms, events, queues, header.former.deposed_ms)
    header.former.keep_unfenced(broker, deposed)


def _waits(event: Event) -> bool:
    """Return whether a controller that is in this event waits for a failed broker's connection to close."""
    return bool(event.failed_brokers)


def forget(header: Header, broker: BrokerId) -> None:
    """Forget a deposed controller that will not resume its events, because its broker left or the events are done."""
    header.former.forget_unfenced(broker)


def work_off_in_time(tx: Transaction) -> None:
    """Work off the events of deposed controllers after their longest wait. By then they have noticed the loss."""
    for deposed in tx.header.former.unfenced.values():
        if tx.header.has_passed(timing.LONGEST_WAIT, deposed.since_ms):
            work_off(tx, deposed.broker)


def work_off(tx: Transaction, broker: BrokerId) -> None:
    """Work off the events of a deposed controller that lives on. It has resumed them without a write.

    It waited for a failed broker's connection to close. If a newer controller has written all states that it would
    write, no write shows its actions. If a write of its own was due and did not come, its events remain unknown.
    """
    deposed = tx.header.former.unfenced.get(broker)
    if deposed is None:
        return
    if not (_waits(next(iter(deposed.events.values()))) and deposed.lost_ms):
        forget(tx.header, broker)
        return
    trial = tx.fork()
    resumed = resume(trial, deposed, RAN_UNFENCED)
    if any(event.writes_due for event in resumed):
        forget(tx.header, broker)
        return
    for event in resumed:
        event.begun = True
    tx.adopt(trial)


def resumed_by(state: MutableState, before: LeaderAndIsr | None, written: LeaderAndIsr) -> UnfencedController | None:
    """Return the deposed controller whose own write this is, None for a write by a leader or within its term."""
    header = state.header
    if controller_failover.was_before_load(state):
        return None
    deposed = next((each for each in header.former.unfenced.values() if each.epoch == written.controller_epoch), None)
    if before is None:
        return deposed
    # Of several writes, the last may be a leader's, and the others from before.
    is_one = written.partition_epoch == before.partition_epoch + 1
    return deposed if is_one and written.leader_epoch > before.leader_epoch else None


def resume_author(tx: Transaction) -> None:
    """Resume the deposed controller whose session wrote this record."""
    for deposed in tx.header.former.unfenced.values():
        if _is_author(tx.state, deposed.broker):
            resume(tx, deposed)


def goes_on(tx: Transaction) -> bool:
    """Return whether the record's session belongs to a deposed controller that has resumed its events."""
    epoch = tx.header.term.epoch
    return any(event.epoch < epoch and _is_author(tx.state, event.controller) for event in tx.events.open_events())


def _is_author(state: MutableState, broker: BrokerId) -> bool:
    registered = state.header.brokers.get(broker)
    return registered is not None and state.record.author == registered.session


def resume(tx: Transaction, unfenced: UnfencedController, rule: str = "") -> list[Event]:
    """Resume a deposed controller. Its writes are due, and its state changes and requests follow them.

    The states of partitions and replicas are the active controller's, and stay.
    """
    forget(tx.header, unfenced.broker)
    events: list[Event] = []
    in_hand = next(iter(unfenced.events))
    for event in unfenced.events.values():
        if event.kind == _REASSIGNMENT and not tx.header.triggers.reassign and event.id != in_hand:
            continue  # the controller reads the znode only now, when it is gone
        with tx.events.inferring(rule):
            resumed = tx.events.begin(event.kind, event.cause) if rule else tx.events.begin_again(event)
        events.append(resumed)
        resumed.epoch = unfenced.epoch
        resumed.controller = unfenced.broker
        resumed.due = [0] * len(event.due)
        if event.kind not in CREATIONS:
            resumed.batches = event.batches
            resumed.pending += len(event.batches)
        known = _known_before(tx.header, unfenced, event)
        for tp, partition, actions in _planned(tx.state, unfenced, event):
            if event.kind in CREATIONS:
                _create(tx, tp, partition, known)
            else:
                before = [action for action in partition.queue if any(action.event == each.id for each in events)]
                value = fold(before, partition.zk_state, unfenced.epoch)
                still_done = _as_read_now(value, actions, unfenced.epoch)
                tx.events.queue(tp, partition, *(replace(action, event=resumed.id) for action in still_done))
        resumed.begun = resumed.writes_due > 0
    for topic, number, _ in unfenced.queues:
        _put_first(tx.state, TopicPartition(topic, number), {event.id for event in events})
    return events


def _put_first(state: MutableState, tp: TopicPartition, resumed: Collection[int]) -> None:
    """Put the actions of resumed events before the actions of a new controller that takes over meanwhile.

    The new controller had read the state before the resumed write. Until its own first write it sends that earlier
    state.
    """
    partition = state.partition(tp)
    if partition is None or not any(action.event in resumed for action in partition.queue):
        return
    first = [action for action in partition.queue if action.event in resumed]
    later = [action for action in partition.queue if action.event not in resumed]
    until = next((at for at, action in enumerate(later) if action.writes), len(later))
    sent = [
        replace(action, value=sent_value(partition, action)) if isinstance(action, StateEntry) else action
        for action in later[:until]
    ]
    state.put_partition(tp, replace(partition, queue=(*first, *sent, *later[until:])))


def _planned(
    state: MutableState, unfenced: UnfencedController, event: Event
) -> Iterator[tuple[TopicPartition, Partition, tuple[AnyAction, ...]]]:
    for topic, number, queue in unfenced.queues:
        actions = tuple(action for action in queue if action.event == event.id)
        partition = state.partition(TopicPartition(topic, number))
        if actions and partition is not None:
            yield TopicPartition(topic, number), partition, actions


def _known_before(header: Header, unfenced: UnfencedController, event: Event) -> dict[BrokerId, Broker]:
    """Return the brokers that the deposed controller knows when it handles the event, before later failures."""
    later = [each.failed_brokers for each in unfenced.events.values() if each.id > event.id]
    return {**header.brokers, **{broker: gone for failed in later for broker, gone in failed.items()}}


def _create(tx: Transaction, tp: TopicPartition, partition: Partition, known: dict[BrokerId, Broker]) -> None:
    """Create the partition by its topic's present znode, for a controller that does not know the partition yet."""
    tx.state.put_partition(tp, Partition(partition.replicas, zk_state=partition.zk_state))
    with tx.header.knowing(known):
        partition_machine.create(tx, [tp])
    created = tx.state.topics[tp.topic].partitions[tp.partition]
    tx.state.put_partition(tp, replace(partition, queue=(*partition.queue, *created.queue)))


def _as_read_now(
    value: LeaderAndIsr | None, actions: tuple[AnyAction, ...], epoch: ControllerEpoch
) -> Iterator[AnyAction]:
    """Yield the actions that the controller of this epoch still does, with the state that it reads now."""
    if value is None or value.controller_epoch > epoch:
        yield from _without_state(actions)
        return
    for action in actions:
        after = action.apply(value, epoch) if isinstance(action, Write) else value
        if after is not None:  # otherwise a leader has already written the change
            value = after
            yield action


def _without_state(actions: tuple[AnyAction, ...]) -> Iterator[AnyAction]:
    """Yield the actions that need no partition state, for a partition that a newer controller wrote."""
    stuck: set[BrokerId | None] = set()
    for action in actions:
        if isinstance(action, StateChange) and (
            action.written or action.replica in stuck or action.takes_replica_offline
        ):
            stuck.add(action.replica)
        elif isinstance(action, StateChange) or (isinstance(action, StopEntry) and not action.delete):
            yield action
