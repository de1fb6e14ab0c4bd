"""The partition state machine: what a partition does when it enters a state.

Here belong the actions (Kafka 3.9 `ZkPartitionStateMachine`); which state may follow which is a table in `states`,
who is elected is a choice in `election`. A partition that may not enter a state keeps the one it has, and the others
go on.
"""

from __future__ import annotations

from collections.abc import Iterable

from controller.model.leadership import BumpLeaderEpoch, Create, Elect, StateChange
from controller.model.topics import Partition, TopicPartition
from controller.rules.election import Strategy, recipients
from controller.rules.states import PARTITION_VALID_PREVIOUS, PartitionState
from controller.transaction.request_batch import RequestBatch
from controller.transaction.transaction import Transaction, replace


def enter_state(tx: Transaction, tps: Iterable[TopicPartition], target: PartitionState) -> None:
    """Move partitions to New, Offline or NonExistent: their state changes, nothing is written or sent."""
    tx.begin_batch()
    for tp in tps:
        partition = _valid(tx, tp, target)
        if partition is not None:
            tx.queue(tp, replace(partition, state=target), _move(tx, partition, target, written=False))


def bring_online(tx: Transaction, tps: Iterable[TopicPartition], *, allow_unclean: bool | None = None) -> int:
    """Move partitions to Online by an offline election, those that never had a leader by their creation.

    Gives the number of elections that will succeed. `allow_unclean` None leaves it to the settings of the topic.
    """
    tx.begin_batch()
    batch = RequestBatch(tx)
    elected = 0
    for tp in tps:
        partition = _valid(tx, tp, PartitionState.ONLINE)
        if partition is None:
            continue
        if partition.state is PartitionState.NEW:
            _create(tx, batch, tp, partition)
        else:
            intent = _offline_election(tx, tp, partition, allow_unclean)
            elected += _elect(tx, batch, tp, partition, intent)
    batch.send()
    return elected


def elect(tx: Transaction, tps: Iterable[TopicPartition], strategy: Strategy) -> list[TopicPartition]:
    """Elect leaders by a strategy that moves leadership between live brokers; gives those that will succeed."""
    tx.begin_batch()
    batch = RequestBatch(tx)
    moved = []
    for tp in tps:
        partition = _valid(tx, tp, PartitionState.ONLINE)
        if partition is None:
            continue
        intent = election_of(tx, partition, strategy)
        if _elect(tx, batch, tp, partition, intent):
            moved.append(tp)
    batch.send()
    return moved


def stay_online(tx: Transaction, tps: Iterable[TopicPartition]) -> None:
    """Move partitions to Online whose election turns out not to be needed: nothing is written or sent."""
    tx.begin_batch()
    staying = {tp: partition for tp in tps if (partition := _valid(tx, tp, PartitionState.ONLINE))}
    for tp, partition in staying.items():
        tx.queue(tp, partition, _move(tx, partition, PartitionState.ONLINE, written=True))


def election_of(tx: Transaction, partition: Partition, strategy: Strategy) -> Elect:
    """The election of a partition by a strategy, as the controller would run it now."""
    shutting_down = tx.header.shutdowns.under_way
    registered = tuple(replica for replica in partition.replicas if replica in tx.header.brokers)
    by_shutdown = strategy is Strategy.CONTROLLED_SHUTDOWN
    candidates = partition.assignment.target if strategy is Strategy.REASSIGN else partition.replicas
    return Elect(
        *tx.place(),
        strategy,
        candidates,
        registered if by_shutdown else tuple(r for r in registered if tx.is_online(r, partition)),
        shutting_down=tuple(sorted(shutting_down)) if by_shutdown else (),
    )


def _told(tx: Transaction, partition: Partition, intent: Elect) -> tuple[int, ...]:
    online = intent.online
    profile = tx.header.profile
    only_live = profile.shutdown_elects_among_live and not profile.shutdown_tells_leaving_broker
    if intent.strategy is Strategy.CONTROLLED_SHUTDOWN and only_live:
        online = tuple(replica for replica in online if tx.is_online(replica, partition))
    return recipients(intent.strategy, intent.candidates, online)


def _valid(tx: Transaction, tp: TopicPartition, target: PartitionState) -> Partition | None:
    partition = tx.partition(tp)
    if partition is not None and partition.state in PARTITION_VALID_PREVIOUS[target]:
        return partition
    return None


def _move(tx: Transaction, partition: Partition, target: PartitionState, *, written: bool) -> StateChange:
    return StateChange(*tx.place(), None, partition.state, target, written)


def _create(tx: Transaction, batch: RequestBatch, tp: TopicPartition, partition: Partition) -> None:
    live = tuple(replica for replica in partition.replicas if tx.is_online(replica, partition))
    if not live or partition.zk_state is not None:
        return  # it stays New: without a live replica there is nothing to write, and what exists is never overwritten
    create = Create(*tx.place(), live)
    move = _move(tx, partition, PartitionState.ONLINE, written=True)
    tx.queue(tp, replace(partition, state=PartitionState.ONLINE), create, move)
    batch.leader_and_isr(live, tp, is_new=True, read=True)


def _offline_election(tx: Transaction, tp: TopicPartition, partition: Partition, allow_unclean: bool | None) -> Elect:
    topic = tx.topic(tp.topic)
    by_settings = topic.unclean_election if topic is not None else None
    if by_settings is None:
        by_settings = tx.header.allows_unclean_election
    return Elect(
        *tx.place(),
        Strategy.OFFLINE,
        partition.replicas,
        tuple([replica for replica in partition.replicas if tx.is_online(replica, partition)]),
        allow_unclean=by_settings if allow_unclean is None else allow_unclean,
    )


def _elect(tx: Transaction, batch: RequestBatch, tp: TopicPartition, partition: Partition, intent: Elect) -> bool:
    epoch = tx.header.controller_epoch
    if intent.apply(partition.value(epoch), epoch) is None:
        return False  # nobody can be elected: it stays as it is
    move = _move(tx, partition, PartitionState.ONLINE, written=True)
    tx.queue(tp, replace(partition, state=PartitionState.ONLINE), intent, move)
    batch.leader_and_isr(_told(tx, partition, intent), tp, is_new=False, read=True)
    return True


def bump(tx: Transaction, tp: TopicPartition) -> Partition | None:
    """Let the leader epoch grow by one; None for a partition without a state."""
    partition = tx.partition(tp)
    if partition is None or partition.value(tx.header.controller_epoch) is None:
        return None
    tx.begin_batch()
    return tx.queue(tp, partition, BumpLeaderEpoch(*tx.place()))
