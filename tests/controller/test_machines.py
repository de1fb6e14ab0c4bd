"""The partition and the replica machine, driven by hand through every (state, target) pair.

After Kafka's own PartitionStateMachineTest, ReplicaStateMachineTest and ControllerChannelManagerTest, by meaning.
"""

import msgspec
import pytest

from controller.contract.effect_rows import Request
from controller.contract.ids import TopicPartition
from controller.contract.leader_and_isr import LeaderAndIsr
from controller.contract.records import Record, RecordKind
from controller.machines import partition_machine, replica_machine
from controller.machines.replica_machine import Replica
from controller.model.event import EventKind
from controller.model.leadership import (
    BumpLeaderEpoch,
    Create,
    Elect,
    RemoveFromIsr,
    StateChange,
    StateEntry,
    StopEntry,
    Write,
)
from controller.model.topics import Partition
from controller.rules.election import Strategy
from controller.rules.states import PartitionState, ReplicaState
from controller.transaction.transaction import RequestBatch, Transaction
from tests.controller.test_states import PARTITION_MOVES, REPLICA_MOVES
from tests.controller.znode_history import ZnodeHistory

T0 = TopicPartition("t", 0)
NOWHERE = TopicPartition("nowhere", 0)
replace = msgspec.structs.replace


@pytest.fixture
def history() -> ZnodeHistory:
    """Return t-0 on 1, 2 and the dead 9, led by 2 with 1 and 2 in sync."""
    return ZnodeHistory().start(1, 2, 3, topics={"t": {0: ([1, 2, 9], 2, 4, [1, 2])}})


def a_transaction(history: ZnodeHistory, **partition: object) -> Transaction:
    """Return a transaction in an event, with these changes to t-0."""
    position = {"generation": history.generation, "seq": history.seq + 1}
    record = Record(cluster="c", kind=RecordKind.HEARTBEAT, observed_ms=history.now_ms, zxid=history.zxid, **position)
    tx = Transaction(history.context, record)
    tx.events.begin(EventKind.BROKER_CHANGE, "a machine is driven by hand")
    tx.state.put_partition(T0, replace(tx.state.partition(T0), **partition))
    return tx


@pytest.mark.parametrize(("release", "state"), [((1, 1), ReplicaState.ONLINE), ((2, 0), ReplicaState.OFFLINE)])
def test_a_replica_of_a_partition_without_a_state_goes_offline_from_2_0_on(release, state):
    history = ZnodeHistory(release=release).start(1, 2, 3, topics={"t": {0: ([1, 2], 1, 0, [1, 2])}})
    tx = a_transaction(history, state=PartitionState.NEW, zk_state=None)
    replica_machine.enter_state(tx, [Replica(T0, 2)], ReplicaState.OFFLINE)
    assert after(tx).replica_state(2) is state
    assert told(tx) == [("StopReplica", 2, False)]


def after(tx: Transaction) -> Partition:
    partition = tx.state.partition(T0)
    assert partition is not None
    return partition


def writes(tx: Transaction) -> list[type]:
    return [type(step) for step in after(tx).queue if isinstance(step, Write)]


def told(tx: Transaction) -> list[tuple]:
    found: list[tuple] = []
    for step in after(tx).queue:
        if isinstance(step, StateEntry):
            found += [("LeaderAndIsr", broker, broker in step.new_on) for broker in step.brokers]
        elif isinstance(step, StopEntry):
            found.append(("StopReplica", step.broker, step.delete))
    return found


def moves(tx: Transaction) -> list[tuple[str, str]]:
    return [
        (PartitionState(step.from_state).word, PartitionState(step.to_state).word)
        for step in after(tx).queue
        if isinstance(step, StateChange) and step.replica is None
    ]


# The partition machine


@pytest.mark.parametrize("target", PartitionState)
@pytest.mark.parametrize("state", PartitionState)
def test_a_partition_enters_a_state_only_from_a_valid_one_else_keeps_its_own(history, state, target):
    zk_state = None if state is PartitionState.NEW else after(a_transaction(history)).zk_state
    tx = a_transaction(history, state=state, zk_state=zk_state)
    if target is PartitionState.ONLINE:
        partition_machine.bring_online(tx, [T0])
    else:
        partition_machine.enter_state(tx, [T0], target)
    valid = (state.word, target.word) in PARTITION_MOVES
    assert after(tx).state is (target if valid else state)
    assert moves(tx) == ([(state.word, target.word)] if valid else [])
    assert bool(writes(tx)) == (valid and target is PartitionState.ONLINE)


@pytest.mark.parametrize("strategy", [Strategy.PREFERRED, Strategy.CONTROLLED_SHUTDOWN, Strategy.REASSIGN])
@pytest.mark.parametrize("state", [PartitionState.NON_EXISTENT, PartitionState.ONLINE])
def test_an_election_needs_a_partition_that_may_be_online(history, strategy, state):
    tx = a_transaction(history, state=state)
    elected = partition_machine.elect(tx, [T0, NOWHERE], strategy)
    assert elected == ([T0] if state is PartitionState.ONLINE else [])
    assert writes(tx) == ([Elect] if state is PartitionState.ONLINE else [])


@pytest.mark.parametrize("state", [PartitionState.OFFLINE, PartitionState.ONLINE])
def test_an_election_that_finds_nobody_keeps_the_state_and_writes_nothing(history, state):
    dead = replace(after(a_transaction(history)).zk_state, leader=9, isr=(9,))
    tx = a_transaction(history, state=state, zk_state=dead)
    assert partition_machine.bring_online(tx, [T0]) == 0
    assert partition_machine.elect(tx, [T0], Strategy.PREFERRED) == []
    assert (after(tx).state, after(tx).queue) == (state, ())


def test_a_new_partition_whose_state_exists_stays_new_for_nothing_is_overwritten(history):
    tx = a_transaction(history, state=PartitionState.NEW)
    partition_machine.bring_online(tx, [T0])
    assert (after(tx).state, writes(tx)) == (PartitionState.NEW, [])


def test_a_partition_that_nobody_knows_is_left_alone(history):
    tx = a_transaction(history)
    partition_machine.enter_state(tx, [NOWHERE], PartitionState.OFFLINE)
    assert partition_machine.bring_online(tx, [NOWHERE]) == 0
    assert partition_machine.bump(tx, NOWHERE) is None
    assert tx.state.topic("nowhere") is None


def test_a_leader_epoch_grows_alone_only_where_there_is_a_state(history):
    tx = a_transaction(history)
    partition_machine.bump(tx, T0)
    assert writes(tx) == [BumpLeaderEpoch]
    without = a_transaction(history, zk_state=None)
    assert partition_machine.bump(without, T0) is None


# The replica machine


@pytest.mark.parametrize("target", ReplicaState)
@pytest.mark.parametrize("state", ReplicaState)
def test_a_replica_enters_a_state_only_from_a_valid_one_and_keeps_its_own_otherwise(history, state, target):
    states = {} if state is ReplicaState.NON_EXISTENT else {1: state}
    tx = a_transaction(history, replica_states=states)
    replica_machine.enter_state(tx, [Replica(T0, 1)], target)
    valid = (state.word, target.word) in REPLICA_MOVES
    assert after(tx).replica_state(1) is (target if valid else state)
    assert bool(after(tx).queue) == valid


TOLD = {
    ReplicaState.NEW: [("LeaderAndIsr", 1, True)],
    ReplicaState.ONLINE: [("LeaderAndIsr", 1, False)],
    ReplicaState.OFFLINE: [("LeaderAndIsr", 2, False), ("StopReplica", 1, False)],
    ReplicaState.DELETION_STARTED: [("StopReplica", 1, True)],
    ReplicaState.DELETION_SUCCESSFUL: [],
    ReplicaState.DELETION_INELIGIBLE: [],
    ReplicaState.NON_EXISTENT: [],
}
FROM = {
    ReplicaState.NEW: ReplicaState.NON_EXISTENT,
    ReplicaState.ONLINE: ReplicaState.OFFLINE,
    ReplicaState.OFFLINE: ReplicaState.ONLINE,
    ReplicaState.DELETION_STARTED: ReplicaState.OFFLINE,
    ReplicaState.DELETION_SUCCESSFUL: ReplicaState.DELETION_STARTED,
    ReplicaState.DELETION_INELIGIBLE: ReplicaState.DELETION_STARTED,
    ReplicaState.NON_EXISTENT: ReplicaState.DELETION_SUCCESSFUL,
}


@pytest.mark.parametrize("target", ReplicaState)
def test_what_brokers_are_sent_when_a_replica_enters_a_state(history, target):
    states = {} if FROM[target] is ReplicaState.NON_EXISTENT else {1: FROM[target]}
    tx = a_transaction(history, replica_states=states)
    replica_machine.enter_state(tx, [Replica(T0, 1)], target)
    assert told(tx) == TOLD[target]
    assert writes(tx) == ([RemoveFromIsr] if target is ReplicaState.OFFLINE else [])


def test_from_new_to_online_nothing_is_sent(history):
    tx = a_transaction(history, replica_states={1: ReplicaState.NEW})
    replica_machine.enter_state(tx, [Replica(T0, 1)], ReplicaState.ONLINE)
    assert (after(tx).replica_state(1), told(tx)) == (ReplicaState.ONLINE, [])


def test_a_leader_cannot_become_a_new_replica(history):
    tx = a_transaction(history, replica_states={})
    replica_machine.enter_state(tx, [Replica(T0, 2)], ReplicaState.NEW)
    assert (after(tx).replica_state(2), after(tx).queue) == (ReplicaState.NON_EXISTENT, ())


def test_a_replica_out_of_sync_goes_offline_without_a_write(history):
    tx = a_transaction(history, replica_states={9: ReplicaState.ONLINE})
    replica_machine.enter_state(tx, [Replica(T0, 9)], ReplicaState.OFFLINE)
    assert writes(tx) == []
    assert told(tx) == [("LeaderAndIsr", 1, False), ("LeaderAndIsr", 2, False)]  # 9 is gone and gets no request


def test_a_replica_without_a_state_goes_offline_without_a_write(history):
    tx = a_transaction(history, zk_state=None, replica_states={1: ReplicaState.NEW})
    replica_machine.enter_state(tx, [Replica(T0, 1)], ReplicaState.OFFLINE)
    assert (after(tx).replica_state(1), writes(tx)) == (ReplicaState.OFFLINE, [])
    assert told(tx) == [("StopReplica", 1, False)]


def test_a_replica_that_nobody_knows_is_left_alone(history):
    tx = a_transaction(history)
    replica_machine.enter_state(tx, [Replica(NOWHERE, 1), Replica(T0, 77)], ReplicaState.ONLINE)
    assert after(tx).queue == ()


@pytest.mark.parametrize(("release", "state"), [((2, 2), "OfflineReplica"), ((2, 3), "ReplicaDeletionIneligible")])
def test_up_to_2_2_only_a_started_deletion_becomes_ineligible(release, state):
    history = ZnodeHistory(release=release).start(1, 2, topics={"t": {0: ([1, 2, 9], 2, 4, [1, 2])}})
    tx = a_transaction(history, replica_states={9: ReplicaState.OFFLINE})
    replica_machine.enter_state(tx, [Replica(T0, 9)], ReplicaState.DELETION_INELIGIBLE)
    assert after(tx).replica_state(9).word == state


# Request batches


def sent(tx: Transaction) -> list[Request]:
    return [row for row in tx.rows.effects if isinstance(row, Request)]


def test_once_new_stays_new_and_once_delete_stays_delete_in_one_batch(history):
    tx = a_transaction(history)
    batch = RequestBatch(tx)
    batch.leader_and_isr([1], T0, is_new=True)
    batch.leader_and_isr([1, 2], T0, is_new=False)
    batch.stop_replica(3, T0, delete=True)
    batch.stop_replica(3, T0, delete=False)
    batch.send()
    assert told(tx) == [("LeaderAndIsr", 1, True), ("LeaderAndIsr", 2, False), ("StopReplica", 3, True)]


def test_a_broker_that_an_assignment_names_twice_is_sent_the_state_once(history):
    tx = a_transaction(history)
    batch = RequestBatch(tx)
    batch.leader_and_isr([1, 1], T0, is_new=False)
    batch.send()
    assert told(tx) == [("LeaderAndIsr", 1, False)]


def test_requests_go_to_brokers_that_are_live_or_shutting_down_only(history):
    tx = a_transaction(history)
    tx.header.shutdowns.under_way = (3,)
    batch = RequestBatch(tx)
    batch.leader_and_isr([3, 9], T0, is_new=False)
    batch.stop_replica(9, T0, delete=True)
    batch.stop_replica(3, T0, delete=True)
    batch.send()
    assert told(tx) == [("LeaderAndIsr", 3, False), ("StopReplica", 3, True)]
    (batch,) = tx.events.event.batches
    assert [(request.api, request.brokers) for request in batch.requests] == [
        ("LeaderAndIsr", (3,)),
        ("UpdateMetadata", (1, 2, 3)),
        ("StopReplica", (3,)),
    ]


def test_up_to_2_1_requests_go_to_dead_brokers_too():
    history = ZnodeHistory(release=(2, 1)).start(1, topics={"t": {0: ([1, 9], 1, 4, [1])}})
    tx = a_transaction(history)
    batch = RequestBatch(tx)
    batch.leader_and_isr([9], T0, is_new=False)
    batch.send()
    assert told(tx) == [("LeaderAndIsr", 9, False)]


def test_metadata_leaves_out_partitions_without_a_state(history):
    tx = a_transaction(history, zk_state=None)
    batch = RequestBatch(tx)
    batch.leader_and_isr([1], T0, is_new=False)
    batch.update_metadata(NOWHERE)
    batch.send()
    assert (told(tx), sent(tx)) == ([], [])


def test_an_empty_batch_sends_nothing(history):
    tx = a_transaction(history)
    RequestBatch(tx).send()
    assert (after(tx).queue, sent(tx)) == ((), [])


@pytest.mark.parametrize(
    "write",
    [Elect(1, 0, 0, Strategy.OFFLINE, (1, 2), (1, 2)), RemoveFromIsr(1, 0, 0, 1), BumpLeaderEpoch(1, 0, 0)],
    ids=lambda write: type(write).__name__,
)
def test_over_no_state_only_a_creation_writes(write):
    assert write.apply(None, 1) is None
    assert Create(1, 0, 0, (1, 2)).apply(None, 1) == LeaderAndIsr(1, 0, (1, 2), 1)
