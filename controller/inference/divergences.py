"""Alerts about divergences, which are written states that no controller writes, or that differ from the expectation."""

from __future__ import annotations

from controller.alerts import occurrences
from controller.contract.alert_kinds import kinds
from controller.contract.alert_kinds.divergences import Disagreement
from controller.contract.alert_kinds.kind import AlertKind
from controller.contract.ids import BrokerId, TopicPartition
from controller.contract.leader_and_isr import LeaderAndIsr
from controller.model.mutable_state import MutableState
from controller.model.topics import Partition
from wording.sentences import in_order


def note_flaws(state: MutableState, tp: TopicPartition, partition: Partition, written: LeaderAndIsr) -> None:
    """Note a written state that is illegal or that a deposed controller wrote, and count missed changes."""
    before = partition.zk_state
    flaw = _flaw(before, written)
    if flaw is not None:
        cause = f"{tp} has a state that no controller writes: {flaw}. Find out who wrote it"
        occurrences.note(state, Disagreement.ILLEGAL_STATE, cause, about=str(tp), evidence=_values(before, written))
    if before is None:
        return
    missed = written.partition_epoch - before.partition_epoch - 1
    if missed > 0:
        # Missed changes raise no alert, because the newest state is known.
        state.count(state.happened.divergences, "missed_changes", missed)
    if written.leader_epoch > before.leader_epoch and _is_of_deposed(state, written):
        late, present = written.controller_epoch, state.header.controller_epoch
        wrote = f"the controller of epoch {late} wrote {tp} after epoch {present} had begun"
        cause = f"{wrote}: brokers may follow either controller"
        occurrences.note(state, kinds.STALE_CONTROLLER, cause, about=str(tp), evidence=_values(before, written))


def note_unexplained(state: MutableState, tp: TopicPartition, partition: Partition, written: LeaderAndIsr) -> None:
    """Note an unexplained written state, with the predicted state, if any."""
    predicted = partition.value(state.header.controller_epoch) if partition.write_due else None
    kind: AlertKind | Disagreement
    if predicted is None:
        kind = Disagreement.UNEXPLAINED_WRITE
        cause = f"{tp} was written, but no rule of the controller explains the write"
    elif predicted.leader != written.leader:
        kind = kinds.DIFFERENT_LEADER
        cause = f"{tp} got {_led_by(written.leader)}, but the controller's rules give {_led_by(predicted.leader)}"
    else:
        kind = Disagreement.UNEXPECTED_ISR
        cause = f"{tp} got the ISR {in_order(written.isr)}, but the controller's rules give {in_order(predicted.isr)}"
    evidence = _values(predicted or partition.zk_state, written)
    occurrences.note(state, kind, cause, about=str(tp), evidence=evidence)


def _led_by(leader: BrokerId) -> str:
    return "no leader" if leader < 0 else f"leader {leader}"


def _flaw(before: LeaderAndIsr | None, written: LeaderAndIsr) -> str | None:
    if before is not None and written.leader_epoch < before.leader_epoch:
        return f"its leader epoch went back from {before.leader_epoch} to {written.leader_epoch}"
    if written.leader >= 0 and written.leader not in written.isr:
        return f"its leader {written.leader} is not in its ISR ({in_order(written.isr)})"
    return None


def _is_of_deposed(state: MutableState, written: LeaderAndIsr) -> bool:
    """Return whether the write came after a newer controller's epoch.

    The zxid decides, because reads may come in another order.
    """
    header, record = state.header, state.record
    if header.led_by_kraft:
        return False  # KRaft writes its own epoch, which is independent of /controller_epoch
    return written.controller_epoch < header.controller_epoch and record.mzxid > header.term.epoch_zxid >= 0


def _values(before: LeaderAndIsr | None, written: LeaderAndIsr) -> tuple[str, ...]:
    now = f"written: {_value(written)}"
    return (now,) if before is None else (f"before or predicted: {_value(before)}", now)


def _value(value: LeaderAndIsr) -> str:
    return (
        f"leader {value.leader}, leader epoch {value.leader_epoch}, ISR {list(value.isr)}, controller epoch "
        f"{value.controller_epoch}, version {value.partition_epoch}"
    )
