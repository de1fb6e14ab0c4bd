"""Writes that no znode announced: hypotheses about what the controller was asked to do.

Here belong the hypotheses, in the order in which they are tried. Each runs the controller's own handler on a trial of
the turn and is taken only if the written value is exactly what that handler would write; else the write is
unexplained, never guessed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Final

from controller.events import (
    broker_change,
    controlled_shutdown,
    controller_failover,
    log_dir_event_notification,
    partition_reassignment,
    replica_leader_election,
    topic_change,
    topic_deletion,
)
from controller.inference import deferral, divergences, expected_writes, isr_change
from controller.model.context import NO_BROKER
from controller.model.leadership import Create, LeaderAndIsr, Move
from controller.model.topics import Partition, TopicPartition
from controller.rules.states import PartitionState
from controller.transaction.pending_events import before_move
from controller.transaction.transaction import Turn, replace

Hypothesis = Callable[[Turn], None]

# How long after a trigger that nobody could read a write may be its consequence.
_CONSEQUENCE_MS: Final = 5_000


def explain(turn: Turn, tp: TopicPartition, written: LeaderAndIsr) -> None:
    """Take the first hypothesis that reproduces the write; else let the observed value win and count it."""
    partition = turn.partition(tp)
    assert partition is not None, f"{tp} was written, and is not known"
    overtaken = deferral.overtaken(turn)
    if turn.header.acting:
        for hypothesis in _hypotheses(turn, tp, partition, written):
            for behind in [overtaken, []] if overtaken else [[]]:
                trial = turn.fork()
                if _explains(trial, hypothesis, tp, written, behind):
                    turn.adopt(trial)
                    return
    _accept(turn, tp, partition, written)


def _explains(turn: Turn, hypothesis: Hypothesis, tp: TopicPartition, written: LeaderAndIsr, behind: list[int]) -> bool:
    """Whether the hypothesis makes the controller write this, before it takes up the events behind."""
    before, epoch = (turn.partition(tp) or Partition(())).confirmed, turn.header.controller_epoch
    with deferral.behind(turn, behind):
        # Up to 2.0 nothing keeps a deposed controller from writing on: what it does counts to its own term.
        turn.header.controller_epoch = written.controller_epoch
        hypothesis(turn)
        turn.header.controller_epoch = epoch
    if expected_writes.confirm(turn, tp, written):
        return True
    return before is not None and isr_change.confirm_across_lost(turn, tp, before, written)


def read_together(turn: Turn, tp: TopicPartition, written: LeaderAndIsr) -> bool:
    """Whether the write shows that the controller read a death and a later registration at once.

    Then it belongs to the registration, though the death, which was seen first, has not shown any write.
    """
    pair = broker_change.may_be_read_together(turn) if len(turn.header.events) > 1 else None
    if pair is None:
        return False
    death, birth = pair
    as_seen = turn.fork()
    if expected_writes.confirm(as_seen, tp, written) and not as_seen.open_event(birth.id).begun:
        return False
    trial = turn.fork()
    broker_change.read_together(trial, trial.open_event(death.id), trial.open_event(birth.id))
    if not expected_writes.confirm(trial, tp, written):
        return False
    turn.adopt(trial)
    return True


def _accept(turn: Turn, tp: TopicPartition, partition: Partition, written: LeaderAndIsr) -> None:
    divergences.unforeseen(turn, tp, partition, written)
    turn.begin("Unexplained", f"partition {tp} was written as nothing foretold")
    for step in reversed(partition.queue):
        turn.withdraw(tp, step)
        if isinstance(step, Move) and step.replica is None:
            partition = before_move(partition, step)
    partition = replace(partition, queue=())
    before = partition.confirmed
    if before is None or before.leader != written.leader or _state_shown(turn, partition, written) != partition.state:
        partition = _moved_to_shown(turn, tp, partition, written)
    turn.put_partition(tp, replace(partition, confirmed=written))


def _state_shown(turn: Turn, partition: Partition, written: LeaderAndIsr) -> PartitionState:
    return PartitionState.ONLINE if turn.is_online(written.leader, partition) else PartitionState.OFFLINE


def _moved_to_shown(turn: Turn, tp: TopicPartition, partition: Partition, written: LeaderAndIsr) -> Partition:
    """The partition in the state that the value shows, by legal transitions; one that is deleted stays as it is.

    Whoever wrote the state of a partition that does not exist for the controller has not made it exist.
    """
    topic = turn.topic(tp.topic)
    if partition.state is PartitionState.NON_EXISTENT and (topic is None or topic.queued):
        return partition
    shown = _state_shown(turn, partition, written)
    by_way_of = [PartitionState.NEW] if partition.state is PartitionState.NON_EXISTENT else []
    for state in (*by_way_of, shown):
        turn.next_pass()
        move = Move(
            *turn.place(), replica=None, from_state=partition.state, to_state=state, written=True, value=written
        )
        partition = turn.queue(tp, replace(partition, state=state), move)
    return partition


def _hypotheses(turn: Turn, tp: TopicPartition, partition: Partition, written: LeaderAndIsr) -> Iterator[Hypothesis]:
    before = partition.confirmed
    if before is None:
        yield from _left_out_at_creation(turn, partition, written)
    if turn.header.is_poisoned:
        yield controller_failover.run_unpoisoned
    if before is None or written.leader_epoch != before.leader_epoch + 1:
        return
    if tp.topic in turn.header.halted_deletions:
        yield lambda trial: topic_deletion.halted_answered(trial, tp.topic)
    gone = set(before.isr) - set(written.isr)
    moves = written.leader != before.leader
    asked_lately = turn.header.time_ms - turn.header.preferred_asked_ms <= _CONSEQUENCE_MS
    completing = partition_reassignment.completes(turn, tp) if moves and before.leader in turn.header.brokers else None
    if completing is not None and not gone:
        yield lambda trial: partition_reassignment.complete_without(
            trial, trial.open_event(completing.id), tp, before.leader
        )
    if not gone and moves:
        yield from _other_leaders(tp, partition)
    yield from _departures(turn, tp, {before.leader, *gone}, gone)
    if not gone and not moves:
        if asked_lately:  # up to 2.1 it costs a partition an epoch that its preferred replica leads already
            yield lambda trial: replica_leader_election.preferred(trial, tp)
        yield lambda trial: _reassigned_again(trial, tp, partition)
    if moves:
        yield lambda trial: replica_leader_election.unclean(trial, tp)


def _other_leaders(tp: TopicPartition, partition: Partition) -> Iterator[Hypothesis]:
    """Somebody in the ISR leads instead, and all stay in it."""
    if partition.state is PartitionState.OFFLINE:
        yield lambda trial: broker_change.elect_after_all(trial, tp)
    yield lambda trial: replica_leader_election.preferred(trial, tp)


def _departures(turn: Turn, tp: TopicPartition, left: set[int], gone: set[int]) -> Iterator[Hypothesis]:
    """Live brokers that a partition may have lost, by a failed log directory or a controlled shutdown."""
    for broker in sorted(left & set(turn.header.brokers)):
        if log_dir_event_notification.reported_lately(turn, broker):
            yield lambda trial, broker=broker: log_dir_event_notification.failed(trial, broker, tp)  # type: ignore[misc]
        elif log_dir_event_notification.reported_lately(turn, NO_BROKER):
            yield lambda trial, broker=broker: _log_dir_failed(trial, broker, tp)  # type: ignore[misc]
        if broker in gone and controlled_shutdown.is_under_way(turn, broker):
            yield lambda trial, broker=broker: controlled_shutdown.reach_late(trial, broker, tp)  # type: ignore[misc]
        if broker in gone:
            yield lambda trial, broker=broker: controlled_shutdown.ask(trial, broker)  # type: ignore[misc]


def _left_out_at_creation(turn: Turn, partition: Partition, written: LeaderAndIsr) -> Iterator[Hypothesis]:
    """Live brokers that a topic is created without: nobody knew of them yet, or they had asked to be shut down before.

    Where they lead nothing and are in no ISR, no other write tells that they asked.
    """
    create = next((step for step in partition.queue if isinstance(step, Create)), None)
    left_out = set(create.isr) - set(written.isr) if create else set()
    if create is None or not left_out or not left_out <= set(turn.header.brokers):
        return
    event = turn.open_event(create.event)
    if event.doubtful in left_out:
        yield lambda trial: controller_failover.load_before(trial, trial.open_event(create.event), left_out)
    if not event.first_write_ms:
        yield lambda trial: topic_change.create_without(trial, trial.open_event(create.event), left_out)


def _log_dir_failed(turn: Turn, broker: int, tp: TopicPartition) -> None:
    log_dir_event_notification.named(turn, broker)
    log_dir_event_notification.failed(turn, broker, tp)


def _reassigned_again(turn: Turn, tp: TopicPartition, partition: Partition) -> None:
    turn.begin("ApiPartitionReassignment", f"partition {tp} was reassigned to the replicas it has")
    partition_reassignment.run(turn, tp, partition.assignment)
