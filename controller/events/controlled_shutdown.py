"""Controlled shutdown of a broker, which asks again while it still leads partitions.

The source is Kafka 3.9's `processControlledShutdown`. ZooKeeper never shows the request itself. The first write that
only a shutdown explains reveals the request, and later attempts follow from the brokers' settings.
"""

from __future__ import annotations

from controller.contract.ids import BrokerId, TopicPartition
from controller.contract.leader_and_isr import LeaderAndIsr
from controller.events import topic_deletion
from controller.machines import partition_machine, replica_machine
from controller.machines.replica_machine import Replica
from controller.model.brokers import ShutdownAttempt
from controller.model.context import Header
from controller.model.event import Event, EventKind, UnprovenShutdown
from controller.model.leadership import Elect
from controller.model.mutable_state import MutableState
from controller.model.shutdown_requests import closes, has_asked
from controller.rules import timing
from controller.rules.election import Strategy
from controller.rules.states import ReplicaState
from controller.transaction.certainty import CertaintyRules
from controller.transaction.transaction import RequestBatch, Transaction

# Rules of inference for attempts that no write shows.
ASKED_AGAIN = "shutdown-asked-again"
ASKED_BEFORE_SESSION_END = "shutdown-asked-before-session-end"

_KIND = EventKind.CONTROLLED_SHUTDOWN

# From one attempt to the next passes the backoff and the request's round trip: 1.06 times the backoff, measured.
_ROUND_TRIP_SHARE = 1.06


def ask(tx: Transaction, broker: BrokerId, only: TopicPartition | None = None) -> None:
    """Handle an attempt that a write shows, whether it is the first, an early or an additional one.

    With `only`, the attempt reaches this partition alone.
    """
    header = tx.header
    if broker not in header.brokers:
        return  # a broker that is not registered yet cannot have asked
    expected = header.shutdowns.attempts.get(broker)
    if expected is None:
        left = 0 if has_asked(header, broker) else header.settings.controlled_shutdown_max_retries - 1
        expected = ShutdownAttempt(header.time_ms, header.time_ms, left, doubtful=_may_have_found_no_controller(header))
    _attempt(tx, broker, expected, header.time_ms, only)


def is_under_way(header: Header, broker: BrokerId) -> bool:
    """Return whether an attempt may still be under way. A broker asks again only a backoff after the response.

    If the attempt follows from a backoff, it may have come earlier, by at most a round trip.
    """
    asked_ms = header.shutdowns.last_asked_ms.get(broker)
    again_ms = 2 * header.settings.controlled_shutdown_retry_backoff_ms - _after_backoff_ms(header)
    return asked_ms is not None and header.time_ms - asked_ms < again_ms


def reach_late(tx: Transaction, broker: BrokerId, tp: TopicPartition) -> None:
    """Let the attempt that is under way reach a partition only now, when another replica has got in sync."""
    tx.events.begin(_KIND, f"broker {broker} shuts down")
    partition_machine.elect(tx, [tp], Strategy.CONTROLLED_SHUTDOWN)
    led, _ = _hosted(tx.state, broker)
    if not led:
        tx.header.shutdowns.expect_no_more((broker,))


def ask_unsuccessfully(tx: Transaction, broker: BrokerId) -> None:
    """Handle an earlier attempt, shown only now, that found no other replica to lead. The broker will ask again."""
    header = tx.header
    if broker not in header.brokers:
        return  # a broker that is not registered yet cannot have asked
    tx.events.begin(_KIND, f"broker {broker} shuts down")
    header.shutdowns.begin(broker, header.brokers[broker].epoch, 0)
    _, followed = _hosted(tx.state, broker)
    _stop_followed(tx, broker, [tp for tp in followed if not _in_sync(tx.state, broker, tp)])
    left = header.settings.controlled_shutdown_max_retries - 2
    if left >= 0:
        expected = ShutdownAttempt(header.time_ms + _after_backoff_ms(header), header.time_ms, left)
        header.shutdowns.expect(broker, expected)


def _in_sync(state: MutableState, broker: BrokerId, tp: TopicPartition) -> LeaderAndIsr | None:
    """Return the partition's expected state if the broker is in its ISR, else None."""
    partition = state.partition(tp)
    value = partition.value(state.header.controller_epoch) if partition else None
    return value if value is not None and broker in value.isr else None


def would_show(state: MutableState, broker: BrokerId) -> bool:
    """Return whether a shutdown of the broker writes something, because it is in sync with other replicas."""
    return any(len(value.isr) > 1 for tp in state.hosted_by(broker) if (value := _in_sync(state, broker, tp)))


def _may_have_found_no_controller(header: Header) -> bool:
    """Return whether an earlier attempt would have preceded this controller's term."""
    return header.time_ms - header.term.began_ms < _after_backoff_ms(header) + timing.SHUTDOWN_ANSWERED.ms


def ask_again(tx: Transaction) -> None:
    """Handle the attempts of brokers that are due by the record's time.

    The present controller gets them. An attempt that finds no controller is used up.
    """
    for broker in sorted(tx.header.shutdowns.attempts):
        while (attempt := tx.header.shutdowns.attempts.get(broker)) and attempt.due_ms <= tx.header.time_ms:
            if _is_answered(tx.header):
                with tx.events.inferring(ASKED_AGAIN, "the retry backoff since the attempt before"):
                    _attempt(tx, broker, attempt, attempt.due_ms)
            else:
                _expect_next(tx.header, broker, attempt, attempt.due_ms)


def _is_answered(header: Header) -> bool:
    """Return whether an active controller answers.

    Brokers learn its address from its registration, so it must be registered, and it must not be closing.
    """
    return header.acting and header.controller in header.brokers and not closes(header, header.controller)


def give_up_on_missing(tx: Transaction) -> None:
    """Take back an expected attempt whose elections are missing, because the controller would have written them."""
    event = tx.events.last_event()
    if event is None or event.kind != _KIND or event.begun or not _moves_leaders(tx.certainty, event):
        return
    if tx.header.time_ms - event.time_ms > tx.header.settings.controlled_shutdown_retry_backoff_ms // 2:
        tx.requests.undo(event.id)


def give_up_on_unanswered(tx: Transaction) -> list[BrokerId]:
    """Take back attempts that only the backoff showed, and that the controller would have answered by a write.

    Return their brokers, which did not ask again, so they do not shut down.
    """
    header, staying = tx.header, list[BrokerId]()
    for event in list(header.events.values()):
        if event.inferred_by != ASKED_AGAIN or event.begun or not event.writes_due:
            continue
        if not header.has_outlasted_a_hang(event.time_ms):
            continue
        stays = {broker for broker, asked_ms in header.shutdowns.last_asked_ms.items() if asked_ms == event.time_ms}
        tx.requests.undo(event.id)
        header.shutdowns.expect_no_more(stays)
        staying += stays
    return staying


def _moves_leaders(certainty: CertaintyRules, event: Event) -> bool:
    return any(isinstance(action, Elect) for action in certainty.actions_of(event))


def session_ended(tx: Transaction, broker: BrokerId) -> None:
    """Handle the attempts that a broker had made when its session ended, even where no write shows them."""
    header, record = tx.header, tx.state.record
    registered = header.brokers.get(broker)
    if not header.settings.controlled_shutdown_enable:
        return
    # Only ZooKeeper's transaction log distinguishes a closed session from an expired one. A live watch does not.
    if registered is None or record.author not in (0, registered.session):
        return
    is_author = record.author == registered.session
    with tx.events.inferring(ASKED_BEFORE_SESSION_END):
        if is_author and record.cxid > 0 and _is_answered(header) and not has_asked(header, broker):
            _ask_unseen(tx, broker)
        _judge_doubtful(tx, broker)
        if not (is_author and record.cxid == 0):  # unless the session expired
            _ask_until_now(tx, broker)


def _ask_until_now(tx: Transaction, broker: BrokerId) -> None:
    """Handle the expected attempts of a broker for which there was time before its session ended."""
    header = tx.header
    while _is_answered(header) and (attempt := header.shutdowns.attempts.get(broker)):
        if attempt.earliest_ms > header.time_ms or (attempt.doubtful and not _fits(header, attempt.due_ms)):
            return
        _attempt(tx, broker, attempt, attempt.earliest_ms)


def _judge_doubtful(tx: Transaction, broker: BrokerId) -> None:
    """Take back doubtful attempts after which the broker's session ended too soon."""
    doubtful = [event.id for event in tx.events.open_events() if event.detail == UnprovenShutdown(broker)]
    for event in map(tx.events.open_event, reversed(doubtful)):
        event.detail = None
        if not (event.begun or _fits(tx.header, event.time_ms)):
            tx.requests.undo(event.id)


def _fits(header: Header, asked_ms: int) -> bool:
    """Return whether the session's end fits this attempt better than the previous, by the usual closing time."""
    return header.time_ms - asked_ms >= _usual_closing_ms(header) - _after_backoff_ms(header) // 2


def _ask_unseen(tx: Transaction, broker: BrokerId) -> None:
    """Handle the unseen attempts of a broker that closed its session, unless they would have written something.

    A broker closes its session only after the response, so a write would have been seen before.
    """
    trial = tx.fork()
    _ask_in_time(trial, broker)
    if not any(event.writes_due for event in trial.events.open_events() if event.id >= tx.header.next_event):
        tx.adopt(trial)


def _ask_in_time(tx: Transaction, broker: BrokerId) -> None:
    """Handle as many attempts of a broker as this controller had time to answer before the session's end.

    The controller answers registered brokers only. A broker that registered just before has given up unanswered.
    """
    header = tx.header
    there_since_ms = max(header.term.began_ms, header.brokers[broker].since_ms)
    there_ms = header.time_ms - there_since_ms - _usual_closing_ms(header)
    attempts = 1 + there_ms // max(header.settings.controlled_shutdown_retry_backoff_ms, 1)
    left = min(attempts, header.settings.controlled_shutdown_max_retries)
    if left > 0:
        _attempt(tx, broker, ShutdownAttempt(header.time_ms, header.time_ms, left - 1), header.time_ms)
    while attempt := header.shutdowns.attempts.get(broker):
        _attempt(tx, broker, attempt, attempt.due_ms)


def _usual_closing_ms(header: Header) -> int:
    return (timing.CLOSING if header.profile.closes_at_once else timing.SLOW_CLOSING).ms


def _after_backoff_ms(header: Header) -> int:
    return int(header.settings.controlled_shutdown_retry_backoff_ms * _ROUND_TRIP_SHARE)


def _attempt(
    tx: Transaction, broker: BrokerId, attempt: ShutdownAttempt, at_ms: int, only: TopicPartition | None = None
) -> None:
    event = tx.events.begin(_KIND, f"broker {broker} shuts down")
    event.time_ms = at_ms
    tx.events.await_proof(event)
    if attempt.doubtful and attempt.due_ms > attempt.earliest_ms:
        event.detail = UnprovenShutdown(broker)
    tx.header.shutdowns.begin(broker, tx.header.brokers[broker].epoch, at_ms)
    with topic_deletion.deferring_deletions(tx, broker):
        led, followed = _hosted(tx.state, broker, only)
        moved = partition_machine.elect(tx, led, Strategy.CONTROLLED_SHUTDOWN)
        _stop_followed(tx, broker, followed)
    if len(moved) < len(led):
        _expect_next(tx.header, broker, attempt, at_ms)
    else:
        tx.header.shutdowns.expect_no_more((broker,))


def _stop_followed(tx: Transaction, broker: BrokerId, followed: list[TopicPartition]) -> None:
    batch = RequestBatch(tx)
    for tp in followed:
        batch.stop_replica(broker, tp, delete=False)
    batch.send()
    replica_machine.enter_state(tx, [Replica(tp, broker) for tp in followed], ReplicaState.OFFLINE)


def _expect_next(header: Header, broker: BrokerId, attempt: ShutdownAttempt, at_ms: int) -> None:
    header.shutdowns.expect_no_more((broker,))
    if attempt.left > 0:
        earliest_ms = at_ms + header.settings.controlled_shutdown_retry_backoff_ms
        due_ms = at_ms + _after_backoff_ms(header)
        expected = ShutdownAttempt(due_ms, earliest_ms, attempt.left - 1, attempt.doubtful)
        header.shutdowns.expect(broker, expected)


def _hosted(
    state: MutableState, broker: BrokerId, only: TopicPartition | None = None
) -> tuple[list[TopicPartition], list[TopicPartition]]:
    """Return the broker's partitions with other replicas, those that it leads and those that it follows.

    With `only`, return none but this one.
    """
    led: list[TopicPartition] = []
    followed: list[TopicPartition] = []
    for tp in state.hosted_by(broker) if only is None else [only]:
        topic, partition = state.topic(tp.topic), state.partition(tp)
        value = partition.value(state.header.controller_epoch) if partition else None
        spared = topic is not None and topic.queued_for_deletion and state.header.profile.shutdown_spares_queued_topics
        if partition and value and len(partition.replicas) > 1 and not spared:
            (led if value.leader == broker else followed).append(tp)
    return led, followed
