"""Counts of a cluster, kept as partitions change."""

from __future__ import annotations

from typing import Final, NamedTuple

import msgspec

from controller.contract.gauges_row import ReactionTimes, SlowReaction
from controller.contract.writes import Writes


class CountingRules(NamedTuple):
    """Rules that the counts depend on beside the topics."""

    least_in_sync: int  # min.insync.replicas of topics without an own setting
    least_is_capped: bool  # a partition never needs more in-sync replicas than it has replicas
    adding_need_not_lead: bool  # replicas that are being added, though preferred
    adding_need_not_follow: bool  # a partition is not under-replicated without them
    least_in_sync_on: tuple[tuple[int, int], ...] = ()  # by leader, where its broker has a setting of its own

    def least_in_sync_under(self, leader: int) -> int:
        """Least number of in-sync replicas for topics without an own setting, on this leader."""
        return (
            dict(self.least_in_sync_on).get(leader, self.least_in_sync) if self.least_in_sync_on else self.least_in_sync
        )


class IssueGroup(msgspec.Struct, frozen=True, array_like=True):
    """Partitions with the same issue because of the same brokers; see `view/partition_issues.py`."""

    count: int
    since_ms: int
    examples: tuple[str, ...]


class WritesBefore(msgspec.Struct, frozen=True, array_like=True):
    """Writes before this moment, at which a span of `_SPAN_MS` begins."""

    time_ms: int
    writes: Writes


EXPECTED: Final = "writes/expected"
UNEXPLAINED: Final = "writes/unexplained"
INFERRED: Final = "inferred/"  # and the rule
EVENTS_INFERRED: Final = "events_inferred/"  # and the rule: events that no znode announced

# The last hour is counted by spans of five minutes: twelve small counts a cluster.
_SPAN_MS: Final = 5 * 60_000
_HOUR_MS: Final = 60 * 60_000


class Tally(msgspec.Struct, array_like=True):
    """Counters since this state was created, and gauges as of the last transaction."""

    happened: dict[str, int] = {}
    gauges: dict[str, int] = {}
    issues: dict[str, IssueGroup] = {}  # of partitions, by group
    offline_by_topic: dict[str, int] = {}
    judged_by: CountingRules | None = None  # the rules by which all partitions were last judged together
    hour: tuple[WritesBefore, ...] = ()  # the spans of the last hour in which something was written, the oldest first

    def count(self, key: str, by: int = 1) -> None:
        """Add to a counter."""
        self.happened[key] = self.happened.get(key, 0) + by

    def count_write(self, key: str, time_ms: int) -> None:
        """Count a write of the controller at this moment of the cluster's time, by how it was explained."""
        if not self.hour or time_ms >= self.hour[-1].time_ms + _SPAN_MS:
            began_ms = time_ms - time_ms % _SPAN_MS
            kept = tuple(before for before in self.hour if before.time_ms > began_ms - _HOUR_MS)
            self.hour = (*kept, WritesBefore(began_ms, self.writes))
        self.count(key)

    @property
    def writes(self) -> Writes:
        """Writes since this state was created."""
        inferred = sum(self.inferences.values())
        return Writes(self.happened.get(EXPECTED, 0), inferred, self.happened.get(UNEXPLAINED, 0))

    @property
    def inferences(self) -> dict[str, int]:
        """Inferred writes by rule."""
        counts = self.happened.items()
        return {key.removeprefix(INFERRED): count for key, count in counts if key.startswith(INFERRED)}

    def writes_of_last_hour(self, now_ms: int) -> Writes:
        """Writes of the last 55 to 60 minutes: of the spans that began within the last hour."""
        within = next((before for before in self.hour if before.time_ms > now_ms - _HOUR_MS), None)
        return Writes() if within is None else self.writes.since(within.writes)


class Reactions(msgspec.Struct, array_like=True):
    """Reaction times of the controller."""

    by_event: dict[str, ReactionTimes] = {}
    slowest: tuple[SlowReaction, ...] = ()
