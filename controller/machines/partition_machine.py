"""The partition state machine: what a partition does when it enters a state.

Here belong the actions (Kafka 3.9 `ZkPartitionStateMachine`); which state may follow which is a table in `states`,
who is elected is a choice in `election`. A partition that may not enter a state keeps the one it has, and the others
go on.
"""

from __future__ import annotations

from collections.abc import Iterable

from controller.model.leadership import Bump, Create, Elect, Move
from controller.model.topics import Partition, TopicPartition
from controller.rules.election import Strategy, recipients
from controller.rules.states import PARTITION_VALID_PREVIOUS, PartitionState
from controller.transaction.request_batch import RequestBatch
from controller.transaction.transaction import Turn, replace


def enter_state(turn: Turn, tps: Iterable[TopicPartition], target: PartitionState) -> None:
    """Move partitions to New, Offline or NonExistent: their state changes, nothing is written or sent."""
    turn.next_pass()
    for tp in tps:
        partition = _valid(turn, tp, target)
        if partition is not None:
            turn.queue(tp, replace(partition, state=target), _move(turn, partition, target, written=False))


def bring_online(turn: Turn, tps: Iterable[TopicPartition], *, allow_unclean: bool | None = None) -> int:
    """Move partitions to Online by an offline election, those that never had a leader by their creation.

    Gives the number of elections that will succeed. `allow_unclean` None leaves it to the settings of the topic.
    """
    turn.next_pass()
    batch = RequestBatch(turn)
    elected = 0
    for tp in tps:
        partition = _valid(turn, tp, PartitionState.ONLINE)
        if partition is None:
            continue
        if partition.state is PartitionState.NEW:
            _create(turn, batch, tp, partition)
        else:
            intent = _offline_election(turn, tp, partition, allow_unclean)
            elected += _elect(turn, batch, tp, partition, intent)
    batch.send()
    return elected


def elect(turn: Turn, tps: Iterable[TopicPartition], strategy: Strategy) -> list[TopicPartition]:
    """Elect leaders by a strategy that moves leadership between live brokers; gives those that will succeed."""
    turn.next_pass()
    batch = RequestBatch(turn)
    moved = []
    for tp in tps:
        partition = _valid(turn, tp, PartitionState.ONLINE)
        if partition is None:
            continue
        intent = election_of(turn, partition, strategy)
        if _elect(turn, batch, tp, partition, intent):
            moved.append(tp)
    batch.send()
    return moved


def stay_online(turn: Turn, tps: Iterable[TopicPartition]) -> None:
    """Move partitions to Online whose election turns out not to be needed: nothing is written or sent."""
    turn.next_pass()
    staying = {tp: partition for tp in tps if (partition := _valid(turn, tp, PartitionState.ONLINE))}
    for tp, partition in staying.items():
        turn.queue(tp, partition, _move(turn, partition, PartitionState.ONLINE, written=True))


def election_of(turn: Turn, partition: Partition, strategy: Strategy) -> Elect:
    """The election of a partition by a strategy, as the controller would run it now."""
    shutting_down = turn.header.shutting_down
    registered = tuple(replica for replica in partition.replicas if replica in turn.header.brokers)
    by_shutdown = strategy is Strategy.CONTROLLED_SHUTDOWN
    candidates = partition.assignment.target if strategy is Strategy.REASSIGN else partition.replicas
    return Elect(
        *turn.place(),
        strategy,
        candidates,
        registered if by_shutdown else tuple(r for r in registered if turn.is_online(r, partition)),
        shutting_down=tuple(sorted(shutting_down)) if by_shutdown else (),
    )


def _told(turn: Turn, partition: Partition, intent: Elect) -> tuple[int, ...]:
    online = intent.online
    profile = turn.header.profile
    only_live = profile.shutdown_elects_among_live and not profile.shutdown_tells_leaving_broker
    if intent.strategy is Strategy.CONTROLLED_SHUTDOWN and only_live:
        online = tuple(replica for replica in online if turn.is_online(replica, partition))
    return recipients(intent.strategy, intent.candidates, online)


def _valid(turn: Turn, tp: TopicPartition, target: PartitionState) -> Partition | None:
    partition = turn.partition(tp)
    if partition is not None and partition.state in PARTITION_VALID_PREVIOUS[target]:
        return partition
    return None


def _move(turn: Turn, partition: Partition, target: PartitionState, *, written: bool) -> Move:
    return Move(*turn.place(), None, partition.state, target, written)


def _create(turn: Turn, batch: RequestBatch, tp: TopicPartition, partition: Partition) -> None:
    live = tuple(replica for replica in partition.replicas if turn.is_online(replica, partition))
    if not live or partition.confirmed is not None:
        return  # it stays New: without a live replica there is nothing to write, and what exists is never overwritten
    create = Create(*turn.place(), live)
    move = _move(turn, partition, PartitionState.ONLINE, written=True)
    turn.queue(tp, replace(partition, state=PartitionState.ONLINE), create, move)
    batch.leader_and_isr(live, tp, is_new=True, read=True)


def _offline_election(turn: Turn, tp: TopicPartition, partition: Partition, allow_unclean: bool | None) -> Elect:
    topic = turn.topic(tp.topic)
    by_settings = topic.unclean_election if topic is not None else None
    if by_settings is None:
        by_settings = turn.header.allows_unclean_election
    return Elect(
        *turn.place(),
        Strategy.OFFLINE,
        partition.replicas,
        tuple([replica for replica in partition.replicas if turn.is_online(replica, partition)]),
        allow_unclean=by_settings if allow_unclean is None else allow_unclean,
    )


def _elect(turn: Turn, batch: RequestBatch, tp: TopicPartition, partition: Partition, intent: Elect) -> bool:
    epoch = turn.header.controller_epoch
    if intent.apply(partition.value(epoch), epoch) is None:
        return False  # nobody can be elected: it stays as it is
    move = _move(turn, partition, PartitionState.ONLINE, written=True)
    turn.queue(tp, replace(partition, state=PartitionState.ONLINE), intent, move)
    batch.leader_and_isr(_told(turn, partition, intent), tp, is_new=False, read=True)
    return True


def bump(turn: Turn, tp: TopicPartition) -> Partition | None:
    """Let the leader epoch grow by one; None for a partition without a state."""
    partition = turn.partition(tp)
    if partition is None or partition.value(turn.header.controller_epoch) is None:
        return None
    turn.next_pass()
    return turn.queue(tp, partition, Bump(*turn.place()))
