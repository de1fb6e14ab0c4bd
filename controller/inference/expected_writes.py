"""Matching of written states with expected writes.

A written state may be the result of several expected writes, of one write out of order, or of a write after ISR changes
that were never read. A state that no expected write gives is left to `partition_state`.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator
from itertools import permutations
from typing import TypeGuard

import msgspec
from msgspec.structs import replace

from controller.alerts import occurrences
from controller.contract.ids import BrokerId, TopicPartition
from controller.contract.leader_and_isr import LeaderAndIsr
from controller.inference.led_meanwhile import count_as_online_after
from controller.model.event import Event
from controller.model.leadership import (
    AnyAction,
    BumpLeaderEpoch,
    Create,
    Elect,
    RemoveFromIsr,
    StateChange,
    StateEntry,
    StopEntry,
    Write,
    fold,
)
from controller.model.mutable_state import MutableState
from controller.model.topics import OverdueElection, Partition
from controller.rules.states import PartitionState
from controller.says.alert_kinds import kinds
from controller.says.alert_kinds.divergences import Disagreement
from controller.transaction.pending_events import PendingEvents
from controller.transaction.transaction import Transaction
from wording.sentences import listed

_Inference = Callable[[Transaction], None]  # a possible action of the controller, run on a trial

# At most this number of removals from one partition's ISR are tried in every order. More do not happen at once.
_PERMUTED_REMOVALS = 4


def match_expected_write(tx: Transaction, tp: TopicPartition, written: LeaderAndIsr) -> bool:
    """Settle the expected writes that give the written state. Return False if there are no such writes."""
    prune(tx, tp)
    partition = tx.state.partition(tp)
    if partition is None or not partition.write_due:
        return False
    writes = tuple(action for action in partition.queue if isinstance(action, Write))
    own = tuple(write for write in writes if tx.events.open_event(write.event).epoch == written.controller_epoch)
    for done in _candidates(own or writes, partition.zk_state, written):
        queue = _settle(tx, tp, partition, done, written)
        cached = _cached_after(tx, partition, done[-1])
        tx.state.put_partition(tp, replace(partition, zk_state=written, queue=queue, cached=cached))
        prune(tx, tp)
        return True
    return False


def match_under(tx: Transaction, rule: str, tp: TopicPartition, written: LeaderAndIsr, infer: _Inference) -> bool:
    """Take an inference, with all its consequences, if it makes the written state an expected state.

    Return False if the written state stays unexpected.
    """
    trial = tx.fork()
    with trial.events.inferring(rule):
        infer(trial)
    if not match_expected_write(trial, tp, written):
        return False
    tx.adopt(trial)
    tx.state.count_write(inferred_by=rule)
    return True


def count_isr_change(state: MutableState, before: tuple[BrokerId, ...], after: tuple[BrokerId, ...]) -> list[BrokerId]:
    """Count an ISR change as a shrink, an expansion, or both. Return the replicas that joined."""
    if [member for member in before if member not in after]:
        state.count(state.happened.isr_changes, "shrink")
    joined = [member for member in after if member not in before]
    if joined:
        state.count(state.happened.isr_changes, "expand")
    return joined


def _candidates(
    writes: tuple[Write, ...], zk_state: LeaderAndIsr | None, written: LeaderAndIsr
) -> Iterator[tuple[Write, ...]]:
    """Yield the sequences of writes that give the written state, the likeliest first."""
    epoch = written.controller_epoch
    # If values were overwritten before they were read, the state is the result of the first few writes together.
    for end in range(1, len(writes) + 1):
        if _gives(writes[:end], zk_state, written):
            yield writes[:end]
    # A batch's removals come in the order of the controller's hash maps, so one comes alone, or several in any order.
    yield from ((write,) for write in writes[1:] if _gives((write,), zk_state, written))
    removals = [write for write in writes if isinstance(write, RemoveFromIsr)][:_PERMUTED_REMOVALS]
    for size in range(2, len(removals) + 1):
        yield from (chosen for chosen in permutations(removals, size) if _gives(chosen, zk_state, written))
    if zk_state is None or written.partition_epoch - zk_state.partition_epoch < 2:
        return
    # The data version grew by more than the writes, so the leader's ISR changes before or after them were missed.
    for end in range(1, len(writes) + 1):
        value = fold(writes[:end], zk_state, epoch)
        same_leadership = value is not None and (value.leader, value.leader_epoch) == (
            written.leader,
            written.leader_epoch,
        )
        leaving = {write.replica for write in writes[:end] if isinstance(write, RemoveFromIsr)}
        before = replace(zk_state, isr=tuple(m for m in zk_state.isr if m in written.isr or m in leaving))
        if same_leadership or _gives(writes[:end], before, written):
            yield writes[:end]


def _gives(writes: tuple[Write, ...], before: LeaderAndIsr | None, written: LeaderAndIsr) -> bool:
    """Return whether the writes give the written state, and the last write is needed for the result."""
    value = before
    for write in writes[:-1]:
        value = write.apply(value, written.controller_epoch) or value
    last = writes[-1].apply(value, written.controller_epoch)
    return last is not None and last.same_write(written)


def _cached_after(tx: Transaction, partition: Partition, last: Write) -> LeaderAndIsr | None:
    """Return the controller's cached state after a write.

    Up to 2.3 an increment of the leader epoch alone did not change the cached state.
    """
    if tx.events.open_event(last.event).epoch < tx.header.controller_epoch:
        return partition.cached or partition.zk_state  # a deposed controller wrote
    if not isinstance(last, BumpLeaderEpoch) or tx.header.profile.bump_refreshes_cache:
        return None
    later = partition.queue[partition.queue.index(last) :]
    read_again = any(isinstance(action, StateChange) and action.takes_replica_offline for action in later)
    return None if read_again else partition.cached or partition.zk_state


def _settle(
    tx: Transaction, tp: TopicPartition, partition: Partition, done: tuple[Write, ...], written: LeaderAndIsr
) -> tuple[AnyAction, ...]:
    """Return the queue without the settled writes. Actions between two writes keep the state after the first."""
    for write in done:
        tx.events.settle(write, seen=True)
        event = tx.events.open_event(write.event)
        if isinstance(write, Create) and event.may_not_know in write.isr:
            event.detail = None  # the controller knows the broker
        if isinstance(write, RemoveFromIsr) and event.epoch == tx.header.term.epoch:
            tx.header.term.note_removal()
    value = partition.zk_state
    for write in done:
        _count_election(tx.state, tp, write, value)
        value = write.apply(value, written.controller_epoch) or value
    if value is not None and value.isr != written.isr:
        count_isr_change(tx.state, value.isr, written.isr)
    writes = tuple(action for action in partition.queue if isinstance(action, Write))
    if writes[: len(done)] == done:
        queue = _frozen(tx, partition, done, written)
    else:
        queue = tuple(action for action in partition.queue if action not in done)
    if tx.header.profile.sends_to_live_brokers_only:
        return queue
    return _with_last_removal_sent(
        tx.events, queue, done[-1], fold(done[:-1], partition.zk_state, written.controller_epoch)
    )


def _with_last_removal_sent(
    events: PendingEvents, queue: tuple[AnyAction, ...], last: Write, before: LeaderAndIsr | None
) -> tuple[AnyAction, ...]:
    """Return the queue after a removal.

    A removal's state is sent to all brokers but the departed broker, and replaces the entry of an earlier removal. So
    if brokers failed together, the last of these is sent the state before its own removal.
    """
    if not isinstance(last, RemoveFromIsr) or any(
        isinstance(action, RemoveFromIsr) and action.event == last.event for action in queue
    ):
        return queue
    parted: list[AnyAction] = []
    for action in queue:
        if isinstance(action, StateEntry) and action.event == last.event and last.replica in action.brokers:
            others = tuple(broker for broker in action.brokers if broker != last.replica)
            parted.append(replace(action, brokers=(last.replica,), in_metadata=False, value=before))
            events.open_event(last.event).pending += 1
            action = replace(action, brokers=others)
        parted.append(action)
    return tuple(parted)


def _frozen(
    tx: Transaction, partition: Partition, done: tuple[Write, ...], written: LeaderAndIsr
) -> tuple[AnyAction, ...]:
    value, cached = partition.zk_state, partition.cached
    kept: list[AnyAction] = []
    left = len(done)
    waits = False
    for action in partition.queue:
        if isinstance(action, Write):
            waits = waits or not left
            if not left:
                kept.append(action)
                continue
            left -= 1
            last = not left
            value = written if last else action.apply(value, written.controller_epoch) or value
            cached = _cached_after(tx, partition, action) if last else None
        elif waits or isinstance(action, StopEntry):
            kept.append(action)
        else:
            lags = isinstance(action, StateEntry) and not action.read
            frozen = action.value if left else None
            kept.append(msgspec.structs.replace(action, value=frozen or (cached if lags else None) or value))
    return tuple(kept)


def _count_election(state: MutableState, tp: TopicPartition, action: Write, before: LeaderAndIsr | None) -> None:
    if isinstance(action, Elect) and before is not None:
        elected = action.choose(before.isr)
        if elected is not None and elected.unclean:
            state.count(state.happened.elections, f"Unclean{action.strategy.value}")
            had = listed(before.isr) if before.isr else "its last in-sync replicas"  # up to 1.0 an ISR may be empty
            cause = (
                f"{tp} may have lost records that only {had} had, up to leader epoch {before.leader_epoch}: broker "
                f"{elected.leader} became leader without being in sync"
            )
            occurrences.note(state, kinds.UNCLEAN_ELECTION, cause, about=str(tp))
        else:
            state.count(state.happened.elections, action.strategy.value)


def prune(
    tx: Transaction, tp: TopicPartition, joined: Collection[BrokerId] = (), *, keeps_elections: bool = False
) -> None:
    """Adapt the expected writes to the state now in ZooKeeper. `joined` are replicas that have just got in sync.

    A write that has become needless is dropped. If it is an election, its change to Online is taken back. The
    failed leader, which the election would have dropped, then leaves the ISR by its own write. So does a replica that
    was to go offline without a write, and got into the ISR before that. `keeps_elections` keeps an election without a
    candidate, because the leader may let its followers join again before the controller reads the ISR.
    """
    partition = tx.state.partition(tp)
    if partition is None or not (partition.write_due or (joined and partition.queue)):
        return
    value, kept, in_vain = partition.zk_state, list[AnyAction](), False
    failed, needless = set[int](), set[int]()  # events whose election failed, and replicas that need not leave
    undone: list[AnyAction] = []
    for action in partition.queue:
        if isinstance(action, Write):
            after = action.apply(value, tx.header.controller_epoch)
            in_vain = in_vain or (after is None and isinstance(action, Elect))
            if after is None and not (keeps_elections and isinstance(action, Elect)):
                tx.events.settle(action, seen=False)
                failed.update([action.event] if isinstance(action, Elect) else [])
                needless.update([action.replica] if isinstance(action, RemoveFromIsr) else [])
                continue
            value = after or value
        elif action.event in failed and isinstance(action, StateChange) and action.replica is None and action.written:
            undone.append(action)
        elif isinstance(action, StateChange) and action.replica in needless:
            action = replace(action, written=False)
        elif _leaves_isr(action, value) and (in_vain or action.replica in joined):
            kept.append(removal := tx.events.removal_of(action))
            value = removal.apply(value, tx.header.controller_epoch)
            action = replace(action, written=True)
        kept.append(action)
    if kept != list(partition.queue):
        tx.state.put_partition(tp, replace(partition, queue=tuple(kept)))
    tx.events.take_back(tp, undone.__contains__)


def _note_missing(tx: Transaction, tp: TopicPartition, event_id: int, writes: int) -> None:
    if tx.events.open_event(event_id).epoch < tx.header.term.epoch:
        return  # a deposed controller's write, which a newer controller has replaced or will replace
    sentence = tx.events.open_event(event_id).sentence
    cause = f"the controller never wrote the state of {tp} but finished later events. It was due for {sentence}"
    occurrences.note(tx.state, Disagreement.WRITE_NEVER_CAME, cause, about=str(tp), times=writes)


def _leaves_isr(action: AnyAction, value: LeaderAndIsr | None) -> TypeGuard[StateChange]:
    """Return whether the action takes a replica offline without a write, although the ISR has the replica."""
    if not isinstance(action, StateChange) or value is None:
        return False
    return action.takes_replica_offline and not action.written and action.replica in value.isr


def give_up_on_overtaken(tx: Transaction) -> None:
    """Give up expected writes that are missing while later events write. The controller did not need them.

    Otherwise one wrong expectation would hold up all later events until the term ends.
    """
    header = tx.header
    for event_id, event in list(header.events.items()):
        if event.writes_due and _is_over(tx, event):
            waiting = tx.certainty.waiting(event)
            for tp in waiting:
                give_up(tx, tp, event_id)
            count_as_online_after(tx, event, waiting)


def _is_over(tx: Transaction, event: Event) -> bool:
    """Return whether the event's missing writes will not come any more."""
    header = tx.header
    if event.epoch < header.term.epoch and event.controller == header.term.broker:
        return True  # a deposed controller resumed it, and finished its queue before its new term
    return event.id < header.last_written_event and tx.certainty.has_written_all(event)


def give_up(tx: Transaction, tp: TopicPartition, event_id: int) -> None:
    """Give up the event's expected writes of a partition, with their dependent actions."""
    partition = tx.state.partition(tp)
    assert partition is not None, f"{tp} waits, and is not there"
    if any(action.event == event_id and isinstance(action, Create) for action in partition.queue):
        _note_missing(tx, tp, event_id, 1)
        _give_up_creation(tx.events, tp, event_id)
        prune(tx, tp)
        return
    missing = [action for action in partition.queue if action.event == event_id and isinstance(action, Write)]
    if not missing:
        return
    _note_missing(tx, tp, event_id, len(missing))
    for write in missing:
        tx.events.settle(write, seen=False)
    tx.state.put_partition(
        tp, replace(partition, queue=tuple(action for action in partition.queue if action not in missing))
    )
    for write in missing:
        if isinstance(write, Elect):
            _pass_over(tx, tp, write)


def _pass_over(tx: Transaction, tp: TopicPartition, election: Elect) -> None:
    """Take back the actions of an election that the controller did not do.

    If the partition's leader is not live, the controller owes the election from then on. If ZooKeeper names a live
    leader, the controller did not take the partition offline either.
    """
    partition = tx.state.topics[tp.topic].partitions[tp.partition]
    is_led = partition.zk_state is not None and tx.state.can_lead(partition.zk_state.leader, partition)
    tx.events.take_back(
        tp,
        lambda action: _belongs_to_election(action, election) or (is_led and _takes_offline(action, election)),
    )
    partition = tx.state.topics[tp.topic].partitions[tp.partition]
    tx.state.put_partition(tp, replace(partition, passed_over=_owed(tx, partition, election)))


def _belongs_to_election(action: AnyAction, election: Elect) -> bool:
    """Return whether an action is the election's change to Online, or a request that its event sends after it."""
    if action.event != election.event:
        return False
    if isinstance(action, StateChange):
        return action.replica is None and action.at_batch == election.at_batch
    return isinstance(action, (StateEntry, StopEntry)) and action.at_batch > election.at_batch


def _takes_offline(action: AnyAction, election: Elect) -> bool:
    """Return whether an action is the change to Offline that made the election necessary."""
    if not isinstance(action, StateChange) or action.replica is not None:
        return False
    return action.event == election.event and action.to_state == PartitionState.OFFLINE


def _owed(tx: Transaction, partition: Partition, election: Elect) -> OverdueElection | None:
    value, header = partition.zk_state, tx.header
    elected = election.choose(value.isr) if value is not None else None
    if value is None or elected is None or tx.state.is_online(value.leader, partition):
        return None
    return OverdueElection(
        elected.leader, value.leader_epoch, header.controller_epoch, tx.events.open_event(election.event).time_ms
    )


def _give_up_creation(events: PendingEvents, tp: TopicPartition, event_id: int) -> None:
    """Take back a creation.

    The controller has not handled it, or the partition stays New without a live replica.
    """
    handled = events.open_event(event_id).begun
    events.take_back(tp, lambda action: action.event == event_id and not (handled and _is_done_unwritten(action)))


def _is_done_unwritten(action: AnyAction) -> bool:
    return isinstance(action, StateChange) and not action.written
