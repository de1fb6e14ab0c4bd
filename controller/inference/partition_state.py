"""Partition states in ZooKeeper, compared with the states that the controller was expected to write.

A written state matches expected writes, is a leader's ISR change, or is explained by a rule of inference. Each
hypothesis runs the controller's own handlers on a trial of the transaction, and Kontrast takes it only if they write
exactly the written state. Otherwise the write stays unexplained, without a guess. The observed state always wins.
States that a KRaft controller writes are taken as they are, because its actions are not predicted.
"""

from __future__ import annotations

from collections.abc import Iterator

from msgspec.structs import replace

from controller.alerts import occurrences
from controller.contract.ids import BrokerId, TopicPartition
from controller.contract.leader_and_isr import LeaderAndIsr
from controller.contract.znodes import StateZnode
from controller.events import (
    controller_failover,
    deletion_requests,
    fenced_controller,
    migration,
    topic_deletion,
    unfenced_controller,
)
from controller.inference import deferral, expected_writes, isr_change, topic_assignment
from controller.inference.expected_writes import count_isr_change, match_expected_write
from controller.inference.hypotheses.observed_write import Hypothesis, ObservedWrite, WideHypothesis
from controller.inference.hypotheses.table import RULES, Rule
from controller.inference.isr_change import change_isr, match_across_unread_isr_change
from controller.inference.led_meanwhile import let_stay
from controller.inference.read_by_load import shows_failure_read
from controller.inference.read_together import shows_both_read
from controller.model.context import FOLLOWING
from controller.model.event import EventKind
from controller.model.leadership import StateChange, Write, state_in
from controller.model.mutable_state import MutableState
from controller.model.topics import Partition
from controller.rules.assignment import UNNAMED
from controller.rules.states import PartitionState
from controller.says.alert_kinds import kinds
from controller.says.alert_kinds.divergences import Disagreement
from controller.says.alert_kinds.kind import AlertKind
from controller.transaction.pending_events import before_state_change
from controller.transaction.transaction import Transaction
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


def state_written(tx: Transaction, tp: TopicPartition, znode: StateZnode, version: int) -> None:
    """Apply the content of a partition's state znode."""
    if tx.state.partition(tp) is None:
        deletion_requests.state_written(tx, tp)
    partition = tx.state.partition(tp)
    if partition is None:
        cause = f"{tp} has a state but is not in its topic's assignment: the topic may be half deleted, or was edited"
        occurrences.note(tx.state, Disagreement.ORPHAN_STATE, cause, about=str(tp))
        is_its_own = znode.controller_epoch == tx.header.controller_epoch
        topic = tx.state.topic(tp.topic)
        if tx.header.phase is FOLLOWING or not is_its_own or topic is None or not topic.exists:
            return
        # The controller goes on with a partition that a deposed one, or an edit, took out of the topic's znode.
        partition = Partition(tuple(znode.isr), zk_assignment=UNNAMED)
    written = state_in(znode, version)
    before = partition.zk_state
    if before == written:
        return
    if before is None or before.leader != written.leader:
        let_stay(tx, (written.leader,))  # the controller never elects a broker that is shutting down
        partition = tx.state.partition(tp) or partition
    if tx.header.phase is not FOLLOWING:
        tx.state.put_partition(tp, loaded(partition, written, tx.state.live))
        return
    if partition.offline_dirs:
        partition = _where_elected(partition, written)
        tx.state.put_partition(tp, partition)
    _follow(tx, tp, partition, written)


def loaded(partition: Partition, written: LeaderAndIsr, live: frozenset[BrokerId]) -> Partition:
    """Return the partition with a state of a complete read, if all brokers live already as its end sets it up."""
    if partition.offline_dirs:
        partition = _where_elected(partition, written)
    if written.leader in live and live.issuperset(partition.replicas):
        return replace(partition, replica_states=None, state=PartitionState.ONLINE, zk_state=written)
    return replace(partition, zk_state=written)


def _where_elected(partition: Partition, written: LeaderAndIsr) -> Partition:
    """Return the partition without a failed log directory of a new leader, because a controller elects none there."""
    if partition.zk_state is not None and partition.zk_state.leader == written.leader:
        return partition
    return partition.with_dirs_back((written.leader,))


def _follow(tx: Transaction, tp: TopicPartition, partition: Partition, written: LeaderAndIsr) -> None:
    """Compare a written state with the expected states, and count how the write is explained."""
    before = partition.zk_state
    tx.header.read.is_ahead = False
    note_flaws(tx.state, tp, partition, written)
    if tx.header.led_by_kraft:
        state_written_by_kraft(tx, tp, partition, written)
        return
    deposed = unfenced_controller.resumed_by(tx.state, before, written) if tx.header.former.unfenced else None
    if deposed is not None:
        unfenced_controller.resume(tx, deposed)
        partition = tx.state.partition(tp) or partition
    if _was_reassigned_unseen(partition, written):
        topic_assignment.adopt_zk_assignment(tx, tp, partition, written)
        tx.state.count_write(explained=False)
    elif before is not None and before.leader_epoch == written.leader_epoch and before.leader == written.leader:
        change_isr(tx, tp, partition, written)  # because a write of the controller would have raised the leader epoch
    elif not tx.events.is_idle and (shows_both_read(tx, tp, written) or shows_failure_read(tx, tp, written)):
        topic_deletion.written_before_asking(tx.state, tp.topic)
    elif not tx.events.is_idle and match_expected_write(tx, tp, written):
        topic_deletion.written_before_asking(tx.state, tp.topic)
        tx.state.count_write()
        if before is None and written.controller_epoch < tx.header.term.epoch:
            controller_failover.load_again(tx, tp)
    elif before is not None and match_across_unread_isr_change(tx, tp, before, written):
        tx.state.count_write()
    else:
        explain(tx, tp, written)


def _was_reassigned_unseen(partition: Partition, written: LeaderAndIsr) -> bool:
    """Return whether the topic's znode shows a reassignment whose beginning was not read, and not an edit.

    Only after a reassignment the ISR equals the assignment in the znode.
    """
    before, assigned = partition.zk_state, partition.zk_assignment
    if (
        before is None
        or assigned is None
        or partition.reassigning
        or partition.pending_assignments
        or assigned.is_being_reassigned
    ):
        return False
    changed = set(assigned.replicas) != set(partition.replicas)
    return changed and written.leader_epoch > before.leader_epoch and set(written.isr) == set(assigned.replicas)


def state_removed(tx: Transaction, tp: TopicPartition) -> None:
    """Remove a partition's state, whose znode vanished. A topic's deletion removes the states first."""
    topic, partition = tx.state.topic(tp.topic), tx.state.partition(tp)
    if topic is None or partition is None or (partition.zk_state is None and not partition.unreadable):
        return
    if topic.queued_for_deletion and tx.header.phase is FOLLOWING and tx.header.acting:
        topic_deletion.completed(tx, tp.topic)
        partition = tx.state.partition(tp) or partition
    for action in partition.queue:
        if isinstance(action, Write):
            tx.events.settle(action, seen=False)
    kept = tuple(action for action in partition.queue if not isinstance(action, Write))
    tx.state.put_partition(tp, replace(partition, zk_state=None, queue=kept, unreadable=False))


def state_written_by_kraft(tx: Transaction, tp: TopicPartition, partition: Partition, written: LeaderAndIsr) -> None:
    """Take a state that KRaft wrote, and its evidence of brokers that are not registered in ZooKeeper."""
    before = partition.zk_state
    tx.header.migration.alive_ms = tx.header.time_ms
    if before is not None and before.isr != written.isr:
        count_isr_change(tx.state, before.isr, written.isr)
    migration.infer_modes(tx, partition, before, written)
    migration.show(tx, tp, replace(partition, zk_state=written, queue=(), passed_over=None, cached=None))


def explain(tx: Transaction, tp: TopicPartition, written: LeaderAndIsr) -> None:
    """Take the first hypothesis that reproduces the write.

    Otherwise accept the observed state, and count a divergence.
    """
    partition = tx.state.partition(tp)
    assert partition is not None, f"{tp} was written, and is not known"
    write = ObservedWrite(tp, partition, partition.zk_state, written)
    if not (fenced_controller.acts(tx.state) and not _hides_writes(tx, write) and _is_explained(tx, write)):
        _accept(tx, tp, partition, written)


def _hides_writes(tx: Transaction, write: ObservedWrite) -> bool:
    """Return whether a gap of the watch hides other writes of the state, so that no rule can be tried."""
    first = -1 if write.before is None else write.before.partition_epoch
    return tx.state.record.resync and write.written.partition_epoch != first + 1


def _is_explained(tx: Transaction, write: ObservedWrite) -> bool:
    in_vain = set[int]()
    for rule, hypothesis, deferred in _trials(tx, write):
        alone = hypothesis.alone if isinstance(hypothesis, WideHypothesis) else hypothesis
        if alone is hypothesis or _explains(tx.fork(), rule, alone, write, deferred):
            trial = tx.fork()
            if _explains(trial, rule, hypothesis, write, deferred):
                tx.adopt(trial)
                tx.state.count_write(inferred_by=rule.name)
                return True
        in_vain.update(deferred)
    deferral.note_vain(tx, sorted(in_vain))
    return False


def _trials(tx: Transaction, write: ObservedWrite) -> Iterator[tuple[Rule, Hypothesis, list[int]]]:
    """Yield each hypothesis by its rule, first with the events that may come after it."""
    deferrable = deferral.deferrable(tx)
    asks = tx.header.settings.controlled_shutdown_enable
    for rule in (rule for rule in RULES if asks or not rule.assumes_controlled_shutdown):
        for hypothesis in rule.propose(tx, write):
            for deferred in [deferrable, []] if deferrable else [[]]:
                yield rule, hypothesis, deferred


def _explains(tx: Transaction, rule: Rule, hypothesis: Hypothesis, write: ObservedWrite, deferred: list[int]) -> bool:
    """Return whether under the hypothesis the controller writes this state, before it handles the deferred events."""
    tp, before, written = write.tp, write.before, write.written
    # Up to 2.0 a deposed controller is not fenced, so its writes belong to its own term.
    epoch = written.controller_epoch
    with deferral.deferring(tx, deferred), tx.header.in_epoch(epoch), tx.events.inferring(rule.name):
        hypothesis(tx)
    if expected_writes.match_expected_write(tx, tp, written):
        return True
    return before is not None and isr_change.match_across_unread_isr_change(tx, tp, before, written)


def _accept(tx: Transaction, tp: TopicPartition, partition: Partition, written: LeaderAndIsr) -> None:
    if tx.state.record.resync:
        cause = f"partition {tp} was written while Kontrast did not watch"
    else:
        cause = f"partition {tp} was written, but no rule of the controller explains the write"
        note_unexplained(tx.state, tp, partition, written)
        tx.state.count_write(explained=False)
    let_stay(tx, (written.leader,))  # no rule gives the write, so its shutdown was inferred wrongly
    partition = tx.state.partition(tp) or partition
    tx.events.begin(EventKind.UNEXPLAINED, cause)
    for action in reversed(partition.queue):
        tx.events.withdraw(tp, action)
        if isinstance(action, StateChange) and action.replica is None:
            partition = before_state_change(partition, action)
    partition = replace(partition, queue=())
    before = partition.zk_state
    if (
        before is None
        or before.leader != written.leader
        or _state_shown(tx.state, partition, written) != partition.state
    ):
        partition = _in_shown_state(tx, tp, partition, written)
    tx.state.put_partition(tp, replace(partition, zk_state=written))


def _state_shown(state: MutableState, partition: Partition, written: LeaderAndIsr) -> PartitionState:
    return PartitionState.ONLINE if state.can_lead(written.leader, partition) else PartitionState.OFFLINE


def _in_shown_state(tx: Transaction, tp: TopicPartition, partition: Partition, written: LeaderAndIsr) -> Partition:
    """Return the partition in its znode's state, by legal state changes. A partition under deletion stays as it is.

    A written state does not restore a partition that the controller has deleted.
    """
    topic = tx.state.topic(tp.topic)
    if partition.state is PartitionState.NON_EXISTENT and (topic is None or topic.queued_for_deletion):
        return partition
    shown = _state_shown(tx.state, partition, written)
    by_way_of = [PartitionState.NEW] if partition.state is PartitionState.NON_EXISTENT else []
    for state in (*by_way_of, shown):
        tx.events.begin_batch()
        change = StateChange(
            *tx.events.place(), replica=None, from_state=partition.state, to_state=state, written=True, value=written
        )
        partition = tx.events.queue(tp, replace(partition, state=state), change)
    return partition
