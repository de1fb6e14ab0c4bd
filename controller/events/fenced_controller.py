"""Fenced controller: deposed while its session lives on, it goes on with the event that it is in up to its first write.

From 2.1 on. The loss of /controller is an event in its queue, behind the one that it is in, be that the load of the
cluster: nothing stops it before its own write, which is refused by the epoch (Kafka's
`KafkaZkClient.retryRequestsUntilConnected`), unless its process was killed before, or hung. ZooKeeper keeps the session
of a killed process for the session timeout after it was last heard of, with its broker's znode. So what it did is held
back until the session has outlived the loss by that timeout, is elected again, or is closed by its process. One that
expires earlier was silent since before the loss, and is not known to have done anything.
"""

from __future__ import annotations

from typing import Final

from controller.contract.effect_rows import FINAL, WITHDRAWN, Status
from controller.contract.ids import NO_BROKER, TopicPartition
from controller.model.context import FOLLOWING, Header
from controller.model.controllership import FencedController
from controller.model.event import Event, EventKind
from controller.model.leadership import Done, StateChange
from controller.rules import timing
from controller.transaction.pending_requests import RequestContents
from controller.transaction.transaction import Transaction, replace

# The rule by which a deposed controller's last event counts as done up to its first write.
RAN_TO_FENCED_WRITE: Final = "ran-to-fenced-write"


def hold_back(tx: Transaction) -> None:
    """Hold back what the controller that was deposed did before its first write, when another broker is elected."""
    header, former = tx.header, tx.header.former
    if not header.profile.fences_writes or header.controller == former.deposed or not _lives_on(tx):
        return
    due = [event for event in tx.open_events() if event.writes_due and not event.is_doubtful]
    if not due or any(event.begun for event in due) or not _is_in_hand(header, due[0]):
        return
    event = tx.open_event(due[0].id)
    aside = tx.set_aside(event)
    for name, actions in aside.by_topic.items():
        _keep(tx, name, (*tx.topics[name].unproven, *actions))
    held = replace(event, batches=aside.batches, due=list(event.due)).stored()
    fenced = FencedController(former.deposed, former.deposed_session, former.deposed_ms, held)
    former.fenced = (*former.fenced, fenced)


def acts(tx: Transaction) -> bool:
    """Whether a controller handles events: the active one, or the deposed one, whose session wrote this record.

    Nothing is refused to a deposed controller before another one is elected.
    """
    former, author = tx.header.former, tx.record.author
    return tx.header.acting or (former.deposed != NO_BROKER and author != 0 and author == former.deposed_session)


def _lives_on(tx: Transaction) -> bool:
    """Whether the session of the deposed controller outlived its /controller, as far as is known now.

    Where only a live watch saw it, and its broker's znode is gone too, the session's end may have removed both.
    """
    former = tx.header.former
    return former.deposed_ms > 0 and (tx.record.author != 0 or former.deposed in tx.header.brokers)


def _is_in_hand(header: Header, event: Event) -> bool:
    """Whether a controller that works was still before the event's first write when it lost /controller.

    One that would have written long since hangs, and its session ends before it does more.
    """
    waited_ms = header.former.deposed_ms - event.time_ms
    if event.kind is EventKind.CONTROLLER_FAILOVER:
        return waited_ms <= max(header.loaded_within_ms, timing.FAILED_OVER.of(header.partitions))
    return waited_ms <= timing.FIRST_WRITE.of(header.partitions)


def elected(tx: Transaction) -> None:
    """Conclude what the new controller's process did in an earlier term: it lives."""
    header = tx.header
    for fenced in header.former.fenced:
        if fenced.session == header.term.session:
            _ran(tx, fenced, f"{tx.record.path} at {tx.record.zxid:#x}")


def session_ended(tx: Transaction, broker: int) -> None:
    """Conclude what this broker's process did as a deposed controller, when its znode is removed."""
    header, record = tx.header, tx.record
    for fenced in header.former.fenced:
        if fenced.broker != broker or record.author not in (0, fenced.session):
            continue  # where another session removed the znode, its own lives on
        if record.cxid > 0 or _outlived(header, fenced):
            _ran(tx, fenced, f"{record.path} at {record.zxid:#x}")
        else:
            _conclude(tx, fenced, WITHDRAWN)


def registered(tx: Transaction, broker: int) -> None:
    """Withdraw what this broker's former process is not known to have done, when another one registers."""
    for fenced in tx.header.former.fenced:
        if fenced.broker == broker and fenced.session != tx.record.ephemeral_owner:
            _conclude(tx, fenced, WITHDRAWN)


def judge_in_time(tx: Transaction) -> None:
    """Conclude what deposed controllers did whose sessions have outlived /controller."""
    for fenced in tx.header.former.fenced if tx.header.phase is FOLLOWING else ():
        if _outlived(tx.header, fenced):
            _ran(tx, fenced, f"/brokers/ids/{fenced.broker} at {tx.record.zxid:#x}")


def give_up(tx: Transaction) -> None:
    """Withdraw what was held back: what comes next was not seen."""
    for fenced in tx.header.former.fenced:
        _conclude(tx, fenced, WITHDRAWN)


def topic_ends(tx: Transaction, name: str) -> None:
    """Withdraw what was held back of a topic that is removed before it is known whether it was done."""
    for fenced in tx.header.former.fenced:
        publish = tx.publisher_of(fenced.event, WITHDRAWN)
        for number, action, value in _take_out(tx, fenced.event, name):
            if isinstance(action, StateChange):
                publish(TopicPartition(name, number), action, value)


def _outlived(header: Header, fenced: FencedController) -> bool:
    """Whether its session was heard of after it had lost /controller."""
    outlasts_ms = header.settings.zookeeper_session_timeout_ms + timing.ACTING.ms
    return header.time_ms - fenced.lost_ms > outlasts_ms


def _ran(tx: Transaction, fenced: FencedController, evidence: str) -> None:
    tx.count(tx.happened.inferred_events, RAN_TO_FENCED_WRITE)
    event = replace(fenced.event, inferred_by=RAN_TO_FENCED_WRITE, inferred_from=evidence)
    _conclude(tx, replace(fenced, event=event), FINAL)


def _conclude(tx: Transaction, fenced: FencedController, status: Status) -> None:
    """Publish what was held back of a deposed controller."""
    former, event = tx.header.former, fenced.event.opened()
    former.fenced = tuple(other for other in former.fenced if other.event.id != event.id)
    publish, contents = tx.publisher_of(event, status), RequestContents(event.batches, tx.header.profile)
    for name in event.topics:
        for number, action, value in _take_out(tx, event, name):
            if isinstance(action, StateChange):
                publish(TopicPartition(name, number), action, value)
            else:
                contents.add(TopicPartition(name, number), action, value)
    if status is FINAL:
        tx.publish_sent(event, event.batches, contents)
    else:
        tx.withdraw_requests(event)


def _take_out(tx: Transaction, event: Event, name: str) -> list[Done]:
    """Actions of the event that were held back for a topic, taken out of it."""
    topic = tx.topic(name)
    held = topic.unproven if topic is not None else ()
    own = [done for done in held if done[1].event == event.id]
    if own:
        _keep(tx, name, tuple([done for done in held if done[1].event != event.id]))
    return own


def _keep(tx: Transaction, name: str, unproven: tuple[Done, ...]) -> None:
    # Not by `put_topic`: no row, count or judgement of a partition depends on it.
    tx.topics.put(name, replace(tx.topics[name], unproven=unproven))
