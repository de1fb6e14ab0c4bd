"""Who is controller: elections, resignations, ghosts, and the end of ZooKeeper's controllers.

Here belongs what /controller, /controller_epoch and /migration say. A controller takes over once its epoch is larger
than the last one's and /controller names it, in either order; what it then does is in `failover`.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from controller.alerts import kinds, occurrences
from controller.contract.decoding import JsonDecoder, UndecodableError
from controller.contract.outputs import ControllerRow
from controller.contract.records import Record
from controller.contract.znodes import ControllerZnode
from controller.derived.health import UNUSABLE
from controller.events import controller_failover, partition_reassignment, topic_deletion, unfenced_controller
from controller.model.brokers import NO_BROKER
from controller.model.context import FOLLOWING, Header
from controller.model.controllership import InItsName, Standing
from controller.model.event import EventKind
from controller.transaction.transaction import Transaction

_TERMS_KEPT: Final = 10

_ANY_JSON: Final = JsonDecoder(object)


def controller_written(tx: Transaction, znode: ControllerZnode, record: Record) -> None:
    """/controller has this value."""
    header = tx.header
    header.witness(controller_version=znode.version)
    header.read.names_controller = True
    if header.term.in_its_name is not None and header.term.in_its_name.mzxid == record.mzxid:
        return  # read once more
    standing = _standing(znode, record)
    known = (header.controller, header.term.session, header.term.standing)
    if known == (znode.brokerid, record.ephemeral_owner, standing):
        return
    if _is_by_another(header, znode, record):
        if header.term.active and znode.brokerid == header.controller:
            header.term.in_its_name = InItsName(record.mzxid, record.ephemeral_owner)
            return
        if _is_back_before_it_was_missed(header, znode):
            _act_on(tx, znode.brokerid)
            return
    _lose(tx, f"broker {header.controller} lost /controller")
    header.term.in_its_name = None
    header.controller, header.term.since_ms = znode.brokerid, header.time_ms
    header.term.session, header.term.standing = record.ephemeral_owner, standing
    take_over_if_due(tx)
    publish_controller(tx)


def _standing(znode: ControllerZnode, record: Record) -> Standing:
    # A ZooKeeper controller's znode is ephemeral; one that stays is KRaft's.
    if znode.kraftControllerEpoch >= 0 or record.ephemeral_owner == 0:
        return Standing.KRAFT
    # An election creates the znode; a later version is somebody's edit.
    return Standing.OVERWRITTEN if record.version > 0 else Standing.ELECTED


def _is_by_another(header: Header, znode: ControllerZnode, record: Record) -> bool:
    """Whether somebody edited the znode, or made another in its place: it was not left so by an election.

    A controller that hears that it was changed or is gone looks whose id is there by then, and resigns only if that is
    another's: Kafka's `ControllerChange` and `Reelect`, which begin with `maybeResign`; seen of brokers 1.1 to 3.9, and
    the same up to 1.0, whose listeners are called with what is there. What a gap in the watching hid may as well be
    another election, of which the broker's registration is told later.
    """
    edited = record.version > 0 or (record.ephemeral_owner != header.term.session and not record.resync)
    return edited and header.phase is FOLLOWING and znode.kraftControllerEpoch < 0


def _is_back_before_it_was_missed(header: Header, znode: ControllerZnode) -> bool:
    """Whether /controller went and names again who was controller, and in the same process.

    One that had missed it would have taken it itself.
    """
    registered = header.brokers.get(znode.brokerid)
    same_process = registered is not None and registered.session == header.term.session
    was_controller = header.controller == NO_BROKER and header.former.deposed == header.term.broker == znode.brokerid
    return (
        was_controller and same_process and header.controller_epoch == header.term.epoch and not header.term.migrating
    )


def _act_on(tx: Transaction, broker: int) -> None:
    header, record = tx.header, tx.record
    header.controller, header.term.since_ms = broker, record.observed_ms
    header.term.in_its_name = InItsName(record.mzxid, record.ephemeral_owner)
    header.former.deposed, header.term.active = NO_BROKER, header.may_act
    tx.begin(EventKind.REELECT, f"/controller was deleted and names broker {broker} again: it acts on")
    tx.publish_transition("controller", "Resigned", "Active", broker=broker)
    _judge_again(tx)
    publish_controller(tx)


def controller_unreadable(tx: Transaction, data: bytes | None) -> None:
    """/controller has a value that names nobody.

    Where it is no JSON at all, brokers read it as naming nobody, and the controller resigns; where it is JSON without
    an id, the controller fails to read it and goes on. Seen of brokers 1.1 to 3.9.
    """
    empty = b"{}" if tx.header.profile.fails_on_an_empty_controller else b""
    try:
        _ANY_JSON.decode(data or empty)
    except UndecodableError:
        controller_removed(tx)


def controller_removed(tx: Transaction) -> None:
    """/controller vanished: nobody is controller."""
    header = tx.header
    if header.controller == NO_BROKER:
        return
    _lose(tx, f"broker {header.controller} is no longer controller")
    header.term.in_its_name = None
    header.controller, header.term.since_ms = NO_BROKER, tx.header.time_ms
    header.term.standing = Standing.ELECTED
    publish_controller(tx)


def epoch_written(tx: Transaction, epoch: int) -> None:
    """/controller_epoch has this value."""
    header = tx.header
    if epoch < header.controller_epoch:
        cause = (
            f"/controller_epoch went back from {header.controller_epoch} to {epoch}: brokers refuse controllers of "
            f"epochs below {header.controller_epoch}; set it to that or higher, then delete /controller"
        )
        occurrences.note(tx, kinds.CONTROLLER_EPOCH_WENT_BACK, cause)
    if epoch != header.controller_epoch:
        header.controller_epoch, header.term.epoch_zxid = epoch, tx.record.mzxid
        take_over_if_due(tx)
        publish_controller(tx)


def migration_began(tx: Transaction) -> None:
    """/migration is there: the cluster is on its way to KRaft, and what is foretold here would no longer be true."""
    if not tx.header.term.migrating:
        tx.header.term.migrating = True
        _lose(tx, "the cluster migrates to KRaft")


def publish_controller(tx: Transaction) -> None:
    """The controller's row as it is now; during a complete read nothing is published."""
    header = tx.header
    if header.phase is FOLLOWING:
        tx.effects.append(
            ControllerRow(
                *tx.stamp(),
                broker=header.controller,
                epoch=header.controller_epoch,
                since_ms=header.term.since_ms,
            )
        )


def adopt(tx: Transaction) -> None:
    """At the end of a complete read: the controller that was found is taken as acting, its past is unknown."""
    header = tx.header
    if not header.read.names_controller:
        header.term.in_its_name = None
        header.controller, header.term.since_ms = NO_BROKER, tx.header.time_ms
    header.term.duplicate_topic_ids = tuple(_duplicate_topic_ids(tx))
    header.term.active = header.may_act
    header.term.epoch, header.term.began_ms = header.controller_epoch, 0
    header.term.broker = header.controller


def take_over_if_due(tx: Transaction) -> None:
    """Fail over to the new controller if the epoch and /controller both say that there is one."""
    header = tx.header
    if header.controller_epoch > header.term.epoch:
        _act_no_longer(tx, f"/controller_epoch is {header.controller_epoch}: /controller is of a later election")
    # /controller_epoch is made as 0 before anybody is controller (from 2.1 on): the first term is 1.
    if header.phase is not FOLLOWING or header.controller_epoch <= max(header.term.epoch, 0):
        return
    if header.controller == NO_BROKER or header.term.standing is not Standing.ELECTED or header.is_ghost:
        return
    if header.term.epoch > 0:
        _note_move(tx)
    unfenced_controller.forget(tx, header.controller)
    unfenced_controller.keep_in_flight_events(tx, header.former.deposed)
    controller_failover.abort_in_flight_events(tx, header.former.deposed)
    # With one id on two topics every broker fails while it loads its context, and passes the controllership on.
    header.term.duplicate_topic_ids = tuple(_duplicate_topic_ids(tx))
    header.term.epoch, header.term.active = header.controller_epoch, header.may_act
    header.term.broker = header.controller
    header.term.began_ms = header.time_ms
    header.former.changes += 1
    header.former.terms_since_ms = (*header.former.terms_since_ms, header.time_ms)[-_TERMS_KEPT:]
    if header.term.active:
        controller_failover.run(tx)
    _judge_again(tx)


def _note_move(tx: Transaction) -> None:
    header = tx.header
    now = f"broker {header.controller} became controller in epoch {header.controller_epoch}"
    was = f" after broker {header.term.broker}" if header.term.broker != NO_BROKER else ""
    occurrences.note(tx, kinds.CONTROLLER_MOVED, now + was)


def _lose(tx: Transaction, cause: str) -> None:
    header = tx.header
    if header.phase is not FOLLOWING:
        return
    if header.term.active:
        topic_deletion.judge_halted(tx, soon=True)
        partition_reassignment.remember(tx)
        record = tx.record
        expired = record.author == header.term.session and record.cxid == 0
        tx.conclude_events(expired=expired)
        tx.begin(EventKind.CONTROLLER_RESIGNATION, cause)
        tx.publish_transition("controller", "Active", "Resigned", broker=header.controller)
        header.former.deposed = header.controller
    if header.term.migrating:
        controller_failover.abort_in_flight_events(tx, header.former.deposed)
    header.term.active = False
    _judge_again(tx)


def broker_ended(tx: Transaction, broker: int) -> None:
    """A broker's session is over: if it had lost /controller without knowing it, it writes no more."""
    if broker == tx.header.controller:
        _act_no_longer(tx, f"the session of broker {broker} is over, and /controller is another's that names it")
    unfenced_controller.forget(tx, broker)
    if broker == tx.header.former.deposed:
        controller_failover.abort_in_flight_events(tx, broker)


def controllers_broker_registered(tx: Transaction) -> None:
    """The broker that /controller names registered: a process that is not the one which acts never took over."""
    header = tx.header
    if header.brokers[header.controller].session != header.term.session:
        _act_no_longer(tx, f"broker {header.controller} was started anew, and did not write /controller")


def _act_no_longer(tx: Transaction, cause: str) -> None:
    """Who acted on, though /controller was not as its election left it, does so no longer: only the znode counts."""
    header, written = tx.header, tx.header.term.in_its_name
    if written is not None:
        _lose(tx, cause)
        header.term.in_its_name, header.term.session = None, written.session


def _judge_again(tx: Transaction) -> None:
    """Whether an election is due depends on the controller: judge again what cannot be used."""
    for tp in tx.unled(lambda partition: partition.problem in UNUSABLE):
        tx.touch(tp)


def _duplicate_topic_ids(tx: Transaction) -> Iterator[tuple[str, str, str]]:
    first: dict[str, str] = {}
    for name, topic in sorted(tx.topics):
        if topic.exists and topic.topic_id is not None and first.setdefault(topic.topic_id, name) != name:
            yield topic.topic_id, first[topic.topic_id], name
