"""Counts of a cluster, kept as partitions change."""

from __future__ import annotations

from typing import NamedTuple

import msgspec

from controller.contract.gauges_row import ReactionTimes, SlowReaction


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
    """Partitions with the same issue because of the same brokers; see `derived/partition_issues.py`."""

    count: int
    since_ms: int
    examples: tuple[str, ...]


class Tally(msgspec.Struct, array_like=True):
    """Counters since this state was created, and gauges as of the last transaction."""

    happened: dict[str, int] = {}
    gauges: dict[str, int] = {}
    issues: dict[str, IssueGroup] = {}  # of partitions, by group
    offline_by_topic: dict[str, int] = {}
    judged_by: CountingRules | None = None  # the rules by which all partitions were last judged together


class Reactions(msgspec.Struct, array_like=True):
    """Reaction times of the controller."""

    by_event: dict[str, ReactionTimes] = {}
    slowest: tuple[SlowReaction, ...] = ()
