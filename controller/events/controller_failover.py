"""Controller failover. A new controller loads and starts its state machines. A lost controller leaves events undone.

The source is Kafka 3.9's `onControllerFailover` and `onControllerResignation`.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Final

from msgspec.structs import replace

from controller.contract.ids import NO_BROKER, BrokerId, PartitionId, TopicPartition
from controller.events import (
    controlled_shutdown,
    deletion_requests,
    partition_reassignment,
    replica_leader_election,
    topic_deletion,
)
from controller.machines import replica_machine
from controller.machines.partition_machine import initial_partition_state, trigger_online, with_initial_states
from controller.machines.replica_machine import Replica
from controller.model import shutdown_requests
from controller.model.context import Header
from controller.model.event import Event, EventKind
from controller.model.leadership import AnyAction, RemoveFromIsr, StateChange, StateEntry, StopEntry
from controller.model.mutable_state import MutableState
from controller.model.topics import Partition, Topic
from controller.rules import timing
from controller.rules.states import ReplicaState
from controller.transaction.pending_events import PendingEvents
from controller.transaction.transaction import Transaction

_INELIGIBLE: Final = ReplicaState.DELETION_INELIGIBLE


def run(tx: Transaction) -> None:
    """Fail over to the new controller.

    Drop the contents of the last controller's memory, start the machines, and take up pending requests.
    """
    header = tx.header
    header.shutdowns.end_all()
    header.deletions.begin_term()
    shutdown_requests.keep_attempts(header)
    header.triggers.begin_term()
    became = f"broker {header.controller} became controller in epoch {header.controller_epoch}"
    event = tx.events.begin(EventKind.CONTROLLER_FAILOVER, became)
    tx.events.await_proof(event)
    tx.events.publish_transition("controller", "Elected", "Active", broker=header.controller)
    if header.brokers:
        tx.requests.broadcast(tx.state.registered)
    deletion_requests.forget_removed_requests(tx.state)
    _load_named_partitions(tx)
    start_machines(tx, list(tx.state.topics))
    partition_reassignment.take_up(tx)
    topic_deletion.resume_all(tx)
    replica_leader_election.take_up(tx, at_failover=True)


def _load_named_partitions(tx: Transaction) -> None:
    """Load the partitions that the topics' znodes name.

    The last controller left out those that were added to a topic under deletion. It kept those that a deposed
    controller did not know when it rewrote the znode, or that were removed by hand.
    """
    for name, topic in list(tx.state.topics):
        unnamed = [number for number, found in topic.partitions.items() if not found.is_named]
        for number in unnamed:
            tx.events.take_back(TopicPartition(name, number), bool)  # every action
        if topic.refused or unnamed:
            kept = {number: found for number, found in topic.partitions.items() if number not in unnamed}
            tx.state.put_topic(name, deletion_requests.with_refused(replace(topic, partitions=kept)))


def is_loading(state: MutableState) -> bool:
    """Return whether the controller took over so lately that it still loads the topics, without notifications."""
    header = state.header
    return was_before_load(state) or not header.has_passed(timing.TOPICS_READ, header.term.began_ms)


def was_before_load(state: MutableState) -> bool:
    """Return whether the record's write came before the controller's election, so that its load read it after a gap."""
    return state.record.mzxid < state.header.term.controller_zxid


def may_have_read(header: Header, event: Event) -> bool:
    """Return whether the controller may have read the event's change, because its load was shortly before."""
    return event.time_ms - header.term.began_ms <= header.loaded_within_ms


def load(tx: Transaction, name: str, numbers: Iterable[PartitionId]) -> None:
    """Load partitions of a topic that a new controller finds while it reads the cluster."""
    _load(tx, f"topic {name} was there when the cluster was read", {name: numbers})


def load_with(tx: Transaction, broker: BrokerId) -> None:
    """Load the partitions on a broker again that the new controller has found registered after all."""
    failovers = [event.id for event in tx.events.open_events() if _is_of_this_term(tx.header, event)]
    by_topic: dict[str, list[PartitionId]] = {}
    for tp in tx.state.hosted_by(broker):
        for failover in failovers:
            tx.events.undo_in(tp, failover)
        by_topic.setdefault(tp.topic, []).append(tp.partition)
    _load(tx, f"broker {broker} was registered when the cluster was read", by_topic, retries=False)


def _load(tx: Transaction, cause: str, found: Mapping[str, Iterable[PartitionId]], *, retries: bool = True) -> None:
    tx.events.begin(EventKind.CONTROLLER_FAILOVER, cause)
    topics = [(name, tx.state.topics[name], numbers) for name, numbers in found.items()]
    loaded = [
        (name, replace(topic, partitions={number: topic.partitions[number] for number in numbers}))
        for name, topic, numbers in topics
    ]
    start_machines(tx, loaded, retries=retries)


def load_again(tx: Transaction, tp: TopicPartition) -> None:
    """Let a controller that still loads find a partition that a deposed controller created or assigned meanwhile."""
    failover = load_in_flight(tx)
    if failover is not None:
        tx.events.undo_in(tp, failover.id)
        load(tx, tp.topic, [tp.partition])


def load_in_flight(tx: Transaction) -> Event | None:
    """Return the present controller's failover while it has not written anything, else None."""
    failover = next((event for event in tx.events.open_events() if _is_of_this_term(tx.header, event)), None)
    return None if failover is None or failover.begun else failover


def abort_in_flight_events(tx: Transaction, broker: BrokerId) -> None:
    """Abort in-flight events of the controller on this broker. The controller never did their unwritten parts.

    The controller has one thread, which learns of the loss of /controller only after the events before it. Its next
    write ends in an exception. The published effects of an event that has begun stay. If the write is a removal
    from an ISR, the rest of its batch stays in the process, which is poisoned (KAFKA-12315; seen on 2.4, 2.8 and 3.9).
    """
    header = tx.header
    events = _in_flight_of(tx, broker)
    header.former.forget_deposed()
    # The controller stopped in an event with an observed write, or else in the oldest. If it loads, it goes on until
    # its first write.
    due = (event for event in events if event.writes_due)
    stopped_in = min(due, key=lambda event: (not event.begun, event.id), default=None)
    # A gap hides what the controller had in hand, and how its term ended.
    seen = header.profile.fences_writes and not (header.term.is_found_again or tx.state.record.resync)
    if seen and stopped_in is not None and _is_among_removals(tx, stopped_in):
        registered = header.brokers.get(broker)
        if registered is not None and registered.epoch == header.term.registration:
            shown = f"broker {broker} lost its term {stopped_in.epoch} while it had replicas to take out of ISRs"
            header.former.note_poisoned(broker, registered.epoch, f"{shown}, for {stopped_in.sentence}")
    _abort(tx, events)


def forget_in_flight_events(tx: Transaction) -> None:
    """Forget all in-flight events, because a complete read will show the writes of all controllers."""
    tx.header.former.forget_deposed()
    _abort(tx, tx.events.open_events())


def _in_flight_of(tx: Transaction, broker: BrokerId) -> list[Event]:
    return [
        event for event in tx.events.open_events() if not _is_resumed(tx.header, event) or event.controller == broker
    ]


def abort_resumed_events(tx: Transaction, broker: BrokerId) -> None:
    """Abort the events that this broker resumed after its term, unfenced, when its session ends."""
    resumed = [
        event for event in tx.events.open_events() if _is_resumed(tx.header, event) and event.controller == broker
    ]
    _abort(tx, [event for event in resumed if event.writes_due])  # other events are done


def _is_resumed(header: Header, event: Event) -> bool:
    """Return whether a former controller resumed the event, so that another process continues it."""
    return event.epoch < header.term.epoch and event.controller != NO_BROKER


def _abort(tx: Transaction, events: Sequence[Event]) -> None:
    aborted = {event.id for event in events}
    for event in events:
        for tp in tx.certainty.waiting(event):
            _drop_actions(tx, tp, aborted)
        tx.requests.withdraw_requests(tx.events.open_event(event.id))


def is_cut(events: PendingEvents) -> bool:
    """Return whether the failover has states to write and no write was seen."""
    return any(not event.begun for event in _failovers_with_writes_due(events))


def is_under_way(events: PendingEvents) -> bool:
    """Return whether the failover has states to write."""
    return bool(_failovers_with_writes_due(events))


def _failovers_with_writes_due(events: PendingEvents) -> list[Event]:
    return [event for event in events.open_events() if event.kind is EventKind.CONTROLLER_FAILOVER and event.writes_due]


def _is_among_removals(tx: Transaction, event: Event) -> bool:
    """Return whether a removal from an ISR comes next.

    The controller has just written in the event, or it loads, and removes notifications before anything else.
    Otherwise a request that ZooKeeper does not show may come before the event.
    A departure with a broker that is back may have been missed, or handled in parts, but a load had read the brokers
    before one of them that came back late in its term. To retry a topic's deletion may wait for a broker, also for one
    that shuts down unseen.
    """
    header, loads = tx.header, event.kind is EventKind.CONTROLLER_FAILOVER
    deletes = event.kind is EventKind.TOPIC_DELETION and event.first_write_ms > 0
    if not (event.last_write_ms or (loads and event.begun)) or event.id < header.last_written_event:
        return False
    silent = event.last_write_ms and header.time_ms - event.last_write_ms > timing.FIRST_WRITE.of(header.partitions)
    notified = not event.last_write_ms and header.triggers.has_notifications
    was_hidden = event.time_ms <= header.feed.caught_up_ms or (loads and not header.term.began_ms)
    if silent or notified or was_hidden:  # a gap hides what came before the event, and what a load read
        return False
    failed = event.failed_brokers
    read_ms = header.term.began_ms + timing.BROKERS_READ_AT_LAST.of(header.partitions) if loads else header.time_ms
    lost_ms = header.former.deposed_ms or header.time_ms
    back = {
        broker
        for broker, known in header.brokers.items()
        if broker in failed or (known.epoch >= event.zxid and not read_ms < known.since_ms <= lost_ms)
    }
    return back.isdisjoint(failed) and any(
        action.at_batch == event.next_batch and action.replica not in back
        for tp in tx.certainty.waiting(event)
        if deletes or not tx.state.topics[tp.topic].queued_for_deletion
        for action in tx.certainty.actions_at(tp, event)
        if isinstance(action, RemoveFromIsr)
        if not deletes or controlled_shutdown.would_show(tx.state, action.replica)
    )


def _drop_actions(tx: Transaction, tp: TopicPartition, events: Collection[int]) -> None:
    partition = tx.state.partition(tp)
    assert partition is not None, f"{tp} waits, and is not there"
    kept = []
    for action in partition.queue:
        if action.event in events:
            tx.events.withdraw(tp, action)
        else:
            kept.append(action)
    tx.state.put_partition(tp, replace(partition, queue=tuple(kept)))


def start_machines(tx: Transaction, topics: list[tuple[str, Topic]], *, retries: bool = True) -> None:
    """Initialize the states of topics' replicas and partitions as loaded, and start both state machines.

    With `retries` all waiting partitions get leaders, without `retries` only partitions with dead replicas.
    """
    brokers = frozenset(tx.header.brokers)
    online: dict[TopicPartition, tuple[BrokerId, ...]] = {}
    offline: list[Replica] = []
    for name, topic in topics:
        for number, partition in topic.partitions.items():
            tp, loaded = TopicPartition(name, number), _as_loaded(partition)
            tx.state.put_partition(tp, with_initial_states(tx, loaded, _INELIGIBLE))
            online[tp] = loaded.replicas
            if not brokers.issuperset(loaded.replicas):
                online[tp] = tuple([broker for broker in loaded.replicas if broker in brokers])
                offline += [Replica(tp, broker) for broker in loaded.replicas if broker not in brokers]
    replica_machine.bring_online(tx, online)
    if not (retries or offline):
        return
    if tx.header.profile.removes_offline_replicas_at_failover:
        take_offline(tx, offline)
    else:
        trigger_online(tx)


def take_offline(tx: Transaction, replicas: list[Replica]) -> None:
    """Take replicas on absent brokers offline, then elect leaders. An offline leader costs two writes."""
    replica_machine.enter_state(tx, replicas, ReplicaState.OFFLINE)
    for tp in dict.fromkeys(replica.tp for replica in replicas):
        partition = tx.state.topics[tp.topic].partitions[tp.partition]
        tx.state.put_partition(tp, replace(partition, state=initial_partition_state(tx.state, partition)))
    trigger_online(tx)


def leave_out(tx: Transaction, brokers: Collection[BrokerId]) -> None:
    """Take back the failover's plans for brokers that it did not find alive."""
    failovers = [event for event in tx.events.open_events() if _is_of_this_term(tx.header, event)]
    planned_in = {event.id for event in failovers}

    def moves(action: AnyAction) -> bool:
        return action.event in planned_in and isinstance(action, StateChange) and action.replica in brokers

    def stops(action: AnyAction) -> bool:
        return action.event in planned_in and isinstance(action, StopEntry) and action.broker in brokers

    for broker in brokers:
        for tp in tx.state.hosted_by(broker):
            tx.events.take_back(tp, moves)
            partition = tx.state.topics[tp.topic].partitions[tp.partition]
            tx.state.put_partition(tp, partition.with_replica_state(broker, ReplicaState.DELETION_INELIGIBLE))
    for event in failovers:
        for tp in tx.certainty.waiting(event):  # a reassignment that completes sends to replicas that it drops, too
            tx.events.take_back(tp, stops)
            partition = tx.state.topics[tp.topic].partitions[tp.partition]
            queue = tuple([_without_receivers(action, brokers, planned_in) for action in partition.queue])
            tx.state.put_partition(tp, replace(partition, queue=queue))
        tx.requests.spare(event.id, brokers)


def _is_of_this_term(header: Header, event: Event) -> bool:
    return event.kind is EventKind.CONTROLLER_FAILOVER and event.epoch == header.term.epoch


def _without_receivers(action: AnyAction, brokers: Collection[BrokerId], planned_in: Collection[int]) -> AnyAction:
    if not isinstance(action, StateEntry) or action.event not in planned_in:
        return action
    left = tuple([broker for broker in action.brokers if broker not in brokers])
    return replace(action, brokers=left, new_on=tuple([broker for broker in action.new_on if broker in left]))


def _as_loaded(partition: Partition) -> Partition:
    """Return the partition as a controller reads it, without the contents of the last controller's memory."""
    if partition.offline_dirs or partition.pending_assignments or partition.cached is not None:
        partition = replace(partition, offline_dirs=(), pending_assignments=(), cached=None)
    if partition.zk_assignment is not None:
        return replace(partition, zk_assignment=None).with_assignment(partition.zk_assignment)
    return partition
