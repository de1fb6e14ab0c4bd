"""Which of the expected writes a written value shows.

Here belongs the matching: a write may show several that came before it, one out of its turn, or one behind ISR changes
that were never read. What no expected write explains is left to `explanation`.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from itertools import permutations

import msgspec

from controller.alerts import kinds, occurrences
from controller.alerts.affected import listed
from controller.model.brokers import NO_BROKER
from controller.model.leadership import (
    AnyAction,
    BumpLeaderEpoch,
    Create,
    Elect,
    LeaderAndIsr,
    RemoveFromIsr,
    StateChange,
    StateEntry,
    StopEntry,
    Write,
    fold,
)
from controller.model.topics import OverdueElection, Partition, TopicPartition
from controller.rules.states import PartitionState
from controller.transaction.pending_events import before_state_change
from controller.transaction.transaction import UNFINISHED_MS, Transaction, replace

# So many removals of one partition are tried in every order; more replicas than that do not leave at once.
_PERMUTED_REMOVALS = 4


def match_expected_write(tx: Transaction, tp: TopicPartition, written: LeaderAndIsr) -> bool:
    """Let go of the expected writes that led to the written value; False if none did."""
    partition = tx.partition(tp)
    if partition is None or not partition.write_due:
        return False
    writes = tuple(step for step in partition.queue if isinstance(step, Write))
    if written.controller_epoch < tx.header.controller_epoch:
        own = tuple(write for write in writes if tx.open_event(write.event).epoch == written.controller_epoch)
        writes = own or writes
    for done in _candidates(writes, partition.zk_state, written):
        queue = _settle(tx, tp, partition, done, written)
        known = _known_after(tx, partition, done[-1])
        tx.put_partition(tp, replace(partition, zk_state=written, queue=queue, cached=known))
        prune(tx, tp)
        return True
    return False


def count_isr_change(tx: Transaction, before: tuple[int, ...], after: tuple[int, ...]) -> None:
    """Count an ISR change as a shrink, an expansion, or both."""
    then, now = frozenset(before), frozenset(after)
    if not then <= now:
        tx.count("isr_changes/shrink")
    if not now <= then:
        tx.count("isr_changes/expand")


def _candidates(
    writes: tuple[Write, ...], zk_state: LeaderAndIsr | None, written: LeaderAndIsr
) -> Iterator[tuple[Write, ...]]:
    """The sets of writes that give the value, the likeliest first."""
    epoch = written.controller_epoch
    # Values overwritten before they were read leave one write for several: a prefix.
    for end in range(1, len(writes) + 1):
        if _gives(writes[:end], zk_state, written):
            yield writes[:end]
    # The order of a batch's removals is known only to the controller's hash maps: one alone, or some in another order.
    yield from ((write,) for write in writes[1:] if _gives((write,), zk_state, written))
    removals = [write for write in writes if isinstance(write, RemoveFromIsr)][:_PERMUTED_REMOVALS]
    for size in range(2, len(removals) + 1):
        yield from (chosen for chosen in permutations(removals, size) if _gives(chosen, zk_state, written))
    if zk_state is None or written.partition_epoch - zk_state.partition_epoch < 2:
        return
    # The data version grew by more than the writes: ISR changes of the leader behind or in front of them were missed.
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
    """Whether the writes give the value, none of them in vain."""
    value = before
    for write in writes[:-1]:
        value = write.apply(value, written.controller_epoch) or value
    last = writes[-1].apply(value, written.controller_epoch)
    return last is not None and last.same_write(written)


def _known_after(tx: Transaction, partition: Partition, last: Write) -> LeaderAndIsr | None:
    """The acting controller's own copy after a write: up to 2.3 a mere bump of the leader epoch did not reach it."""
    if tx.open_event(last.event).epoch < tx.header.controller_epoch:
        return partition.cached or partition.zk_state  # a deposed controller wrote
    if not isinstance(last, BumpLeaderEpoch) or tx.header.profile.bump_refreshes_cache:
        return None
    later = partition.queue[partition.queue.index(last) :]
    read_again = any(isinstance(step, StateChange) and step.takes_replica_offline for step in later)
    return None if read_again else partition.cached or partition.zk_state


def _settle(
    tx: Transaction, tp: TopicPartition, partition: Partition, done: tuple[Write, ...], written: LeaderAndIsr
) -> tuple[AnyAction, ...]:
    """The queue without what was written; what stood between the writes keeps the value it stood behind."""
    for write in done:
        tx.settle(write, seen=True)
        event = tx.open_event(write.event)
        if isinstance(write, Create) and event.may_not_know in write.isr:
            event.may_not_know = NO_BROKER  # the controller knows it
    value = partition.zk_state
    for write in done:
        _count_election(tx, tp, write, value)
        value = write.apply(value, written.controller_epoch) or value
    if value is not None and value.isr != written.isr:
        count_isr_change(tx, value.isr, written.isr)
    writes = tuple(step for step in partition.queue if isinstance(step, Write))
    if writes[: len(done)] == done:
        queue = _frozen(tx, partition, done, written)
    else:
        queue = tuple(step for step in partition.queue if step not in done)
    if tx.header.profile.sends_to_live_brokers_only:
        return queue
    return _last_to_leave_told(tx, queue, done[-1], fold(done[:-1], partition.zk_state, written.controller_epoch))


def _last_to_leave_told(
    tx: Transaction, queue: tuple[AnyAction, ...], last: Write, before: LeaderAndIsr | None
) -> tuple[AnyAction, ...]:
    """The queue after a removal: of brokers that died together the last is told what was written before its own.

    Each removal is told to all but the broker that leaves, and a later one replaces what an earlier one was to say.
    """
    if not isinstance(last, RemoveFromIsr) or any(
        isinstance(step, RemoveFromIsr) and step.event == last.event for step in queue
    ):
        return queue
    parted: list[AnyAction] = []
    for step in queue:
        if isinstance(step, StateEntry) and step.event == last.event and last.replica in step.brokers:
            others = tuple(broker for broker in step.brokers if broker != last.replica)
            parted.append(replace(step, brokers=(last.replica,), in_metadata=False, value=before))
            tx.open_event(last.event).pending += 1
            step = replace(step, brokers=others)
        parted.append(step)
    return tuple(parted)


def _frozen(
    tx: Transaction, partition: Partition, done: tuple[Write, ...], written: LeaderAndIsr
) -> tuple[AnyAction, ...]:
    value, known = partition.zk_state, partition.cached
    kept: list[AnyAction] = []
    left = len(done)
    waits = False
    for step in partition.queue:
        if isinstance(step, Write):
            waits = waits or not left
            if not left:
                kept.append(step)
                continue
            left -= 1
            last = not left
            value = written if last else step.apply(value, written.controller_epoch) or value
            known = _known_after(tx, partition, step) if last else None
        elif waits or isinstance(step, StopEntry):
            kept.append(step)
        else:
            lags = isinstance(step, StateEntry) and not step.read
            frozen = step.value if left else None
            kept.append(msgspec.structs.replace(step, value=frozen or (known if lags else None) or value))
    return tuple(kept)


def _count_election(tx: Transaction, tp: TopicPartition, step: Write, before: LeaderAndIsr | None) -> None:
    if isinstance(step, Elect) and before is not None:
        elected = step.choose(before.isr)
        if elected is not None and elected.unclean:
            tx.count(f"elections/Unclean{step.strategy.value}")
            had = listed(before.isr) if before.isr else "its last in-sync replicas"  # up to 1.0 an ISR may be empty
            cause = (
                f"records of {tp} that only {had} had are lost, up to leader epoch "
                f"{before.leader_epoch}: broker {elected.leader} was elected though not in sync"
            )
            occurrences.note(tx, kinds.UNCLEAN_ELECTION, cause, about=str(tp))
        else:
            tx.count(f"elections/{step.strategy.value}")


def prune(tx: Transaction, tp: TopicPartition, joined: Collection[int] = ()) -> None:
    """Take the expected writes as they follow from what is confirmed now; `joined` are replicas just in sync.

    One that would write nothing any more is dropped; where that is an election, its move to Online is taken back, and
    the dead leader, which the election would have dropped, leaves the ISR by a write of its own. So does a replica that
    was to go offline without one, and got into the ISR before that.
    """
    partition = tx.partition(tp)
    if partition is None or not (partition.write_due or (joined and partition.queue)):
        return
    value, kept, failed = partition.zk_state, list[AnyAction](), False
    needless: set[int] = set()
    for step in partition.queue:
        if isinstance(step, Write):
            after = step.apply(value, tx.header.controller_epoch)
            if after is None:
                tx.settle(step, seen=False)
                failed = failed or isinstance(step, Elect)
                needless.update([step.replica] if isinstance(step, RemoveFromIsr) else [])
                continue
            value = after
        elif failed and isinstance(step, StateChange) and step.replica is None and step.written:
            tx.withdraw(tp, step)
            partition = before_state_change(partition, step)
            continue
        elif isinstance(step, StateChange) and step.replica in needless:
            step = replace(step, written=False)
        elif (
            isinstance(step, StateChange) and (failed or step.replica in joined) and value and _leaves_isr(step, value)
        ):
            removal = tx.removal_of(step)
            value = removal.apply(value, tx.header.controller_epoch)
            kept.append(removal)
            step = replace(step, written=True)
        kept.append(step)
    if kept != list(partition.queue):
        tx.put_partition(tp, replace(partition, queue=tuple(kept)))


def _note_missing(tx: Transaction, tp: TopicPartition, event_id: int, writes: int) -> None:
    cause = f"the controller never wrote {tp}, and has done what came later: due for {tx.open_event(event_id).sentence}"
    occurrences.note(tx, kinds.WRITE_NEVER_CAME, cause, about=str(tp), times=writes)


def _leaves_isr(move: StateChange, value: LeaderAndIsr) -> bool:
    return move.takes_replica_offline and not move.written and move.replica in value.isr


def give_up_on_overtaken(tx: Transaction) -> None:
    """Expected writes that do not come while later events write are not waited for any more: they were not needed.

    Without that, one wrong expectation would hold up everything behind it until the term ends.
    """
    header = tx.header
    for event_id, event in list(header.events.items()):
        overtaken = event.writes_due and event_id < header.last_written_event
        if overtaken and header.time_ms - event.time_ms > UNFINISHED_MS:
            for tp in tx.waiting(event):
                _give_up(tx, tp, event_id)


def _give_up(tx: Transaction, tp: TopicPartition, event_id: int) -> None:
    partition = tx.partition(tp)
    assert partition is not None, f"{tp} waits, and is not there"
    if any(step.event == event_id and isinstance(step, Create) for step in partition.queue):
        _note_missing(tx, tp, event_id, 1)
        _give_up_creation(tx, tp, partition, event_id)
        prune(tx, tp)
        return
    missing = [step for step in partition.queue if step.event == event_id and isinstance(step, Write)]
    if not missing:
        return
    _note_missing(tx, tp, event_id, len(missing))
    for write in missing:
        tx.settle(write, seen=False)
        if isinstance(write, Elect):
            partition = _passed_over(tx, tp, partition, write)
    left = tuple(step for step in partition.queue if step not in missing)
    tx.put_partition(tp, replace(partition, queue=left))


def _passed_over(tx: Transaction, tp: TopicPartition, partition: Partition, election: Elect) -> Partition:
    """The partition without what would have come of an election: nobody was elected, and no broker was sent anything.

    Where its leader is away, the controller owes the election from then on.
    """
    kept: list[AnyAction] = []
    state: int | None = None  # in which the partition stayed
    for step in partition.queue:
        if _comes_of(step, election):
            tx.withdraw(tp, step)
            state = step.from_state if isinstance(step, StateChange) else state
            continue
        if state is not None and isinstance(step, StateChange) and step.replica is None:
            step, state = replace(step, from_state=state), None
        kept.append(step)
    stayed = partition.state if state is None else PartitionState(state)
    return replace(partition, queue=tuple(kept), state=stayed, passed_over=_owed(tx, partition, election))


def _comes_of(step: AnyAction, election: Elect) -> bool:
    """Whether a step is the election's move to Online, or a request that its event sends behind it."""
    if step.event != election.event:
        return False
    if isinstance(step, StateChange):
        return step.replica is None and step.at_batch == election.at_batch
    return isinstance(step, (StateEntry, StopEntry)) and step.at_batch > election.at_batch


def _owed(tx: Transaction, partition: Partition, election: Elect) -> OverdueElection | None:
    value, header = partition.zk_state, tx.header
    elected = election.choose(value.isr) if value is not None else None
    if value is None or elected is None or tx.is_online(value.leader, partition):
        return None
    return OverdueElection(
        elected.leader, value.leader_epoch, header.controller_epoch, tx.open_event(election.event).time_ms
    )


def _give_up_creation(tx: Transaction, tp: TopicPartition, partition: Partition, event_id: int) -> None:
    """Nobody has taken the partition up; or others were created with it, and it stays New: none may lead it yet."""
    if not tx.open_event(event_id).begun:
        tx.undo_in(tp, event_id)
        return
    kept = []
    for step in partition.queue:
        if step.event == event_id and (not isinstance(step, StateChange) or step.written):
            tx.withdraw(tp, step)
            partition = before_state_change(partition, step) if isinstance(step, StateChange) else partition
        else:
            kept.append(step)
    tx.put_partition(tp, replace(partition, queue=tuple(kept)))
