"""Elections and resignations of controllers, and their handover to KRaft (Kafka's ControllerChange and Reelect).

Handlers of /controller and /controller_epoch. A controller takes over once its epoch is larger than the last epoch and
/controller names it, in either order. `controller_failover` has the steps of the takeover.
"""

from __future__ import annotations

from collections.abc import Iterator

from controller.alerts import occurrences
from controller.contract.ids import NO_BROKER, BrokerEpoch, BrokerId, ControllerEpoch
from controller.contract.problem import UNUSABLE
from controller.contract.records import Record
from controller.contract.znodes import ControllerZnode, Flaw
from controller.events import (
    broker_change,
    controller_failover,
    fenced_controller,
    migration,
    partition_reassignment,
    topic_deletion,
    unfenced_controller,
)
from controller.model.context import FOLLOWING, Header
from controller.model.controllership import InItsName, Ownership
from controller.model.event import EventKind
from controller.model.mutable_state import MutableState
from controller.says.alert_kinds import kinds
from controller.transaction.transaction import Transaction
from controller.view.rows import controller_row
from wording.times import duration


def controller_written(tx: Transaction, znode: ControllerZnode, record: Record) -> None:
    """Handle the content of /controller."""
    header = tx.header
    header.witness(controller_version=znode.version)
    header.term.note_controller_written(record.mzxid)
    header.read.names_controller = True
    if header.term.in_its_name is not None and header.term.in_its_name.mzxid == record.mzxid:
        return  # the same content, read again
    ownership = _ownership(znode, record)
    before = (header.controller, header.term.session, header.term.ownership)
    same_leader = ownership is not Ownership.KRAFT or header.migration.claim.zxid == record.mzxid
    if before == (znode.brokerid, record.ephemeral_owner, ownership) and same_leader:
        return
    if _is_edit(header, znode, record):
        if header.term.active and znode.brokerid == header.controller:
            was_persistent = header.term.is_persistent
            header.term.note_edit(InItsName(record.mzxid, record.ephemeral_owner))
            if header.term.is_persistent != was_persistent:
                publish_controller(tx)
            return
        if _is_back_before_it_was_missed(header, znode):
            _stay_active(tx, znode.brokerid)
            return
    kraft = ownership is Ownership.KRAFT
    to = f" to KRaft controller {znode.brokerid}" if kraft else ""
    _resign(tx, f"broker {header.controller} lost /controller{to}")
    header.name_controller(znode.brokerid, broker_change.began_ms(tx.state))
    header.term.own(record.ephemeral_owner, ownership)
    if kraft:
        _claimed_by_kraft(tx, znode, record)
    take_over_if_due(tx)
    publish_controller(tx)


def _ownership(znode: ControllerZnode, record: Record) -> Ownership:
    if znode.kraftControllerEpoch >= 0:
        return Ownership.KRAFT
    # An election creates the znode, and its session owns it. A later version or a persistent znode is an edit by hand.
    edited = record.version > 0 or record.ephemeral_owner == 0
    return Ownership.OVERWRITTEN if edited else Ownership.ELECTED


def _claimed_by_kraft(tx: Transaction, znode: ControllerZnode, record: Record) -> None:
    header = tx.header
    if header.phase is FOLLOWING:
        now = f"KRaft controller {znode.brokerid} took /controller (KRaft epoch {znode.kraftControllerEpoch})"
        occurrences.note(tx.state, kinds.CONTROLLER_MOVED, now + _after_last(header))
        header.former.note_change()
    migration.claimed(tx, znode, record)
    header.term.claimed_by_kraft(znode.brokerid)
    _take_claims_epoch(header)


def _take_claims_epoch(header: Header) -> None:
    """Note the epoch that a KRaft controller wrote with its claim as begun, because the next broker's is higher."""
    if header.term.ownership is Ownership.KRAFT and header.term.epoch_zxid == header.migration.claim.zxid:
        header.term.take_epoch(header.controller_epoch)


def _is_edit(header: Header, znode: ControllerZnode, record: Record) -> bool:
    """Return whether another session edited or recreated the znode without an election.

    A controller that is notified of a change or removal reads the znode, and resigns only if it names another broker.
    Kafka's `ControllerChange` and `Reelect` begin with `maybeResign`. This was seen on 1.1 to 3.9. Releases up to 1.0
    behave alike, because their listeners get the present content. After a gap in the watching (`resync`) it may also be
    another election, if the broker's new registration comes later.
    """
    edited = record.version > 0 or (record.ephemeral_owner != header.term.session and not record.resync)
    return edited and header.phase is FOLLOWING and znode.kraftControllerEpoch < 0


def _is_back_before_it_was_missed(header: Header, znode: ControllerZnode) -> bool:
    """Return whether /controller names the last controller again before its process noticed the removal.

    A controller that had noticed the removal would have written /controller in its own session.
    """
    registered = header.brokers.get(znode.brokerid)
    same_process = registered is not None and registered.session == header.term.session
    was_controller = header.controller == NO_BROKER and header.former.deposed == header.term.broker == znode.brokerid
    return (
        was_controller
        and same_process
        and header.controller_epoch == header.term.epoch
        and not header.migration.led_by_kraft
    )


def _stay_active(tx: Transaction, broker: BrokerId) -> None:
    header, record = tx.header, tx.state.record
    header.name_controller(broker, record.observed_ms, InItsName(record.mzxid, record.ephemeral_owner))
    header.former.forget_deposed()
    header.term.activate(active=header.may_act)
    tx.events.begin(
        EventKind.REELECT, f"/controller was deleted and names broker {broker} again, which continues to act"
    )
    tx.events.publish_transition("controller", "Resigned", "Active", broker=broker)
    _judge_again(tx.state)
    publish_controller(tx)


def controller_unreadable(tx: Transaction, flaw: Flaw) -> None:
    """Handle content of /controller that names no broker.

    Brokers read content that is not JSON as no controller, and the controller resigns. The controller fails to read
    JSON without an id, and stays active. Seen on 1.1 to 3.9.
    """
    is_empty = flaw in (Flaw.NULL, Flaw.EMPTY)
    if flaw is Flaw.UNPARSABLE or (is_empty and not tx.header.profile.fails_on_an_empty_controller):
        controller_removed(tx)


def controller_removed(tx: Transaction) -> None:
    """Handle the removal of /controller, which leaves the cluster without a controller."""
    header = tx.header
    if header.controller == NO_BROKER:
        return
    _resign(tx, f"broker {header.controller} is no longer controller")
    header.name_controller(NO_BROKER, header.time_ms)
    header.term.own(header.term.session, Ownership.ELECTED)
    publish_controller(tx)


def epoch_written(tx: Transaction, epoch: ControllerEpoch) -> None:
    """Handle the content of /controller_epoch."""
    header = tx.header
    if epoch < header.controller_epoch and not header.led_by_kraft:
        cause = (
            f"/controller_epoch went back from {header.controller_epoch} to {epoch}: brokers refuse controllers of "
            f"epochs below {header.controller_epoch}. Set /controller_epoch to {header.controller_epoch} or higher, "
            "then delete /controller"
        )
        occurrences.note(tx.state, kinds.CONTROLLER_EPOCH_WENT_BACK, cause)
    if epoch != header.controller_epoch:
        is_raised = header.profile.fences_writes and (header.term.active or header.led_by_kraft)
        header.begin_epoch(epoch)
        header.term.note_epoch_written(epoch, tx.state.record.mzxid, is_raised=is_raised)
        migration.epoch_written(tx.state)
        _take_claims_epoch(header)
        take_over_if_due(tx)
        publish_controller(tx)


def publish_controller(tx: Transaction) -> None:
    """Publish the controller's row, except during a complete read."""
    header = tx.header
    if header.phase is FOLLOWING:
        tx.rows.effects.append(controller_row(header, tx.rows.stamp()))


def adopt(state: MutableState) -> None:
    """Take the controller that a complete read found as active, at the end of the read. Its past is unknown."""
    header = state.header
    if not header.read.names_controller:
        header.name_controller(NO_BROKER, header.time_ms)
    _begin_term(state, 0)


def take_over_if_due(tx: Transaction) -> None:
    """Fail over to the new controller if /controller_epoch and /controller both show that there is one."""
    header = tx.header
    if header.controller_epoch > header.term.epoch:
        _end_edited_term(tx, f"/controller_epoch is {header.controller_epoch}, so /controller is of a later election")
    if _is_of_an_epoch_read_alone(header):
        controller_failover.forget_in_flight_events(tx)
        migration.broker_claimed(tx)
        _begin_term(tx.state, 0)
        _judge_again(tx.state)
        partition_reassignment.adopt(tx)
    # From 2.1 on /controller_epoch is created as 0 before the first election, so the first term is 1.
    if header.phase is not FOLLOWING or header.controller_epoch <= max(header.term.epoch, 0):
        return
    if header.controller == NO_BROKER or header.term.ownership is not Ownership.ELECTED or header.is_ghost:
        return
    if _is_raised_by_hand(header) or (tx.state.record.resync and header.term.named_zxid == header.term.controller_zxid):
        return  # after a gap the epoch may come before the /controller that was written with it
    if header.term.epoch > 0:
        _note_controller_moved(tx.state)
    unfenced_controller.work_off(tx, header.controller)
    unfenced_controller.keep_in_flight_events(tx, header.former.deposed)
    fenced_controller.elected(tx)
    fenced_controller.hold_back(tx)
    controller_failover.abort_in_flight_events(tx, header.former.deposed)
    migration.broker_claimed(tx)
    _begin_term(tx.state, header.time_ms)
    header.former.note_term(header.time_ms)
    if header.term.active:
        controller_failover.run(tx)
    _judge_again(tx.state)


def _is_of_an_epoch_read_alone(header: Header) -> bool:
    """Return whether /controller is of the election of which a complete read found only the epoch.

    The read found no controller, or the last one.
    """
    term = header.term
    is_elected = header.controller != NO_BROKER and term.ownership is Ownership.ELECTED and not header.is_ghost
    unread = term.named_zxid != term.controller_zxid and 0 < term.epoch == header.controller_epoch
    return header.phase is FOLLOWING and is_elected and unread and term.controller_zxid <= term.epoch_zxid


def _is_raised_by_hand(header: Header) -> bool:
    """Return whether /controller_epoch was raised under a controller.

    An election writes both znodes in one transaction.
    """
    term = header.term
    return header.controller_epoch == term.raised_epoch and term.epoch_zxid != term.controller_zxid


def _begin_term(state: MutableState, time_ms: int) -> None:
    """Begin the term of the broker's process that the znodes name. The time is 0 if it is not known."""
    header = state.header
    registered = header.brokers.get(header.controller)
    registration = registered.epoch if registered is not None else BrokerEpoch(-1)
    header.term.note_duplicate_topic_ids(tuple(_duplicate_topic_ids(state)))
    header.term.note_failed_at(tuple(sorted(header.damaged.unloadable)))
    header.term.begin(header.controller_epoch, time_ms, header.controller, registration)
    header.term.activate(active=header.may_act)
    if header.is_poisoned:
        header.former.confirm_poisoned(header.controller)
    state.note_at_work(header.controller)


def _note_controller_moved(state: MutableState) -> None:
    header = state.header
    now = f"broker {header.controller} became controller in epoch {header.controller_epoch}"
    occurrences.note(state, kinds.CONTROLLER_MOVED, now + _after_last(header))


def _after_last(header: Header) -> str:
    last, claim = header.term.broker, header.migration.claim
    if last == NO_BROKER:
        return ""
    return f" after KRaft controller {last}" if last == claim.controller else f" after broker {last}"


def _resign(tx: Transaction, cause: str) -> None:
    header = tx.header
    if header.phase is not FOLLOWING:
        return
    if header.term.active:
        topic_deletion.judge_halted(tx, soon=True)
        partition_reassignment.remember(tx.state)
        record = tx.state.record
        expired = record.author == header.term.session and record.cxid == 0
        cut = controller_failover.is_cut(tx.events)
        tx.certainty.conclude_events(expired=expired)
        tx.events.begin(EventKind.CONTROLLER_RESIGNATION, cause + _wrote_nothing(header) if cut else cause)
        tx.events.publish_transition("controller", "Active", "Resigned", broker=header.controller)
        lost_ms = 0 if record.author == header.term.session else header.time_ms
        header.former.note_deposed(header.controller, header.term.session, lost_ms)
    header.term.activate(active=False)
    _judge_again(tx.state)


def _wrote_nothing(header: Header) -> str:
    lasted = duration(header.time_ms - header.term.began_ms)
    return f", {lasted} after it took over. It wrote no partition's state, but may have moved replicas"


def broker_ended(tx: Transaction, broker: BrokerId) -> None:
    """Handle the end of a broker's session. A deposed controller in this session writes no more."""
    if broker == tx.header.controller:
        _end_edited_term(tx, f"the session of broker {broker} is over, and /controller is another's that names it")
    registered = tx.header.brokers.get(broker)
    if registered is not None and tx.state.record.cxid > 0 and tx.state.record.author == registered.session:
        unfenced_controller.work_off(tx, broker)  # the broker closed its session, which comes after all its events
    unfenced_controller.forget(tx.header, broker)
    fenced_controller.session_ended(tx, broker)
    controller_failover.abort_resumed_events(tx, broker)
    if broker == tx.header.former.deposed:
        controller_failover.abort_in_flight_events(tx, broker)


def judge_former_in_time(tx: Transaction) -> None:
    """Conclude the actions of former controllers whose time is over."""
    unfenced_controller.work_off_in_time(tx)
    fenced_controller.judge_in_time(tx)


def controllers_broker_registered(tx: Transaction) -> None:
    """Handle the registration of the broker in /controller. A process other than the controller's never took over."""
    header = tx.header
    if header.brokers[header.controller].session != header.term.session:
        _end_edited_term(tx, f"broker {header.controller} was started again, and did not write /controller")


def _end_edited_term(tx: Transaction, cause: str) -> None:
    """End the term of a controller that stayed active after an edit of /controller. Now the znode alone counts."""
    header, written = tx.header, tx.header.term.in_its_name
    if written is not None:
        _resign(tx, cause)
        header.term.end_edit(written)


def _judge_again(state: MutableState) -> None:
    """Judge unusable partitions again, because the controller decides whether an election is due."""
    state.touch_unled(lambda partition: partition.problem in UNUSABLE)


def _duplicate_topic_ids(state: MutableState) -> Iterator[tuple[str, str, str]]:
    first: dict[str, str] = {}
    for name, topic in sorted(state.topics):
        if topic.exists and topic.topic_id is not None and first.setdefault(topic.topic_id, name) != name:
            yield topic.topic_id, first[topic.topic_id], name
