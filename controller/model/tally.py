"""What is counted of a cluster, kept as partitions change."""

from __future__ import annotations

from typing import NamedTuple

import msgspec

from controller.contract.gauges_row import ReactionTimes, SlowReaction


class CountingRules(NamedTuple):
    """What the counts depend on beside the topics."""

    least_in_sync: int  # where a topic does not say so itself
    least_is_capped: bool  # a partition never needs more than it has replicas
    adding_need_not_lead: bool  # though they are preferred
    adding_need_not_follow: bool  # a partition is not under-replicated without them
    least_in_sync_on: tuple[tuple[int, int], ...] = ()  # on leaders that have a setting of their own

    def least_in_sync_under(self, leader: int) -> int:
        """What holds on this leader where a topic does not say so itself."""
        return (
            dict(self.least_in_sync_on).get(leader, self.least_in_sync) if self.least_in_sync_on else self.least_in_sync
        )


class IssueGroup(msgspec.Struct, frozen=True, array_like=True):
    """Partitions that suffer from the same because of the same brokers; see `troubles`."""

    count: int
    since_ms: int
    examples: tuple[str, ...]


class Tally(msgspec.Struct, array_like=True):
    """What happened since this state began, and what there is as of the last step that was followed."""

    happened: dict[str, int] = {}
    gauges: dict[str, int] = {}
    issues: dict[str, IssueGroup] = {}  # of partitions, by group
    offline_by_topic: dict[str, int] = {}
    judged_by: CountingRules | None = None  # when all partitions were last judged by one and the same


class Reactions(msgspec.Struct, array_like=True):
    """How long the controller took to react."""

    by_event: dict[str, ReactionTimes] = {}
    slowest: tuple[SlowReaction, ...] = ()
