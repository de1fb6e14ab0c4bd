"""States of partitions and replicas, and two tables of their legal changes.

The numbers are Kafka's own (`PartitionState`, `ReplicaState`, 3.9). `partition_machine` and `replica_machine` do the
work of a state change.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import IntEnum
from types import MappingProxyType
from typing import Final


class PartitionState(IntEnum):
    """State of a partition in the controller's memory."""

    NEW = 0  # assigned, no leader was ever elected
    ONLINE = 1  # a leader was elected and is live, as far as the controller knows
    OFFLINE = 2  # the controller knows that the leader is not live
    NON_EXISTENT = 3  # never seen, or deleted

    @property
    def word(self) -> str:
        """Return Kafka's name of the state."""
        return PARTITION_WORDS[self]


class ReplicaState(IntEnum):
    """State of a replica in the controller's memory."""

    NEW = 1
    ONLINE = 2
    OFFLINE = 3
    DELETION_STARTED = 4
    DELETION_SUCCESSFUL = 5
    DELETION_INELIGIBLE = 6
    NON_EXISTENT = 7

    @property
    def word(self) -> str:
        """Return Kafka's name of the state."""
        return REPLICA_WORDS[self]


PARTITION_WORDS: Final[Mapping[int, str]] = MappingProxyType(
    {
        PartitionState.NEW: "NewPartition",
        PartitionState.ONLINE: "OnlinePartition",
        PartitionState.OFFLINE: "OfflinePartition",
        PartitionState.NON_EXISTENT: "NonExistentPartition",
    }
)

REPLICA_WORDS: Final[Mapping[int, str]] = MappingProxyType(
    {
        ReplicaState.NEW: "NewReplica",
        ReplicaState.ONLINE: "OnlineReplica",
        ReplicaState.OFFLINE: "OfflineReplica",
        ReplicaState.DELETION_STARTED: "ReplicaDeletionStarted",
        ReplicaState.DELETION_SUCCESSFUL: "ReplicaDeletionSuccessful",
        ReplicaState.DELETION_INELIGIBLE: "ReplicaDeletionIneligible",
        ReplicaState.NON_EXISTENT: "NonExistentReplica",
    }
)

_P = PartitionState
_R = ReplicaState

# To enter KEY, the partition must be in one of VALUE.
PARTITION_VALID_PREVIOUS: Final[Mapping[PartitionState, frozenset[PartitionState]]] = MappingProxyType(
    {
        _P.NEW: frozenset({_P.NON_EXISTENT}),
        _P.ONLINE: frozenset({_P.NEW, _P.ONLINE, _P.OFFLINE}),
        _P.OFFLINE: frozenset({_P.NEW, _P.ONLINE, _P.OFFLINE}),
        _P.NON_EXISTENT: frozenset({_P.OFFLINE}),
    }
)

# To enter KEY, the replica must be in one of VALUE.
REPLICA_VALID_PREVIOUS: Final[Mapping[ReplicaState, frozenset[ReplicaState]]] = MappingProxyType(
    {
        _R.NEW: frozenset({_R.NON_EXISTENT}),
        _R.ONLINE: frozenset({_R.NEW, _R.ONLINE, _R.OFFLINE, _R.DELETION_INELIGIBLE}),
        _R.OFFLINE: frozenset({_R.NEW, _R.ONLINE, _R.OFFLINE, _R.DELETION_INELIGIBLE}),
        _R.DELETION_STARTED: frozenset({_R.OFFLINE}),
        _R.DELETION_SUCCESSFUL: frozenset({_R.DELETION_STARTED}),
        _R.DELETION_INELIGIBLE: frozenset({_R.OFFLINE, _R.DELETION_STARTED}),
        _R.NON_EXISTENT: frozenset({_R.DELETION_SUCCESSFUL}),
    }
)
