"""Writes that no expected write gives: the rules of inference are tried in order, until one reproduces the value.

Each hypothesis runs the controller's own handlers on a trial of the step and is taken only if the written value is
exactly what they would write; else the write is unexplained, never guessed.
"""

from __future__ import annotations

from controller.inference import deferral, divergences, expected_writes, isr_change
from controller.inference.hypotheses.observed_write import Hypothesis, ObservedWrite
from controller.inference.hypotheses.table import RULES
from controller.model.leadership import LeaderAndIsr, Move
from controller.model.topics import Partition, TopicPartition
from controller.rules.states import PartitionState
from controller.transaction.pending_events import before_move
from controller.transaction.transaction import Turn, replace


def explain(turn: Turn, tp: TopicPartition, written: LeaderAndIsr) -> None:
    """Take the first hypothesis that reproduces the write; else let the observed value win and count it."""
    partition = turn.partition(tp)
    assert partition is not None, f"{tp} was written, and is not known"
    if not (turn.header.acting and _is_explained(turn, ObservedWrite(tp, partition, partition.confirmed, written))):
        _accept(turn, tp, partition, written)


def _is_explained(turn: Turn, write: ObservedWrite) -> bool:
    overtaken = deferral.overtaken(turn)
    for rule in RULES:
        for hypothesis in rule.propose(turn, write):
            for behind in [overtaken, []] if overtaken else [[]]:
                trial = turn.fork()
                if _explains(trial, hypothesis, write, behind):
                    turn.adopt(trial)
                    turn.count(f"inferred/{rule.name}")
                    return True
    return False


def _explains(turn: Turn, hypothesis: Hypothesis, write: ObservedWrite, behind: list[int]) -> bool:
    """Whether the hypothesis makes the controller write this, before it takes up the events behind."""
    tp, before, written, epoch = write.tp, write.before, write.written, turn.header.controller_epoch
    with deferral.behind(turn, behind):
        # Up to 2.0 nothing keeps a deposed controller from writing on: what it does counts to its own term.
        turn.header.controller_epoch = written.controller_epoch
        hypothesis(turn)
        turn.header.controller_epoch = epoch
    if expected_writes.confirm(turn, tp, written):
        return True
    return before is not None and isr_change.confirm_across_lost(turn, tp, before, written)


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
