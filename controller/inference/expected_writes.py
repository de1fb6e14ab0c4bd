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
from controller.model.context import NO_BROKER
from controller.model.leadership import (
    AnyStep,
    Bump,
    Create,
    Elect,
    LeaderAndIsr,
    Move,
    Remove,
    StateEntry,
    StopEntry,
    Write,
    fold,
)
from controller.model.topics import Owed, Partition, TopicPartition
from controller.rules.states import PartitionState
from controller.transaction.pending_events import before_move
from controller.transaction.transaction import UNFINISHED_MS, Turn, replace

# So many removals of one partition are tried in every order; more replicas than that do not leave at once.
_PERMUTED_REMOVALS = 4


def confirm(turn: Turn, tp: TopicPartition, written: LeaderAndIsr) -> bool:
    """Let go of the expected writes that led to the written value; False if none did."""
    partition = turn.partition(tp)
    if partition is None or not partition.write_due:
        return False
    writes = tuple(step for step in partition.queue if isinstance(step, Write))
    if written.controller_epoch < turn.header.controller_epoch:
        own = tuple(write for write in writes if turn.open_event(write.event).epoch == written.controller_epoch)
        writes = own or writes
    for done in _candidates(writes, partition.confirmed, written):
        queue = _settle(turn, tp, partition, done, written)
        known = _known_after(turn, partition, done[-1])
        turn.put_partition(tp, replace(partition, confirmed=written, queue=queue, known=known))
        prune(turn, tp)
        return True
    return False


def count_isr_change(turn: Turn, before: tuple[int, ...], after: tuple[int, ...]) -> None:
    """Count an ISR change as a shrink, an expansion, or both."""
    then, now = frozenset(before), frozenset(after)
    if not then <= now:
        turn.count("isr_changes/shrink")
    if not now <= then:
        turn.count("isr_changes/expand")


def _candidates(
    writes: tuple[Write, ...], confirmed: LeaderAndIsr | None, written: LeaderAndIsr
) -> Iterator[tuple[Write, ...]]:
    """The sets of writes that give the value, the likeliest first."""
    epoch = written.controller_epoch
    # Values overwritten before they were read leave one write for several: a prefix.
    for end in range(1, len(writes) + 1):
        if _gives(writes[:end], confirmed, written):
            yield writes[:end]
    # The order of a batch's removals is known only to the controller's hash maps: one alone, or some in another order.
    yield from ((write,) for write in writes[1:] if _gives((write,), confirmed, written))
    removals = [write for write in writes if isinstance(write, Remove)][:_PERMUTED_REMOVALS]
    for size in range(2, len(removals) + 1):
        yield from (chosen for chosen in permutations(removals, size) if _gives(chosen, confirmed, written))
    if confirmed is None or written.partition_epoch - confirmed.partition_epoch < 2:
        return
    # The data version grew by more than the writes: ISR changes of the leader behind or in front of them were missed.
    for end in range(1, len(writes) + 1):
        value = fold(writes[:end], confirmed, epoch)
        same_leadership = value is not None and (value.leader, value.leader_epoch) == (
            written.leader,
            written.leader_epoch,
        )
        leaving = {write.replica for write in writes[:end] if isinstance(write, Remove)}
        before = replace(confirmed, isr=tuple(m for m in confirmed.isr if m in written.isr or m in leaving))
        if same_leadership or _gives(writes[:end], before, written):
            yield writes[:end]


def _gives(writes: tuple[Write, ...], before: LeaderAndIsr | None, written: LeaderAndIsr) -> bool:
    """Whether the writes give the value, none of them in vain."""
    value = before
    for write in writes[:-1]:
        value = write.apply(value, written.controller_epoch) or value
    last = writes[-1].apply(value, written.controller_epoch)
    return last is not None and last.same_write(written)


def _known_after(turn: Turn, partition: Partition, last: Write) -> LeaderAndIsr | None:
    """The acting controller's own copy after a write: up to 2.3 a mere bump of the leader epoch did not reach it."""
    if turn.open_event(last.event).epoch < turn.header.controller_epoch:
        return partition.known or partition.confirmed  # a deposed controller wrote
    if not isinstance(last, Bump) or turn.header.profile.bump_refreshes_cache:
        return None
    later = partition.queue[partition.queue.index(last) :]
    read_again = any(isinstance(step, Move) and step.takes_replica_offline for step in later)
    return None if read_again else partition.known or partition.confirmed


def _settle(
    turn: Turn, tp: TopicPartition, partition: Partition, done: tuple[Write, ...], written: LeaderAndIsr
) -> tuple[AnyStep, ...]:
    """The queue without what was written; what stood between the writes keeps the value it stood behind."""
    for write in done:
        turn.settle(write, seen=True)
        event = turn.open_event(write.event)
        if isinstance(write, Create) and event.doubtful in write.isr:
            event.doubtful = NO_BROKER  # the controller knows it
    value = partition.confirmed
    for write in done:
        _count_election(turn, tp, write, value)
        value = write.apply(value, written.controller_epoch) or value
    if value is not None and value.isr != written.isr:
        count_isr_change(turn, value.isr, written.isr)
    writes = tuple(step for step in partition.queue if isinstance(step, Write))
    if writes[: len(done)] == done:
        queue = _frozen(turn, partition, done, written)
    else:
        queue = tuple(step for step in partition.queue if step not in done)
    if turn.header.profile.tells_only_live_brokers:
        return queue
    return _last_to_leave_told(turn, queue, done[-1], fold(done[:-1], partition.confirmed, written.controller_epoch))


def _last_to_leave_told(
    turn: Turn, queue: tuple[AnyStep, ...], last: Write, before: LeaderAndIsr | None
) -> tuple[AnyStep, ...]:
    """The queue after a removal: of brokers that died together the last is told what was written before its own.

    Each removal is told to all but the broker that leaves, and a later one replaces what an earlier one was to say.
    """
    if not isinstance(last, Remove) or any(isinstance(step, Remove) and step.event == last.event for step in queue):
        return queue
    parted: list[AnyStep] = []
    for step in queue:
        if isinstance(step, StateEntry) and step.event == last.event and last.replica in step.brokers:
            others = tuple(broker for broker in step.brokers if broker != last.replica)
            parted.append(replace(step, brokers=(last.replica,), in_metadata=False, value=before))
            turn.open_event(last.event).queued += 1
            step = replace(step, brokers=others)
        parted.append(step)
    return tuple(parted)


def _frozen(turn: Turn, partition: Partition, done: tuple[Write, ...], written: LeaderAndIsr) -> tuple[AnyStep, ...]:
    value, known = partition.confirmed, partition.known
    kept: list[AnyStep] = []
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
            known = _known_after(turn, partition, step) if last else None
        elif waits or isinstance(step, StopEntry):
            kept.append(step)
        else:
            lags = isinstance(step, StateEntry) and not step.read
            frozen = step.value if left else None
            kept.append(msgspec.structs.replace(step, value=frozen or (known if lags else None) or value))
    return tuple(kept)


def _count_election(turn: Turn, tp: TopicPartition, step: Write, before: LeaderAndIsr | None) -> None:
    if isinstance(step, Elect) and before is not None:
        elected = step.choose(before.isr)
        if elected is not None and elected.unclean:
            turn.count(f"elections/Unclean{step.strategy.value}")
            had = listed(before.isr) if before.isr else "its last in-sync replicas"  # up to 1.0 an ISR may be empty
            cause = (
                f"records of {tp} that only {had} had are lost, up to leader epoch "
                f"{before.leader_epoch}: broker {elected.leader} was elected though not in sync"
            )
            occurrences.note(turn, kinds.UNCLEAN_ELECTION, cause, about=str(tp))
        else:
            turn.count(f"elections/{step.strategy.value}")


def prune(turn: Turn, tp: TopicPartition, joined: Collection[int] = ()) -> None:
    """Take the expected writes as they follow from what is confirmed now; `joined` are replicas just in sync.

    One that would write nothing any more is dropped; where that is an election, its move to Online is taken back, and
    the dead leader, which the election would have dropped, leaves the ISR by a write of its own. So does a replica that
    was to go offline without one, and got into the ISR before that.
    """
    partition = turn.partition(tp)
    if partition is None or not (partition.write_due or (joined and partition.queue)):
        return
    value, kept, failed = partition.confirmed, list[AnyStep](), False
    needless: set[int] = set()
    for step in partition.queue:
        if isinstance(step, Write):
            after = step.apply(value, turn.header.controller_epoch)
            if after is None:
                turn.settle(step, seen=False)
                failed = failed or isinstance(step, Elect)
                needless.update([step.replica] if isinstance(step, Remove) else [])
                continue
            value = after
        elif failed and isinstance(step, Move) and step.replica is None and step.written:
            turn.withdraw(tp, step)
            partition = before_move(partition, step)
            continue
        elif isinstance(step, Move) and step.replica in needless:
            step = replace(step, written=False)
        elif isinstance(step, Move) and (failed or step.replica in joined) and value and _leaves_isr(step, value):
            removal = turn.removal_of(step)
            value = removal.apply(value, turn.header.controller_epoch)
            kept.append(removal)
            step = replace(step, written=True)
        kept.append(step)
    if kept != list(partition.queue):
        turn.put_partition(tp, replace(partition, queue=tuple(kept)))


def _note_missing(turn: Turn, tp: TopicPartition, event_id: int, writes: int) -> None:
    cause = (
        f"the controller never wrote {tp}, and has done what came later: due for {turn.open_event(event_id).sentence}"
    )
    occurrences.note(turn, kinds.WRITE_NEVER_CAME, cause, about=str(tp), times=writes)


def _leaves_isr(move: Move, value: LeaderAndIsr) -> bool:
    return move.takes_replica_offline and not move.written and move.replica in value.isr


def give_up_on_overtaken(turn: Turn) -> None:
    """Expected writes that do not come while later events write are not waited for any more: they were not needed.

    Without that, one wrong expectation would hold up everything behind it until the term ends.
    """
    header = turn.header
    for event_id, event in list(header.events.items()):
        overtaken = event.writes_due and event_id < header.last_written_event
        if overtaken and header.time_ms - event.time_ms > UNFINISHED_MS:
            for tp in turn.waiting(event):
                _give_up(turn, tp, event_id)


def _give_up(turn: Turn, tp: TopicPartition, event_id: int) -> None:
    partition = turn.partition(tp)
    assert partition is not None, f"{tp} waits, and is not there"
    if any(step.event == event_id and isinstance(step, Create) for step in partition.queue):
        _note_missing(turn, tp, event_id, 1)
        _give_up_creation(turn, tp, partition, event_id)
        prune(turn, tp)
        return
    missing = [step for step in partition.queue if step.event == event_id and isinstance(step, Write)]
    if not missing:
        return
    _note_missing(turn, tp, event_id, len(missing))
    for write in missing:
        turn.settle(write, seen=False)
        if isinstance(write, Elect):
            partition = _passed_over(turn, tp, partition, write)
    left = tuple(step for step in partition.queue if step not in missing)
    turn.put_partition(tp, replace(partition, queue=left))


def _passed_over(turn: Turn, tp: TopicPartition, partition: Partition, election: Elect) -> Partition:
    """The partition without what would have come of an election: nobody was elected, and no broker was sent anything.

    Where its leader is away, the controller owes the election from then on.
    """
    kept: list[AnyStep] = []
    state: int | None = None  # in which the partition stayed
    for step in partition.queue:
        if _comes_of(step, election):
            turn.withdraw(tp, step)
            state = step.from_state if isinstance(step, Move) else state
            continue
        if state is not None and isinstance(step, Move) and step.replica is None:
            step, state = replace(step, from_state=state), None
        kept.append(step)
    stayed = partition.state if state is None else PartitionState(state)
    return replace(partition, queue=tuple(kept), state=stayed, passed_over=_owed(turn, partition, election))


def _comes_of(step: AnyStep, election: Elect) -> bool:
    """Whether a step is the election's move to Online, or a request that its event sends behind it."""
    if step.event != election.event:
        return False
    if isinstance(step, Move):
        return step.replica is None and step.at_pass == election.at_pass
    return isinstance(step, (StateEntry, StopEntry)) and step.at_pass > election.at_pass


def _owed(turn: Turn, partition: Partition, election: Elect) -> Owed | None:
    value, header = partition.confirmed, turn.header
    elected = election.choose(value.isr) if value is not None else None
    if value is None or elected is None or turn.is_online(value.leader, partition):
        return None
    return Owed(elected.leader, value.leader_epoch, header.controller_epoch, turn.open_event(election.event).time_ms)


def _give_up_creation(turn: Turn, tp: TopicPartition, partition: Partition, event_id: int) -> None:
    """Nobody has taken the partition up; or others were created with it, and it stays New: none may lead it yet."""
    if not turn.open_event(event_id).begun:
        turn.undo_in(tp, event_id)
        return
    kept = []
    for step in partition.queue:
        if step.event == event_id and (not isinstance(step, Move) or step.written):
            turn.withdraw(tp, step)
            partition = before_move(partition, step) if isinstance(step, Move) else partition
        else:
            kept.append(step)
    turn.put_partition(tp, replace(partition, queue=tuple(kept)))
