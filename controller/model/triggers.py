"""Znodes that trigger the controller (reassignments, elections, notifications), and its memory of deletions."""

from __future__ import annotations

from collections.abc import Collection, Mapping

import msgspec

from controller.contract.ids import UNKNOWN_ZXID, BrokerId, TopicPartition, Zxid
from controller.contract.znodes import ReassignmentEntry


class LogDirFailure(msgspec.Struct, frozen=True, array_like=True):
    """Report of a failed log directory by a broker, and whether a write has shown its consequences."""

    reported_ms: int
    handled: bool = False


class IsrNotification(msgspec.Struct, frozen=True, array_like=True):
    """Notification of ISR changes that leaders wrote themselves, which the controller has not read yet."""

    since_ms: int
    partitions: tuple[TopicPartition, ...]
    is_published: bool = False  # the controller sent its states to brokers when it read another notification
    zxid: Zxid = UNKNOWN_ZXID  # of its creation


class Triggers(msgspec.Struct, array_like=True):
    """Requests to the controller by znode, and its automatic rebalances."""

    reassign: tuple[ReassignmentEntry, ...] | None = None  # in /admin/reassign_partitions
    reassign_unwatched: bool = False  # the controller does not watch for the next request, until a failover
    preferred: tuple[ReassignmentEntry, ...] | None = None  # in /admin/preferred_replica_election
    preferred_asked_ms: int = -1  # when a request came and went before its partitions could be read
    rebalancing: dict[BrokerId, int] = {}  # when an automatic rebalance last moved leaders back, by preferred broker
    isr_notifications: dict[str, IsrNotification] = {}  # not read by the controller yet, by the znode's name
    log_dir_failures: dict[BrokerId, LogDirFailure] = {}  # by reporting broker
    log_dir_events: tuple[str, ...] = ()  # reports that no controller has removed yet, by the znode's name

    @property
    def has_notifications(self) -> bool:
        """Return whether notifications wait, which a new controller removes before it loads the cluster."""
        return bool(self.isr_notifications or self.log_dir_events)

    def note_log_dir_event(self, name: str, *, waits: bool) -> None:
        """Note a report's znode, which the controller removes."""
        self.log_dir_events = tuple(sorted({*self.log_dir_events, name} - (set() if waits else {name})))

    def begin_term(self) -> None:
        """Forget the former controller's memory, because a new controller starts without it."""
        self.log_dir_failures, self.rebalancing, self.reassign_unwatched = {}, {}, False


class Deletions(msgspec.Struct, array_like=True):
    """Controller's memory of deletions beside the topics themselves."""

    halted: dict[str, int] = {}  # when StopReplica was sent, by topic whose deletion waits for an offline replica
    ineligible_leftovers: tuple[str, ...] = ()  # deleted topics that the controller still lists as ineligible
    unheeded: dict[str, int] = {}  # by name, since when an entry in /admin/delete_topics has deleted no topic
    leaked_offline: int = 0  # offline partitions of topics removed by hand, which the controller still counts

    def halt(self, topic: str, asked_ms: int) -> None:
        """Let a topic's deletion wait for an offline replica."""
        self.halted = {**self.halted, topic: asked_ms}

    def go_on(self, topic: str) -> None:
        """Let a topic's deletion wait no longer."""
        self.halted = _without(self.halted, topic)

    def note_unheeded(self, topic: str, time_ms: int) -> None:
        """Note an entry that deletes no topic. A known entry keeps its time."""
        self.unheeded = {**self.unheeded, topic: self.unheeded.get(topic, time_ms)}

    def heed(self, topic: str) -> None:
        """Forget an entry that deleted no topic, and is gone."""
        if topic in self.unheeded:
            self.unheeded = _without(self.unheeded, topic)

    def note_all_unheeded(self, topics: Collection[str], time_ms: int) -> None:
        """Replace the noted entries by these, which delete no topic. Known entries keep their times."""
        wanted = frozenset(topics)
        known = {topic: ms for topic, ms in self.unheeded.items() if topic in wanted}
        self.unheeded = {**known, **{topic: time_ms for topic in topics if topic not in known}}

    def leave_ineligible(self, topic: str) -> None:
        """Note that the controller still lists a deleted topic as ineligible."""
        if topic not in self.ineligible_leftovers:
            self.ineligible_leftovers = (*self.ineligible_leftovers, topic)

    def leak(self, offline: int) -> None:
        """Note offline partitions that the controller still counts, though their topic is gone."""
        self.leaked_offline += offline

    def begin_term(self) -> None:
        """Forget the former controller's memory, because a new controller starts without it."""
        self.halted, self.ineligible_leftovers, self.leaked_offline = {}, (), 0


def _without(by_topic: Mapping[str, int], topic: str) -> dict[str, int]:
    return {name: value for name, value in by_topic.items() if name != topic}
