"""Counts of a cluster, kept as partitions change."""

from __future__ import annotations

from typing import Any, Final, NamedTuple

import msgspec

from controller.contract.gauges_row import ReactionTimes, SlowReaction, Writes
from controller.contract.ids import BrokerId
from controller.rules.states import PartitionState, ReplicaState
from controller.rules.topic_ranks import TopicRanks

ByBroker = dict[BrokerId, int]


class GaugeCounts(msgspec.Struct, array_like=True):
    """Counts by Kafka's definitions. Counts by broker omit brokers without a count."""

    topics: int = 0
    topics_to_delete: int = 0
    topics_ineligible_to_delete: int = 0
    topics_with_id: int = 0
    partitions: int = 0  # with a leader and ISR
    leaderless: int = 0  # without a live leader now, an election due or not
    replicas_to_delete: int = 0
    replicas_ineligible_to_delete: int = 0
    partitions_in: list[int] = msgspec.field(default_factory=lambda: [0] * (max(PartitionState) + 1))  # by state
    replicas_in: list[int] = msgspec.field(default_factory=lambda: [0] * (max(ReplicaState) + 1))  # by state
    replicas_on: ByBroker = {}
    named_leader: ByBroker = {}  # -1 too. Topics under deletion count neither here nor in the next three
    preferring: ByBroker = {}  # by the preferred leader
    imbalanced: ByBroker = {}  # by the preferred leader, which does not lead
    sole_in_sync: ByBroker = {}  # by the one in-sync replica
    led_by: ByBroker = {}
    under_replicated: ByBroker = {}  # by leader, as are the next three
    at_min_isr: ByBroker = {}
    under_min_isr: ByBroker = {}
    rejecting: ByBroker = {}  # under the minimum, also by a dead replica that is still in the ISR
    unproven_on: ByBroker = {}  # replicas that need not exist, as of a partition without a state, or being added

    def copy(self) -> GaugeCounts:
        """Return a copy to change."""
        values: tuple[Any, ...] = msgspec.structs.astuple(self)
        copied: list[Any] = [value if isinstance(value, int) else value.copy() for value in values]
        return GaugeCounts(*copied)

    @property
    def by_leadership(self) -> tuple[ByBroker, ...]:
        """Return the counts that follow from the leader and the ISR."""
        return (
            self.named_leader,
            self.preferring,
            self.imbalanced,
            self.sole_in_sync,
            self.led_by,
            self.under_replicated,
            self.at_min_isr,
            self.under_min_isr,
            self.rejecting,
        )

    @property
    def imbalanced_partitions(self) -> int:
        """Return the number of partitions whose preferred replica does not lead."""
        return sum(self.imbalanced.values())

    @property
    def under_replicated_partitions(self) -> int:
        """Return the number of partitions with fewer in-sync replicas than replicas."""
        return sum(self.under_replicated.values())

    @property
    def at_min_isr_partitions(self) -> int:
        """Return the number of partitions with just as many in-sync replicas as acks=all needs."""
        return sum(self.at_min_isr.values())

    @property
    def under_min_isr_partitions(self) -> int:
        """Return the number of partitions with fewer live in-sync replicas than acks=all needs."""
        return sum(self.rejecting.values())


class CountingRules(NamedTuple):
    """Rules that the counts depend on beside the topics."""

    least_in_sync: int  # min.insync.replicas of topics without an own setting
    least_is_capped: bool  # a partition never needs more in-sync replicas than it has replicas
    adding_need_not_lead: bool  # a preferred replica need not lead while it is being added
    adding_need_not_follow: bool  # a partition is not under-replicated for lack of replicas that are being added
    least_in_sync_on: tuple[tuple[BrokerId, int], ...] = ()  # by leader, where its broker has a setting of its own
    topic_ranks: TopicRanks = ()  # which decide the examples of a sentence
    uncapped: frozenset[BrokerId] = frozenset()  # leaders of an older release, which the cap does not concern

    def least_in_sync_under(self, leader: BrokerId) -> int:
        """Return the least number of in-sync replicas for topics without an own setting, on this leader."""
        return dict(self.least_in_sync_on).get(leader, self.least_in_sync)


class IssueGroup(msgspec.Struct, frozen=True, array_like=True):
    """Partitions with the same issue because of the same brokers (see `view/partition_issues.py`)."""

    count: int
    since_ms: int
    examples: tuple[str, ...]
    internal: int = 0  # partitions of internal topics among them
    ranks: tuple[int, ...] = ()  # of the examples' topics, the most important topic first


class WritesBefore(msgspec.Struct, frozen=True, array_like=True):
    """Writes before this moment, at which a span of `_SPAN_MS` begins."""

    time_ms: int
    writes: Writes


Counts = dict[str, int]


class Happened(msgspec.Struct, array_like=True):
    """Counters since the state was created."""

    records: Counts = {}  # applied, by kind
    elections: Counts = {}  # by strategy
    isr_changes: Counts = {}  # shrink | expand
    divergences: Counts = {}  # by kind
    refused: int = 0  # znodes that could not be read
    expected_writes: int = 0  # of partition states by the controller
    unexplained_writes: int = 0
    inferences: Counts = {}  # inferred writes, by rule
    inferred_events: Counts = {}  # events that no znode announced, by rule

    def copy(self) -> Happened:
        """Return a copy to change."""
        values: tuple[Any, ...] = msgspec.structs.astuple(self)
        copied: list[Any] = [value if isinstance(value, int) else value.copy() for value in values]
        return Happened(*copied)


# The last hour is counted by spans of five minutes, which are twelve small counts a cluster.
_SPAN_MS: Final = 5 * 60_000
_HOUR_MS: Final = 60 * 60_000


class Tally(msgspec.Struct, array_like=True):
    """Counters since this state was created, and gauges as of the last transaction."""

    happened: Happened = msgspec.field(default_factory=Happened)
    gauges: GaugeCounts = msgspec.field(default_factory=GaugeCounts)
    issues: dict[str, IssueGroup] = {}  # of partitions, by group
    offline_by_topic: dict[str, int] = {}
    judged_by: CountingRules | None = None  # the rules by which all partitions were last judged together
    hour: tuple[WritesBefore, ...] = ()  # the spans of the last hour in which something was written, the oldest first

    def count_write(self, time_ms: int, inferred_by: str | None = None, *, explained: bool = True) -> None:
        """Count a write of the controller at this moment of the cluster's time, by how it was explained."""
        if not self.hour or time_ms >= self.hour[-1].time_ms + _SPAN_MS:
            began_ms = time_ms - time_ms % _SPAN_MS
            kept = tuple(before for before in self.hour if before.time_ms > began_ms - _HOUR_MS)
            self.hour = (*kept, WritesBefore(began_ms, self.writes))
        happened = self.happened
        if inferred_by is not None:
            happened.inferences[inferred_by] = happened.inferences.get(inferred_by, 0) + 1
        elif explained:
            happened.expected_writes += 1
        else:
            happened.unexplained_writes += 1

    @property
    def writes(self) -> Writes:
        """Return the writes since this state was created."""
        happened = self.happened
        return Writes(happened.expected_writes, sum(happened.inferences.values()), happened.unexplained_writes)

    def writes_of_last_hour(self, now_ms: int) -> Writes:
        """Return the writes of the last 55 to 60 minutes, from the spans that began within the last hour."""
        within = next((before for before in self.hour if before.time_ms > now_ms - _HOUR_MS), None)
        return Writes() if within is None else self.writes.since(within.writes)


class Reactions(msgspec.Struct, array_like=True):
    """Reaction times of the controller."""

    by_event: dict[str, ReactionTimes] = {}
    slowest: tuple[SlowReaction, ...] = ()
