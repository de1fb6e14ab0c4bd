"""Znodes that trigger the controller (reassignments, elections, notifications), and its memory of deletions."""

from __future__ import annotations

import msgspec

from controller.contract.ids import TopicPartition
from controller.contract.znodes import ReassignmentEntry


class LogDirFailure(msgspec.Struct, frozen=True, array_like=True):
    """Report of a failed log directory by a broker, and whether a write has shown its consequences."""

    reported_ms: int
    handled: bool = False


class IsrNotification(msgspec.Struct, frozen=True, array_like=True):
    """Notification of ISR changes that leaders wrote themselves, while the controller has not read it."""

    since_ms: int
    partitions: tuple[TopicPartition, ...]


class Triggers(msgspec.Struct, array_like=True):
    """Requests to the controller by znode, and its automatic rebalances."""

    reassign: tuple[ReassignmentEntry, ...] | None = None  # in /admin/reassign_partitions
    reassign_unwatched: bool = False  # the controller does not watch for the next one, until a failover
    preferred: tuple[ReassignmentEntry, ...] | None = None  # in /admin/preferred_replica_election
    preferred_asked_ms: int = -1  # when one came and went before its partitions could be read
    rebalancing: dict[int, int] = {}  # when an automatic rebalance last moved leaders back, by preferred broker
    isr_notifications: dict[str, IsrNotification] = {}  # not read by the controller yet, by the znode's name
    log_dir_failures: dict[int, LogDirFailure] = {}  # by reporting broker


class Deletions(msgspec.Struct, array_like=True):
    """Controller's memory of deletions beside the topics themselves."""

    halted: dict[str, int] = {}  # when StopReplica was sent, by topic whose deletion waits for an offline replica
    ineligible_leftovers: tuple[str, ...] = ()  # deleted topics that the controller still lists as ineligible
    unheeded: dict[str, int] = {}  # since when, by name, of entries in /admin/delete_topics that delete no topic
    leaked_offline: int = 0  # offline partitions of topics removed by hand, which the controller still counts
