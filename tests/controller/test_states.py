"""Every (state, target) pair of both machines, against Kafka's own lists of valid previous states."""

import pytest

from controller.rules.states import PARTITION_VALID_PREVIOUS, REPLICA_VALID_PREVIOUS, PartitionState, ReplicaState

PARTITION_MOVES = {
    ("NonExistentPartition", "NewPartition"),
    ("NewPartition", "OnlinePartition"),
    ("OnlinePartition", "OnlinePartition"),
    ("OfflinePartition", "OnlinePartition"),
    ("NewPartition", "OfflinePartition"),
    ("OnlinePartition", "OfflinePartition"),
    ("OfflinePartition", "OfflinePartition"),
    ("OfflinePartition", "NonExistentPartition"),
}
REPLICA_MOVES = {
    ("NonExistentReplica", "NewReplica"),
    *((state, "OnlineReplica") for state in ("NewReplica", "OnlineReplica", "OfflineReplica")),
    *((state, "OfflineReplica") for state in ("NewReplica", "OnlineReplica", "OfflineReplica")),
    ("ReplicaDeletionIneligible", "OnlineReplica"),
    ("ReplicaDeletionIneligible", "OfflineReplica"),
    ("OfflineReplica", "ReplicaDeletionStarted"),
    ("ReplicaDeletionStarted", "ReplicaDeletionSuccessful"),
    ("OfflineReplica", "ReplicaDeletionIneligible"),
    ("ReplicaDeletionStarted", "ReplicaDeletionIneligible"),
    ("ReplicaDeletionSuccessful", "NonExistentReplica"),
}


@pytest.mark.parametrize("target", PartitionState)
@pytest.mark.parametrize("state", PartitionState)
def test_a_partition_moves_only_where_kafka_lets_it(state, target):
    assert (state in PARTITION_VALID_PREVIOUS[target]) == ((state.word, target.word) in PARTITION_MOVES)


@pytest.mark.parametrize("target", ReplicaState)
@pytest.mark.parametrize("state", ReplicaState)
def test_a_replica_moves_only_where_kafka_lets_it(state, target):
    assert (state in REPLICA_VALID_PREVIOUS[target]) == ((state.word, target.word) in REPLICA_MOVES)


def test_the_numbers_are_kafkas():
    assert [state.value for state in PartitionState] == [0, 1, 2, 3]
    assert [state.value for state in ReplicaState] == [1, 2, 3, 4, 5, 6, 7]
