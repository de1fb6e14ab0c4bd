"""Conclusions from time that passes without a write, about writes that the controller owes or will never make.

`step` judges them before each record, while events are in flight.

A write is expected in vain if the controller did two things at once, or in another order. Later events give such a
write up (`expected_writes`). Without a later event it would be due for ever, and the controller overdue. A write is
needless once the controller has acted after its cause, is silent since, and the cluster is well.

A broker may have registered again before the controller read /brokers/ids, so the controller never missed it. ZooKeeper
shows a departure and then a registration. A controller reads only the present brokers when it handles its event, or
loads the cluster. If it was busy for that long it handles neither, and no write is due. Up to 2.1 it does not even
compare registrations. From 2.2 on it handles such a broker as bounced, and further departures in the same time cost
nothing more. No write shows this, so time does. A controller that hung for so long would have lost its session. It
either had no reason to write, or acted otherwise since. ZooKeeper names live leaders meanwhile, so the conclusion hides
no outage.

A controller that writes on although its process is poisoned (KAFKA-12315) owes removals from ISRs. The cause of the
poisoning was not seen, because it preceded the first complete read, or its broker's loss of a session and its new
registration. A poisoned controller continues to elect leaders and create partitions, and no exception stops it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from msgspec.structs import replace

from controller.contract.ids import NO_BROKER, TopicPartition
from controller.events import broker_change, controlled_shutdown, controller_failover, partition_reassignment
from controller.events.broker_change import without_online_leader
from controller.inference import expected_writes
from controller.inference.expected_writes import give_up
from controller.inference.led_meanwhile import RULE, count_as_online, count_as_online_after, let_stay
from controller.machines import partition_machine
from controller.machines.partition_machine import trigger_online
from controller.model.context import Header
from controller.model.event import BrokersChanged, Event, EventKind
from controller.model.leadership import AnyAction, RemoveFromIsr
from controller.model.mutable_state import MutableState
from controller.model.topics import Partition
from controller.rules import timing
from controller.rules.states import PartitionState
from controller.transaction.transaction import Transaction
from wording.sentences import listed

# Events in which also live replicas leave ISRs, after other writes. A topic's deletion does so too, but it may be held
# up in the controller's memory.
_REASSIGNMENTS: Final = (
    EventKind.ZK_PARTITION_REASSIGNMENT,
    EventKind.API_PARTITION_REASSIGNMENT,
    EventKind.ALTER_PARTITION_RECEIVED,
    EventKind.PARTITION_REASSIGNMENT_ISR_CHANGE,
)


def judge_owed(tx: Transaction) -> None:
    """Conclude that the controller is poisoned if it passed over removals, and made no removal in its term."""
    header = tx.header
    if header.term.removed_replicas or header.is_poisoned or not (header.acting and header.profile.fences_writes):
        return
    owing = next((event for event in header.events.values() if _is_passed_over(tx, event)), None)
    registered = header.brokers.get(header.controller)
    if owing is not None and registered is not None and registered.epoch == header.term.registration:
        _poison(tx, owing)


def _is_passed_over(tx: Transaction, event: Event) -> bool:
    """Return whether the controller has long done other things while removals of this event are due."""
    header = tx.header
    if not event.writes_due or event.epoch != header.term.epoch:
        return False
    seen_ms = max(event.time_ms, event.last_write_ms)
    unfinished_ms = timing.UNFINISHED.of(header.partitions)
    if header.time_ms - seen_ms <= unfinished_ms:
        return False
    # A failover takes replicas offline before it elects, all other events after that.
    elected_first = event.kind is EventKind.CONTROLLER_FAILOVER and event.begun
    # A gap does not show the order in which its events came.
    was_overtaken = event.id < header.last_written_event and event.time_ms > header.feed.caught_up_ms
    wrote_on = was_overtaken or header.term.changed_isr_ms - seen_ms > unfinished_ms
    return (elected_first or wrote_on) and any(
        _is_certain(tx, event, action)
        for tp in tx.certainty.waiting(event)
        if tx.state.topics[tp.topic].partitions[tp.partition].zk_state is not None  # else there is no ISR yet
        for action in tx.certainty.actions_at(tp, event)
    )


def _is_certain(tx: Transaction, event: Event, action: AnyAction) -> bool:
    """Return whether a removal from an ISR comes next that every controller would have known of."""
    if not (isinstance(action, RemoveFromIsr) and action.at_batch == event.next_batch):
        return False
    if event.kind in _REASSIGNMENTS and event.begun:
        return True
    departure = tx.header.departures.last.get(action.replica)
    away = action.replica not in tx.header.brokers
    return away and (departure is None or departure.time_ms <= event.time_ms)


def _poison(tx: Transaction, owing: Event) -> None:
    """Take back the planned actions of the controller's replicas, and expect only its remaining actions."""
    header = tx.header
    broker = header.controller
    removed = f"broker {broker} took no replica out of an ISR in epoch {header.controller_epoch} and continued to write"
    shown = f"{removed}. A removal was due since zxid {owing.zxid:#x} for {owing.sentence}"
    header.former.note_poisoned(broker, header.brokers[broker].epoch, shown)
    header.former.confirm_poisoned(broker)
    for event in reversed(tx.events.open_events()):
        if any(isinstance(action, RemoveFromIsr) for action in tx.certainty.actions_of(event)):
            tx.requests.undo(event.id)
    tx.events.begin(EventKind.CONTROLLER_FAILOVER, f"broker {broker} moves no replica")
    partition_machine.enter_state(tx, without_online_leader(tx.state), PartitionState.OFFLINE)
    trigger_online(tx)


def judge(tx: Transaction) -> None:
    """Draw the conclusions that are due, those that explain more before those that give up.

    In a gap none is, because the writes may be among the differences that are still to come.
    """
    if tx.header.feed.catches_up or tx.header.feed.disconnected_ms:
        return
    judge_owed(tx)
    judge_never_missed(tx)
    let_stay(tx, controlled_shutdown.give_up_on_unanswered(tx))
    partition_reassignment.forget_unloaded(tx)
    expected_writes.give_up_on_overtaken(tx)
    judge_needless(tx)


def judge_needless(tx: Transaction) -> None:
    """Give up the needless writes of this term's events for which the controller has had time."""
    header = tx.header
    acted_ms = max(header.term.acted_ms, header.feed.caught_up_ms)  # a gap may hide an act
    if not (header.acting and header.has_outlasted_a_hang(acted_ms)):
        return
    for event_id, event in list(header.events.items()):
        is_past = event.epoch == header.term.epoch and event.time_ms <= acted_ms
        if is_past and event.writes_due and mends_nothing(tx, event):
            _keep_from_shutting_down(tx, event)
            waiting = tx.certainty.waiting(event)
            for tp in waiting:
                give_up(tx, tp, event_id)
                _forget_shown_assignments(tx.state, tp)
            count_as_online_after(tx, event, waiting)


def _keep_from_shutting_down(tx: Transaction, event: Event) -> None:
    """Count brokers as staying whose inferred controlled shutdown did not take them out of their ISRs."""
    if event.kind is EventKind.CONTROLLED_SHUTDOWN:
        stay = {action.replica for action in tx.certainty.actions_of(event) if isinstance(action, RemoveFromIsr)}
        let_stay(tx, stay)


def mends_nothing(tx: Transaction, event: Event) -> bool:
    """Return whether the cluster is as it should be without the event's due writes."""
    if event.kind is EventKind.REPLICA_LEADER_ELECTION and tx.header.triggers.preferred is not None:
        return False
    for tp in tx.certainty.waiting(event):
        topic = tx.state.topics[tp.topic]
        partition = topic.partitions[tp.partition]
        is_due = any(action.event == event.id and action.writes for action in partition.queue)
        if is_due and (topic.queued_for_deletion or _is_wanting(tx.header, partition)):
            return False
    return True


def _is_wanting(header: Header, partition: Partition) -> bool:
    value = partition.zk_state
    if value is None or partition.reassigning or not _are_shown(partition):
        return True
    works = header.brokers.keys() - set(partition.offline_dirs)
    return not works >= {value.leader, *value.isr}


def _are_shown(partition: Partition) -> bool:
    """Return whether the topic's znode has the assignment that the controller has still to write there."""
    shown = partition.zk_assignment or partition.assignment
    return all(assignment == shown for assignment in partition.pending_assignments)


def _forget_shown_assignments(state: MutableState, tp: TopicPartition) -> None:
    partition = state.partition(tp)
    if partition is not None and partition.pending_assignments and _are_shown(partition):
        state.put_partition(tp, replace(partition, pending_assignments=()))


def judge_never_missed(tx: Transaction) -> None:
    """Take back departures and registrations for which the controller has had time, but which it never handled."""
    header = tx.header
    starts = [event for event in header.events.values() if _waits(header, event)] if header.acting else []
    starts = [start for start in starts if _leads_meanwhile(tx, start)]
    if not starts:
        return
    failures = [event for event in header.events.values() if event.failed_brokers and event.writes_due]
    for failure in reversed(failures):
        after = {start.started_broker: start for start in reversed(starts) if start.id > failure.id}
        back = [after[broker] for broker in failure.failed_brokers if broker in after]
        if back and _had_no_reason_to_write(header, back) and not _is_held_up(tx, failure):
            _never_left(tx, tx.events.open_event(failure.id), back)
            return  # the next record judges other failures, which may have changed now
    for start in starts:
        if not start.writes_due or _is_held_up(tx, start):
            continue
        if start.bounced_broker != NO_BROKER:
            if _had_no_reason_to_write(header, [start]):
                tx.requests.undo(start.id)
                broker_change.touch_hosted(tx.state, start.bounced_broker)
                return
        elif not any(start.started_broker in failure.failed_brokers for failure in failures):
            tx.requests.undo(start.id)
            with tx.events.inferring(RULE):
                controller_failover.load_with(tx, start.started_broker)
            return


def _waits(header: Header, start: Event) -> bool:
    """Return whether the event is the startup or bounce of a present broker, whose time is over without a write.

    Time alone counts an event without writes as begun, once the writes of older events are late.
    """
    if (
        start.last_write_ms
        or start.taken_up
        or not {start.started_broker, start.bounced_broker} & header.brokers.keys()
    ):
        return False
    return header.has_outlasted_a_hang(start.time_ms)


def _is_held_up(tx: Transaction, event: Event) -> bool:
    """Return whether the controller has still to write something before it comes to this event."""
    before = [other for other in tx.events.open_events() if other.id < event.id and other.writes_due]
    return not all(mends_nothing(tx, other) for other in before)


def _leads_meanwhile(tx: Transaction, start: Event) -> bool:
    """Return whether ZooKeeper names a live leader of each partition that the startup would elect a leader for."""
    for tp in tx.certainty.waiting(start):
        partition = tx.state.topics[tp.topic].partitions[tp.partition]
        if any(action.event == start.id and action.writes for action in partition.queue):
            value = partition.zk_state
            if value is None or not tx.state.is_online(value.leader, partition):
                return False
    return True


def _may_be_loaded(header: Header, start: Event) -> bool:
    """Return whether the controller may have loaded the registration, in its usual time or after a hang.

    If a complete read found its term, the age of /controller shows when it was elected.
    """
    term = header.term
    elected_ms = term.began_ms or (term.since_ms if term.since_ms < header.read.began_ms else 0)
    hung = term.acted_ms < elected_ms and start.time_ms - elected_ms <= header.longest_hang_ms
    return hung or controller_failover.may_have_read(header, start)


def _had_no_reason_to_write(header: Header, starts: Sequence[Event]) -> bool:
    """Return whether the controller would have written since the brokers are back, if it had to."""
    if not header.profile.notices_bounces or all(_may_be_loaded(header, start) for start in starts):
        return True
    acted_ms = header.term.acted_ms
    return acted_ms >= max(start.time_ms for start in starts) and header.has_outlasted_a_hang(acted_ms)


def _never_left(tx: Transaction, failure: Event, starts: Sequence[Event]) -> None:
    """Take back departures with their returns. Brokers that left with them and are still away left on their own."""
    back = [start.started_broker for start in starts]
    for start in sorted(starts, key=lambda start: -start.id):
        tx.requests.undo(start.id)
    hosted = [tp for broker in back for tp in tx.state.hosted_by(broker)]
    if failure.begun:
        for tp in hosted:
            tx.events.undo_in(tp, failure.id)
    else:
        tx.requests.undo(failure.id)
        _fail_again(tx, failure)
    count_as_online(tx, hosted)
    for broker in back:
        broker_change.touch_hosted(tx.state, broker)


def _fail_again(tx: Transaction, failure: Event) -> None:
    left = {broker: was for broker, was in failure.failed_brokers.items() if broker not in tx.header.brokers}
    if left:
        event = tx.events.begin(EventKind.BROKER_CHANGE, f"{listed(left)} left")
        event.detail = BrokersChanged(left)
        broker_change.on_broker_failure(tx, tuple(left))
