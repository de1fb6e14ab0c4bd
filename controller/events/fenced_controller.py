"""Fenced controllers, which are deposed while their session lives and continue their event up to the first write.

They exist from 2.1 on. The loss of /controller is an event in the controller's queue, behind the event in hand, which
can be the load of the cluster. The controller runs until its own write, unless its process was killed before, or hung.
The epoch makes ZooKeeper refuse that write (Kafka's `KafkaZkClient.retryRequestsUntilConnected`). ZooKeeper keeps the
session of a killed process, with its broker's znode, for the session timeout after its last sign of life. Kontrast
therefore holds back the controller's actions until the session has outlived the loss by that timeout, is elected
again, or is closed by its process. A session that expires earlier was silent since before the loss, so its process is
not known to have done anything.
"""

from __future__ import annotations

from typing import Final

from msgspec.structs import replace

from controller.contract.effect_rows import FINAL, WITHDRAWN, Status
from controller.contract.ids import NO_BROKER, BrokerId, TopicPartition
from controller.model.context import FOLLOWING, Header
from controller.model.controllership import FencedController
from controller.model.event import Event, EventKind
from controller.model.leadership import Done, StateChange
from controller.model.mutable_state import MutableState
from controller.rules import timing
from controller.transaction.pending_requests import RequestContents
from controller.transaction.transaction import Transaction

# The rule by which a deposed controller's last event counts as done up to its first write.
RAN_TO_FENCED_WRITE: Final = "ran-to-fenced-write"


def hold_back(tx: Transaction) -> None:
    """Hold back the deposed controller's actions before its first write, when another broker is elected."""
    header, former = tx.header, tx.header.former
    if not header.profile.fences_writes or header.controller == former.deposed or not _lives_on(tx.state):
        return
    due = [event for event in tx.events.open_events() if event.writes_due and not event.is_doubtful]
    if not due or any(event.begun for event in due) or not _is_in_hand(header, due[0]):
        return
    event = tx.events.open_event(due[0].id)
    aside = tx.certainty.set_aside(event)
    for name, actions in aside.by_topic.items():
        _keep(tx.state, name, (*tx.state.topics[name].unproven, *actions))
    held = replace(event, batches=aside.batches, due=list(event.due)).stored()
    former.hold_back(FencedController(former.deposed, former.deposed_session, former.deposed_ms, held))


def acts(state: MutableState) -> bool:
    """Return whether a controller handles events.

    It is the active controller, or the deposed controller whose session wrote this record. ZooKeeper refuses a deposed
    controller's writes only after the next election.
    """
    former, author = state.header.former, state.record.author
    return state.header.acting or (former.deposed != NO_BROKER and author != 0 and author == former.deposed_session)


def _lives_on(state: MutableState) -> bool:
    """Return whether the deposed controller's session outlived its /controller, as far as is known now.

    If only a live watch saw the loss, and the broker's znode is gone too, the session's end may have removed both.
    """
    former = state.header.former
    return former.deposed_ms > 0 and (state.record.author != 0 or former.deposed in state.header.brokers)


def _is_in_hand(header: Header, event: Event) -> bool:
    """Return whether a working controller had not reached the event's first write when it lost /controller.

    A controller that should have written long ago hangs. Its session ends before it does more.
    """
    waited_ms = header.former.deposed_ms - event.time_ms
    if event.kind is EventKind.CONTROLLER_FAILOVER:
        return waited_ms <= max(header.loaded_within_ms, timing.FAILED_OVER.of(header.partitions))
    return waited_ms <= timing.FIRST_WRITE.of(header.partitions)


def elected(tx: Transaction) -> None:
    """Conclude the new controller's actions in an earlier term, because its process lives."""
    header = tx.header
    for fenced in header.former.fenced:
        if fenced.session == header.term.session:
            _ran(tx, fenced, f"{tx.state.record.path} at {tx.state.record.zxid:#x}")


def session_ended(tx: Transaction, broker: BrokerId) -> None:
    """Conclude the actions of this broker's process as a deposed controller, when its znode is removed."""
    header, record = tx.header, tx.state.record
    for fenced in header.former.fenced:
        if fenced.broker != broker or record.author not in (0, fenced.session):
            continue  # if another session removed the znode, the controller's own lives on
        if record.cxid > 0 or _outlived(header, fenced):
            _ran(tx, fenced, f"{record.path} at {record.zxid:#x}")
        else:
            _conclude(tx, fenced, WITHDRAWN)


def registered(tx: Transaction, broker: BrokerId) -> None:
    """Withdraw the unproven actions of this broker's former process, when another process registers."""
    for fenced in tx.header.former.fenced:
        if fenced.broker == broker and fenced.session != tx.state.record.ephemeral_owner:
            _conclude(tx, fenced, WITHDRAWN)


def judge_in_time(tx: Transaction) -> None:
    """Conclude the actions of deposed controllers whose sessions have outlived /controller."""
    for fenced in tx.header.former.fenced if tx.header.phase is FOLLOWING else ():
        if _outlived(tx.header, fenced):
            _ran(tx, fenced, f"/brokers/ids/{fenced.broker} at {tx.state.record.zxid:#x}")


def give_up(tx: Transaction) -> None:
    """Withdraw all actions held back, because records that could prove them were not seen."""
    for fenced in tx.header.former.fenced:
        _conclude(tx, fenced, WITHDRAWN)


def topic_ends(tx: Transaction, name: str) -> None:
    """Withdraw the actions held back for a topic that is removed before they are proven."""
    for fenced in tx.header.former.fenced:
        publish = tx.events.publisher_of(fenced.event, WITHDRAWN)
        for number, action, value in _take_out(tx.state, fenced.event, name):
            if isinstance(action, StateChange):
                publish(TopicPartition(name, number), action, value)


def _outlived(header: Header, fenced: FencedController) -> bool:
    """Return whether the session gave a sign of life after it had lost /controller."""
    outlasts_ms = header.settings.zookeeper_session_timeout_ms + timing.ACTING.ms
    return header.time_ms - fenced.lost_ms > outlasts_ms


def _ran(tx: Transaction, fenced: FencedController, evidence: str) -> None:
    tx.state.count(tx.state.happened.inferred_events, RAN_TO_FENCED_WRITE)
    event = replace(fenced.event, inferred_by=RAN_TO_FENCED_WRITE, inferred_from=evidence)
    _conclude(tx, replace(fenced, event=event), FINAL)


def _conclude(tx: Transaction, fenced: FencedController, status: Status) -> None:
    """Publish the actions held back for a deposed controller."""
    event = fenced.event.opened()
    tx.header.former.hold_back_no_more(event.id)
    publish, contents = tx.events.publisher_of(event, status), RequestContents(event.batches, tx.header.profile)
    for name in event.topics:
        for number, action, value in _take_out(tx.state, event, name):
            if isinstance(action, StateChange):
                publish(TopicPartition(name, number), action, value)
            else:
                contents.add(TopicPartition(name, number), action, value)
    if status is FINAL:
        tx.requests.publish_sent(event, event.batches, contents)
    else:
        tx.requests.withdraw_requests(event)


def _take_out(state: MutableState, event: Event, name: str) -> list[Done]:
    """Take the event's actions that were held back for a topic out of the topic, and return them."""
    topic = state.topic(name)
    held = topic.unproven if topic is not None else ()
    own = [done for done in held if done[1].event == event.id]
    if own:
        _keep(state, name, tuple([done for done in held if done[1].event != event.id]))
    return own


def _keep(state: MutableState, name: str, unproven: tuple[Done, ...]) -> None:
    # `put_topic` is not needed, because no row, count or judgement of a partition depends on unproven actions.
    state.topics.put(name, replace(state.topics[name], unproven=unproven))
