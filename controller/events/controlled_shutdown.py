"""ControlledShutdown: a broker asks to be shut down, and asks again while it still leads something.

Here belongs what Kafka 3.9's `processControlledShutdown` does. The request itself is never seen: the first write that
only a shutdown explains tells of it, and later attempts follow from the brokers' settings.
"""

from __future__ import annotations

from controller.events import topic_deletion
from controller.machines import partition_machine, replica_machine
from controller.machines.replica_machine import Replica
from controller.model.context import NO_BROKER, Event, ShutdownAttempt
from controller.model.leadership import Elect
from controller.model.shutdown_requests import closes, has_asked
from controller.model.topics import TopicPartition
from controller.rules.election import Strategy
from controller.rules.states import ReplicaState
from controller.transaction.request_batch import RequestBatch
from controller.transaction.transaction import Turn

_KIND = "ControlledShutdown"

# An attempt takes a little longer than the backoff itself: its own round trip comes on top (1.06 times, measured).
_ROUND_TRIP_SHARE = 1.06

# What a new controller takes until it answers.
_FAILOVER_MS = 300

# How long a broker takes to close after its last attempt (0.07 to 0.5 s, and 0.7 to 2.6 s up to 3.1, measured).
_CLOSING_MS = 200
_SLOW_CLOSING_MS = 2_000


def ask(turn: Turn, broker: int) -> None:
    """A broker asks to be shut down, and it shows: for the first time, sooner than expected, or once too often."""
    header = turn.header
    expected = header.shutdown_attempts.get(broker)
    if expected is None:
        left = 0 if has_asked(header, broker) else header.settings.controlled_shutdown_max_retries - 1
        expected = ShutdownAttempt(header.time_ms, header.time_ms, left, doubtful=_may_have_found_nobody(turn))
    _attempt(turn, broker, expected, header.time_ms)


def is_under_way(turn: Turn, broker: int) -> bool:
    """Whether an attempt may still be going on: a broker asks again only a backoff after it was answered."""
    header = turn.header
    asked_ms = header.last_asked_ms.get(broker)
    return asked_ms is not None and header.time_ms - asked_ms < header.settings.controlled_shutdown_retry_backoff_ms


def reach_late(turn: Turn, broker: int, tp: TopicPartition) -> None:
    """The attempt that is under way comes to a partition only now, when somebody else has got in sync."""
    turn.begin(_KIND, f"broker {broker} shuts down")
    partition_machine.elect(turn, [tp], Strategy.CONTROLLED_SHUTDOWN)
    led, _ = _hosted(turn, broker)
    if not led:
        _forget_next(turn, broker)


def ask_in_vain(turn: Turn, broker: int) -> None:
    """A broker asked some time ago, it shows only now, and nobody could take over from it then: it will ask again."""
    header = turn.header
    turn.begin(_KIND, f"broker {broker} shuts down")
    _remember(turn, broker, asked_ms=0)
    _, followed = _hosted(turn, broker)
    _stop_followed(turn, broker, [tp for tp in followed if not _is_in_sync(turn, broker, tp)])
    left = header.settings.controlled_shutdown_max_retries - 2
    if left >= 0:
        expected = ShutdownAttempt(header.time_ms + _after_backoff_ms(turn), header.time_ms, left)
        header.shutdown_attempts = {**header.shutdown_attempts, broker: expected}


def _is_in_sync(turn: Turn, broker: int, tp: TopicPartition) -> bool:
    partition = turn.partition(tp)
    value = partition.value(turn.header.controller_epoch) if partition else None
    return value is not None and broker in value.isr


def _may_have_found_nobody(turn: Turn) -> bool:
    """Whether the attempt before this one would have fallen into the time before this controller's term."""
    header = turn.header
    return header.time_ms - header.term_began_ms < _after_backoff_ms(turn) + _FAILOVER_MS


def ask_again(turn: Turn) -> None:
    """Brokers whose next attempts are due by the record's time ask again, as often as was due.

    They ask whoever is controller then; an attempt that finds none is used up.
    """
    for broker in sorted(turn.header.shutdown_attempts):
        while (attempt := turn.header.shutdown_attempts.get(broker)) and attempt.due_ms <= turn.header.time_ms:
            if _is_answered(turn):
                _attempt(turn, broker, attempt, attempt.due_ms)
            else:
                _expect_next(turn, broker, attempt, attempt.due_ms)


def _is_answered(turn: Turn) -> bool:
    """Whether a controller answers: it is registered, else its address is not known, and it does not close itself."""
    header = turn.header
    return header.acting and header.controller in header.brokers and not closes(header, header.controller)


def give_up_on_missing(turn: Turn) -> None:
    """An attempt that was expected some time ago and would have moved a leader since was not made."""
    event = turn.last_event()
    if event is None or event.kind != _KIND or event.begun or not _moves_leaders(turn, event):
        return
    if turn.header.time_ms - event.time_ms > turn.header.settings.controlled_shutdown_retry_backoff_ms // 2:
        turn.undo(event)


def _moves_leaders(turn: Turn, event: Event) -> bool:
    return any(isinstance(step, Elect) for step in turn.steps_of(event))


def keep_attempts(turn: Turn) -> None:
    """A new controller will be asked by the brokers that the last one could not let go."""
    header = turn.header
    header.shutdown_attempts = {
        broker: attempt for broker, attempt in header.shutdown_attempts.items() if has_asked(header, broker)
    }


def session_ended(turn: Turn, broker: int) -> None:
    """A broker's session is over: what it had asked for by then was asked, though no write may tell of it."""
    header, record = turn.header, turn.record
    registered = header.brokers.get(broker)
    # Only ZooKeeper's log tells whether the broker itself closed its session, or it expired; a live watch does not.
    if registered is None or record.author not in (0, registered.session):
        return
    known = record.author == registered.session
    if known and record.cxid > 0 and _is_answered(turn) and not has_asked(header, broker):
        _ask_unseen(turn, broker)
    expired = known and record.cxid == 0
    _judge_doubtful(turn, broker)
    while _is_answered(turn) and not expired and (attempt := header.shutdown_attempts.get(broker)):
        if attempt.earliest_ms > header.time_ms or (attempt.doubtful and not _fits(turn, attempt.due_ms)):
            return
        _attempt(turn, broker, attempt, attempt.earliest_ms)


def _judge_doubtful(turn: Turn, broker: int) -> None:
    """Take back the doubtful attempts that the end of the broker's session came too soon for."""
    doubtful = [event.id for event in turn.open_events() if event.doubtful == broker and event.kind == _KIND]
    for event in map(turn.open_event, reversed(doubtful)):
        event.doubtful = NO_BROKER
        if not (event.begun or _fits(turn, event.time_ms)):
            turn.undo(event)


def _fits(turn: Turn, asked_ms: int) -> bool:
    """Whether the session's end follows this attempt, rather than the one before it, as it usually does."""
    return turn.header.time_ms - asked_ms >= _usual_closing_ms(turn) - _after_backoff_ms(turn) // 2


def _ask_unseen(turn: Turn, broker: int) -> None:
    """A broker that closes its session had asked before that, as often as this controller was there to answer.

    It answers registered brokers only: one that registered just before was not let go, it gave up.
    """
    header = turn.header
    there_since_ms = max(header.term_began_ms, header.brokers[broker].since_ms)
    there_ms = header.time_ms - there_since_ms - _usual_closing_ms(turn)
    attempts = 1 + there_ms // max(header.settings.controlled_shutdown_retry_backoff_ms, 1)
    left = min(attempts, header.settings.controlled_shutdown_max_retries)
    if left > 0:
        _attempt(turn, broker, ShutdownAttempt(header.time_ms, header.time_ms, left - 1), header.time_ms)
    while attempt := header.shutdown_attempts.get(broker):
        _attempt(turn, broker, attempt, attempt.due_ms)


def _usual_closing_ms(turn: Turn) -> int:
    return _CLOSING_MS if turn.header.profile.closes_at_once else _SLOW_CLOSING_MS


def _after_backoff_ms(turn: Turn) -> int:
    return int(turn.header.settings.controlled_shutdown_retry_backoff_ms * _ROUND_TRIP_SHARE)


def _attempt(turn: Turn, broker: int, attempt: ShutdownAttempt, at_ms: int) -> None:
    event = turn.begin(_KIND, f"broker {broker} shuts down")
    event.time_ms = at_ms
    turn.await_proof(event)
    event.doubtful = broker if attempt.doubtful and attempt.due_ms > attempt.earliest_ms else NO_BROKER
    _remember(turn, broker, at_ms)
    with topic_deletion.begun_behind(turn, broker):
        led, followed = _hosted(turn, broker)
        moved = partition_machine.elect(turn, led, Strategy.CONTROLLED_SHUTDOWN)
        _stop_followed(turn, broker, followed)
    if len(moved) < len(led):
        _expect_next(turn, broker, attempt, at_ms)
    else:
        _forget_next(turn, broker)


def _remember(turn: Turn, broker: int, asked_ms: int) -> None:
    header = turn.header
    header.shutting_down = tuple(sorted({*header.shutting_down, broker}))
    header.asked_to_shut_down = {**header.asked_to_shut_down, broker: header.brokers[broker].epoch}
    header.last_asked_ms = {**header.last_asked_ms, broker: asked_ms}


def _stop_followed(turn: Turn, broker: int, followed: list[TopicPartition]) -> None:
    batch = RequestBatch(turn)
    for tp in followed:
        batch.stop_replica(broker, tp, delete=False)
    batch.send()
    replica_machine.enter_state(turn, [Replica(tp, broker) for tp in followed], ReplicaState.OFFLINE)


def _expect_next(turn: Turn, broker: int, attempt: ShutdownAttempt, at_ms: int) -> None:
    header = turn.header
    _forget_next(turn, broker)
    if attempt.left > 0:
        earliest_ms = at_ms + header.settings.controlled_shutdown_retry_backoff_ms
        due_ms = at_ms + _after_backoff_ms(turn)
        expected = ShutdownAttempt(due_ms, earliest_ms, attempt.left - 1, attempt.doubtful)
        header.shutdown_attempts = {**header.shutdown_attempts, broker: expected}


def _forget_next(turn: Turn, broker: int) -> None:
    attempts = turn.header.shutdown_attempts
    turn.header.shutdown_attempts = {key: attempt for key, attempt in attempts.items() if key != broker}


def _hosted(turn: Turn, broker: int) -> tuple[list[TopicPartition], list[TopicPartition]]:
    """The partitions with other replicas too that the broker leads, and those that it follows."""
    led: list[TopicPartition] = []
    followed: list[TopicPartition] = []
    for tp in turn.hosted_by(broker):
        topic, partition = turn.topic(tp.topic), turn.partition(tp)
        value = partition.value(turn.header.controller_epoch) if partition else None
        spared = topic is not None and topic.queued and turn.header.profile.shutdown_spares_queued_topics
        if partition and value and len(partition.replicas) > 1 and not spared:
            (led if value.leader == broker else followed).append(tp)
    return led, followed
