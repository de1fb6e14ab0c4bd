"""Znodes by which the controller is asked for something, and deletions that it was asked for."""

from __future__ import annotations

import msgspec

from controller.contract.znodes import ReassignmentEntry
from controller.model.topics import TopicPartition


class LogDirFailure(msgspec.Struct, frozen=True, array_like=True):
    """A broker's report of a failed log directory, and whether a consequence of it was seen."""

    reported_ms: int
    handled: bool = False


class IsrNotification(msgspec.Struct, frozen=True, array_like=True):
    """What leaders tell the controller of ISR changes that they wrote themselves, while it waits to be read."""

    since_ms: int
    partitions: tuple[TopicPartition, ...]


class Triggers(msgspec.Struct, array_like=True):
    """What the controller is asked for by znodes, and what it does by itself in intervals."""

    reassign: tuple[ReassignmentEntry, ...] | None = None  # in /admin/reassign_partitions
    reassign_unwatched: bool = False  # the controller will not see the next one, until a failover
    preferred: tuple[ReassignmentEntry, ...] | None = None  # in /admin/preferred_replica_election
    preferred_asked_ms: int = -1  # when one was asked for of partitions that nobody could read
    rebalancing: dict[int, int] = {}  # brokers that an automatic rebalance brings leaders back to: when last
    isr_notifications: dict[str, IsrNotification] = {}  # that wait for the controller, by the znode's name
    log_dir_failures: dict[int, LogDirFailure] = {}  # by the broker that reported one


class Deletions(msgspec.Struct, array_like=True):
    """What the controller remembers of deletions beside the topics themselves."""

    halted: dict[str, int] = {}  # topics whose deletion a dead replica holds: when the others were asked
    ineligible_leftovers: tuple[str, ...] = ()  # deleted topics that the controller goes on calling ineligible
    leaked_offline: int = 0  # offline partitions of topics removed by hand, which the controller goes on counting
