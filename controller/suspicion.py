"""Written states that no controller writes, or not this one: what divergences say of them.

Here belong the judgements over a written value and the sentences with both values. What the value then does to the
state is in `observation` and `explanation`.
"""

from __future__ import annotations

from controller import alert_kinds, happenings
from controller.leadership import LeaderAndIsr
from controller.topics import Partition, TopicPartition
from controller.turn import Turn


def suspect(turn: Turn, tp: TopicPartition, partition: Partition, written: LeaderAndIsr) -> None:
    """Tell of a written value that is illegal or a deposed controller's; count the changes that were missed."""
    before = partition.confirmed
    flaw = _flaw(before, written)
    if flaw is not None:
        told = f"the state of partition {tp} is one that no controller writes: {flaw}"
        happenings.note(turn, alert_kinds.ILLEGAL_STATE, told, about=str(tp), evidence=_values(before, written))
    if before is None:
        return
    missed = written.partition_epoch - before.partition_epoch - 1
    if missed > 0:
        turn.count("divergences/missed_changes", missed)  # the newest value is known: nobody needs to hear of it
    if written.leader_epoch > before.leader_epoch and _is_of_deposed(turn, written):
        told = (
            f"controller epoch {written.controller_epoch} wrote partition {tp} after epoch "
            f"{turn.header.controller_epoch} had begun"
        )
        happenings.note(turn, alert_kinds.STALE_CONTROLLER, told, about=str(tp), evidence=_values(before, written))


def unforeseen(turn: Turn, tp: TopicPartition, partition: Partition, written: LeaderAndIsr) -> None:
    """Tell of a written value that nothing explains: of what was foretold instead, if anything was."""
    foretold = partition.value(turn.header.controller_epoch) if partition.write_due else None
    if foretold is None:
        kind, instead = alert_kinds.UNEXPLAINED_WRITE, "as nothing foretold"
    elif foretold.leader != written.leader:
        kind, instead = alert_kinds.DIFFERENT_LEADER, f"with leader {written.leader} instead of {foretold.leader}"
    else:
        kind = alert_kinds.UNEXPECTED_ISR
        instead = f"with ISR {list(written.isr)} instead of {list(foretold.isr)}"
    evidence = _values(foretold or partition.confirmed, written)
    happenings.note(turn, kind, f"partition {tp} was written {instead}", about=str(tp), evidence=evidence)


def _flaw(before: LeaderAndIsr | None, written: LeaderAndIsr) -> str | None:
    if before is not None and written.leader_epoch < before.leader_epoch:
        return f"its leader epoch went back from {before.leader_epoch} to {written.leader_epoch}"
    if written.leader >= 0 and written.leader not in written.isr:
        return f"its leader {written.leader} is not in its ISR {list(written.isr)}"
    return None


def _is_of_deposed(turn: Turn, written: LeaderAndIsr) -> bool:
    """Whether the write came after a newer controller's epoch; several read at once may come in another order."""
    header, record = turn.header, turn.record
    return written.controller_epoch < header.controller_epoch and record.mzxid > header.epoch_zxid >= 0


def _values(before: LeaderAndIsr | None, written: LeaderAndIsr) -> tuple[str, ...]:
    now = f"written: {_value(written)}"
    return (now,) if before is None else (f"before or foretold: {_value(before)}", now)


def _value(value: LeaderAndIsr) -> str:
    return (
        f"leader {value.leader}, leader epoch {value.leader_epoch}, ISR {list(value.isr)}, controller epoch "
        f"{value.controller_epoch}, version {value.partition_epoch}"
    )
