"""ControlledShutdown: a broker asks to be shut down, and asks again while it still leads something.

Here belongs what Kafka 3.9's `processControlledShutdown` does. The request itself is never seen: the first write that
only a shutdown explains tells of it, and later attempts follow from the brokers' settings.
"""

from __future__ import annotations

from controller import partition_machine, replica_machine
from controller.context import ShutdownAttempt
from controller.election import Strategy
from controller.replica_machine import Replica
from controller.requests import RequestBatch
from controller.states import ReplicaState
from controller.topics import TopicPartition
from controller.turn import Turn

# An attempt takes a little longer than the backoff itself: its own round trip comes on top (1.06 times, measured).
_ROUND_TRIP_SHARE = 1.06

# How long a broker takes to close after its last attempt (0.07 to 0.5 s, and 0.7 to 2.6 s up to 3.1, measured).
_CLOSING_MS = 200
_SLOW_CLOSING_MS = 2_000


def ask(turn: Turn, broker: int) -> None:
    """A broker asks to be shut down, and it shows: for the first time, sooner than expected, or once too often."""
    header = turn.header
    expected = header.shutdown_attempts.get(broker)
    left = expected.left if expected else 0 if _has_asked(turn, broker) else _left_after_the_first(turn)
    _attempt(turn, broker, header.time_ms, left)


def _has_asked(turn: Turn, broker: int) -> bool:
    return turn.header.asked_to_shut_down.get(broker) == turn.header.brokers[broker].epoch


def _left_after_the_first(turn: Turn) -> int:
    """How many attempts may follow the first that shows: one before it may have found nobody to answer."""
    header = turn.header
    soon = header.time_ms - header.term_began_ms < header.settings.controlled_shutdown_retry_backoff_ms
    unanswered = 1 if header.left_unanswered and soon else 0
    return header.settings.controlled_shutdown_max_retries - 1 - unanswered


def ask_again(turn: Turn) -> None:
    """Brokers whose next attempts are due by the record's time ask again, as often as was due.

    They ask whoever is controller then; an attempt that finds none is used up.
    """
    for broker in sorted(turn.header.shutdown_attempts):
        while (attempt := turn.header.shutdown_attempts.get(broker)) and attempt.due_ms <= turn.header.time_ms:
            if turn.header.acting:
                _attempt(turn, broker, attempt.due_ms, attempt.left)
            else:
                _expect_next(turn, broker, attempt.due_ms, attempt.left)


def keep_attempts(turn: Turn) -> None:
    """A new controller will be asked by the brokers that the last one could not let go."""
    header = turn.header
    header.shutdown_attempts = {
        broker: attempt
        for broker, attempt in header.shutdown_attempts.items()
        if broker in header.brokers and _has_asked(turn, broker)
    }


def session_ended(turn: Turn, broker: int) -> None:
    """A broker's session is over: what it had asked for by then was asked, though no write may tell of it."""
    header, record = turn.header, turn.record
    registered = header.brokers.get(broker)
    # Only ZooKeeper's log tells whether the broker itself closed its session, or it expired; a live watch does not.
    if registered is None or record.author not in (0, registered.session):
        return
    known = record.author == registered.session
    if known and record.cxid > 0 and header.acting and not _has_asked(turn, broker):
        _ask_unseen(turn, broker)
    expired = known and record.cxid == 0
    while header.acting and not expired and (attempt := header.shutdown_attempts.get(broker)):
        if attempt.earliest_ms > header.time_ms:
            return
        _attempt(turn, broker, attempt.earliest_ms, attempt.left)


def _ask_unseen(turn: Turn, broker: int) -> None:
    """A broker that closes its session had asked before that, as often as this controller was there to answer."""
    header = turn.header
    closing_ms = _CLOSING_MS if header.profile.closes_at_once else _SLOW_CLOSING_MS
    there_ms = header.time_ms - header.term_began_ms - closing_ms
    attempts = 1 + there_ms // max(header.settings.controlled_shutdown_retry_backoff_ms, 1)
    left = min(attempts, header.settings.controlled_shutdown_max_retries)
    if left > 0:
        _attempt(turn, broker, header.time_ms, left - 1)
    while attempt := header.shutdown_attempts.get(broker):
        _attempt(turn, broker, attempt.due_ms, attempt.left)


def _attempt(turn: Turn, broker: int, at_ms: int, left: int) -> None:
    header = turn.header
    turn.begin("ControlledShutdown", f"broker {broker} shuts down")
    header.shutting_down = tuple(sorted({*header.shutting_down, broker}))
    header.asked_to_shut_down = {**header.asked_to_shut_down, broker: header.brokers[broker].epoch}
    led, followed = _hosted(turn, broker)
    moved = partition_machine.elect(turn, led, Strategy.CONTROLLED_SHUTDOWN)
    batch = RequestBatch(turn)
    for tp in followed:
        batch.stop_replica(broker, tp, delete=False)
    batch.send()
    replica_machine.enter_state(turn, [Replica(tp, broker) for tp in followed], ReplicaState.OFFLINE)
    _expect_next(turn, broker, at_ms, left if len(moved) < len(led) else 0)


def _expect_next(turn: Turn, broker: int, at_ms: int, left: int) -> None:
    header = turn.header
    others = {key: attempt for key, attempt in header.shutdown_attempts.items() if key != broker}
    if left > 0:
        backoff_ms = header.settings.controlled_shutdown_retry_backoff_ms
        expected_ms = at_ms + int(backoff_ms * _ROUND_TRIP_SHARE)
        others[broker] = ShutdownAttempt(expected_ms, at_ms + backoff_ms, left - 1)
    header.shutdown_attempts = others


def _hosted(turn: Turn, broker: int) -> tuple[list[TopicPartition], list[TopicPartition]]:
    """The partitions with other replicas too that the broker leads, and those that it follows."""
    led: list[TopicPartition] = []
    followed: list[TopicPartition] = []
    for tp in turn.hosted_by(broker):
        topic, partition = turn.topic(tp.topic), turn.partition(tp)
        value = partition.value(turn.header.controller_epoch) if partition else None
        if topic and partition and value and len(partition.replicas) > 1 and not topic.queued:
            (led if value.leader == broker else followed).append(tp)
    return led, followed
