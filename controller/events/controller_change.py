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
from controller.model.context import FOLLOWING, NO_BROKER, Header, InItsName, Standing
from controller.transaction.transaction import Turn

_TERMS_KEPT: Final = 10

_ANY_JSON: Final = JsonDecoder(object)


def controller_written(turn: Turn, znode: ControllerZnode, record: Record) -> None:
    """/controller has this value."""
    header = turn.header
    header.witness(controller_version=znode.version)
    header.seen_controller = True
    if header.in_its_name is not None and header.in_its_name.mzxid == record.mzxid:
        return  # read once more
    standing = _standing(znode, record)
    known = (header.controller, header.controller_session, header.standing)
    if known == (znode.brokerid, record.ephemeral_owner, standing):
        return
    if _is_by_another(header, znode, record):
        if header.term_active and znode.brokerid == header.controller:
            header.in_its_name = InItsName(record.mzxid, record.ephemeral_owner)
            return
        if _is_back_before_it_was_missed(header, znode):
            _act_on(turn, znode.brokerid)
            return
    _lose(turn, f"broker {header.controller} lost /controller")
    header.in_its_name = None
    header.controller, header.controller_since_ms = znode.brokerid, header.time_ms
    header.controller_session, header.standing = record.ephemeral_owner, standing
    take_over_if_due(turn)
    publish_controller(turn)


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
    edited = record.version > 0 or (record.ephemeral_owner != header.controller_session and not record.resync)
    return edited and header.phase is FOLLOWING and znode.kraftControllerEpoch < 0


def _is_back_before_it_was_missed(header: Header, znode: ControllerZnode) -> bool:
    """Whether /controller went and names again who was controller, and in the same process.

    One that had missed it would have taken it itself.
    """
    registered = header.brokers.get(znode.brokerid)
    same_process = registered is not None and registered.session == header.controller_session
    was_controller = header.controller == NO_BROKER and header.deposed == header.term_broker == znode.brokerid
    return was_controller and same_process and header.controller_epoch == header.term_epoch and not header.migrating


def _act_on(turn: Turn, broker: int) -> None:
    header, record = turn.header, turn.record
    header.controller, header.controller_since_ms = broker, record.observed_ms
    header.in_its_name = InItsName(record.mzxid, record.ephemeral_owner)
    header.deposed, header.term_active = NO_BROKER, header.may_act
    turn.begin("Reelect", f"/controller was deleted and names broker {broker} again: it acts on")
    turn.moved("controller", "Resigned", "Active", broker=broker)
    _judge_again(turn)
    publish_controller(turn)


def controller_unreadable(turn: Turn, data: bytes | None) -> None:
    """/controller has a value that names nobody.

    Where it is no JSON at all, brokers read it as naming nobody, and the controller resigns; where it is JSON without
    an id, the controller fails to read it and goes on. Seen of brokers 1.1 to 3.9.
    """
    empty = b"{}" if turn.header.profile.fails_on_an_empty_controller else b""
    try:
        _ANY_JSON.decode(data or empty)
    except UndecodableError:
        controller_removed(turn)


def controller_removed(turn: Turn) -> None:
    """/controller vanished: nobody is controller."""
    header = turn.header
    if header.controller == NO_BROKER:
        return
    _lose(turn, f"broker {header.controller} is no longer controller")
    header.in_its_name = None
    header.controller, header.controller_since_ms = NO_BROKER, turn.header.time_ms
    header.standing = Standing.ELECTED
    publish_controller(turn)


def epoch_written(turn: Turn, epoch: int) -> None:
    """/controller_epoch has this value."""
    header = turn.header
    if epoch < header.controller_epoch:
        cause = (
            f"/controller_epoch went back from {header.controller_epoch} to {epoch}: brokers refuse controllers of "
            f"epochs below {header.controller_epoch}; set it to that or higher, then delete /controller"
        )
        occurrences.note(turn, kinds.CONTROLLER_EPOCH_WENT_BACK, cause)
    if epoch != header.controller_epoch:
        header.controller_epoch, header.epoch_zxid = epoch, turn.record.mzxid
        take_over_if_due(turn)
        publish_controller(turn)


def migration_began(turn: Turn) -> None:
    """/migration is there: the cluster is on its way to KRaft, and what is foretold here would no longer be true."""
    if not turn.header.migrating:
        turn.header.migrating = True
        _lose(turn, "the cluster migrates to KRaft")


def publish_controller(turn: Turn) -> None:
    """The controller's row as it is now; during a complete read nothing is published."""
    header = turn.header
    if header.phase is FOLLOWING:
        turn.effects.append(
            ControllerRow(
                *turn.stamp(),
                broker=header.controller,
                epoch=header.controller_epoch,
                since_ms=header.controller_since_ms,
            )
        )


def adopt(turn: Turn) -> None:
    """At the end of a complete read: the controller that was found is taken as acting, its past is unknown."""
    header = turn.header
    if not header.seen_controller:
        header.in_its_name = None
        header.controller, header.controller_since_ms = NO_BROKER, turn.header.time_ms
    header.duplicate_topic_ids = tuple(_duplicate_topic_ids(turn))
    header.term_active = header.may_act
    header.term_epoch, header.term_began_ms = header.controller_epoch, 0
    header.term_broker = header.controller


def take_over_if_due(turn: Turn) -> None:
    """Fail over to the new controller if the epoch and /controller both say that there is one."""
    header = turn.header
    if header.controller_epoch > header.term_epoch:
        _act_no_longer(turn, f"/controller_epoch is {header.controller_epoch}: /controller is of a later election")
    # /controller_epoch is made as 0 before anybody is controller (from 2.1 on): the first term is 1.
    if header.phase is not FOLLOWING or header.controller_epoch <= max(header.term_epoch, 0):
        return
    if header.controller == NO_BROKER or header.standing is not Standing.ELECTED or header.is_ghost:
        return
    if header.term_epoch > 0:
        _note_move(turn)
    unfenced_controller.forget(turn, header.controller)
    unfenced_controller.fall_asleep(turn, header.deposed)
    controller_failover.cut(turn, header.deposed)
    # With one id on two topics every broker fails while it loads its context, and passes the controllership on.
    header.duplicate_topic_ids = tuple(_duplicate_topic_ids(turn))
    header.term_epoch, header.term_active = header.controller_epoch, header.may_act
    header.term_broker = header.controller
    header.term_began_ms = header.time_ms
    header.controller_changes += 1
    header.terms_since_ms = (*header.terms_since_ms, header.time_ms)[-_TERMS_KEPT:]
    if header.term_active:
        controller_failover.run(turn)
    _judge_again(turn)


def _note_move(turn: Turn) -> None:
    header = turn.header
    now = f"broker {header.controller} became controller in epoch {header.controller_epoch}"
    was = f" after broker {header.term_broker}" if header.term_broker != NO_BROKER else ""
    occurrences.note(turn, kinds.CONTROLLER_MOVED, now + was)


def _lose(turn: Turn, cause: str) -> None:
    header = turn.header
    if header.phase is not FOLLOWING:
        return
    if header.term_active:
        topic_deletion.judge_halted(turn, soon=True)
        partition_reassignment.remember(turn)
        record = turn.record
        expired = record.author == header.controller_session and record.cxid == 0
        turn.conclude_events(expired=expired)
        turn.begin("ControllerResignation", cause)
        turn.moved("controller", "Active", "Resigned", broker=header.controller)
        header.deposed = header.controller
    if header.migrating:
        controller_failover.cut(turn, header.deposed)
    header.term_active = False
    _judge_again(turn)


def broker_ended(turn: Turn, broker: int) -> None:
    """A broker's session is over: if it had lost /controller without knowing it, it writes no more."""
    if broker == turn.header.controller:
        _act_no_longer(turn, f"the session of broker {broker} is over, and /controller is another's that names it")
    unfenced_controller.forget(turn, broker)
    if broker == turn.header.deposed:
        controller_failover.cut(turn, broker)


def controllers_broker_registered(turn: Turn) -> None:
    """The broker that /controller names registered: a process that is not the one which acts never took over."""
    header = turn.header
    if header.brokers[header.controller].session != header.controller_session:
        _act_no_longer(turn, f"broker {header.controller} was started anew, and did not write /controller")


def _act_no_longer(turn: Turn, cause: str) -> None:
    """Who acted on, though /controller was not as its election left it, does so no longer: only the znode counts."""
    header, written = turn.header, turn.header.in_its_name
    if written is not None:
        _lose(turn, cause)
        header.in_its_name, header.controller_session = None, written.session


def _judge_again(turn: Turn) -> None:
    """Whether an election is due depends on the controller: judge again what cannot be used."""
    for tp in turn.unled(lambda partition: partition.problem in UNUSABLE):
        turn.touch(tp)


def _duplicate_topic_ids(turn: Turn) -> Iterator[tuple[str, str, str]]:
    first: dict[str, str] = {}
    for name, topic in sorted(turn.topics):
        if topic.exists and topic.topic_id is not None and first.setdefault(topic.topic_id, name) != name:
            yield topic.topic_id, first[topic.topic_id], name
