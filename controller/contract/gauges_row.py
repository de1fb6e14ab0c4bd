"""The row of a cluster's counts, one a heartbeat."""

from __future__ import annotations

from typing import Annotated, ClassVar

import msgspec

from controller.contract.records import Int64
from controller.contract.row import Count, Moment, Row

REACTION_BUCKETS_MS = (10, 25, 50, 100, 250, 500, 1_000, 2_500, 5_000, 10_000, 30_000, 60_000)

_Buckets = Annotated[
    tuple[Count, ...], msgspec.Meta(min_length=len(REACTION_BUCKETS_MS) + 1, max_length=len(REACTION_BUCKETS_MS) + 1)
]


class ReactionTimes(msgspec.Struct, frozen=True):
    """How long the controller took from an event's cause to its first and to its last write, as ZooKeeper shows it.

    Counts by `REACTION_BUCKETS_MS`, one more than there are bounds: the last is of what took longer.
    """

    first: _Buckets = (0,) * (len(REACTION_BUCKETS_MS) + 1)
    first_sum_ms: Count = 0
    last: _Buckets = (0,) * (len(REACTION_BUCKETS_MS) + 1)
    last_sum_ms: Count = 0


class SlowReaction(msgspec.Struct, frozen=True):
    """One of the controller's slowest reactions: the event, its cause in ZooKeeper, and its writes after that."""

    event: str
    cause: str
    zxid: Int64
    began_ms: Moment
    controller_epoch: Int64
    first_ms: Int64
    last_ms: Int64


class Maintenance(msgspec.Struct, frozen=True):
    """A maintenance window in force, of these brokers, or of the whole cluster where it names none."""

    brokers: tuple[Int64, ...]
    until_ms: Int64  # by the wall clock, as it was announced
    reason: str = ""


class GaugesRow(Row, frozen=True, kw_only=True, gc=False, tag="gauges"):
    """A cluster's counts, in Kafka's own definitions where Kafka has the gauge; written at every heartbeat."""

    output: ClassVar[str] = "gauges"

    ready: bool  # a complete snapshot has been applied
    session: str  # the forwarder's ZooKeeper session: connected | suspended | lost | unknown
    watch_mode: str  # persistent | one-shot | unknown
    controller: Int64  # broker id, -1 nobody
    controller_epoch: Int64
    controller_changes: Count  # since this state began
    active_brokers: Int64
    topics: Int64
    partitions: Int64  # with a leader and ISR, as GlobalPartitionCount
    partitions_by_state: dict[str, Int64]
    replicas_by_state: dict[str, Int64]
    offline_partitions: Int64
    leaderless_partitions: Int64  # no live leader right now, election due or not
    under_replicated_partitions: Int64
    under_min_isr_partitions: Int64
    at_min_isr_partitions: Int64
    preferred_replica_imbalance: Int64
    topics_to_delete: Int64
    replicas_to_delete: Int64
    topics_ineligible_to_delete: Int64
    replicas_ineligible_to_delete: Int64
    leaders_by_broker: dict[Int64, Int64]
    replicas_by_broker: dict[Int64, Int64]
    under_replicated_by_broker: dict[Int64, Int64] = {}  # by the leader, as its ReplicaManager counts
    under_min_isr_by_broker: dict[Int64, Int64] = {}
    at_min_isr_by_broker: dict[Int64, Int64] = {}
    sole_in_sync_by_broker: dict[Int64, Int64] = {}  # partitions that only this broker, live or not, has in sync
    reassigning_partitions: Int64 = 0
    pending_writes: Int64  # writes that the controller must still do
    records: dict[str, Count]  # applied, by kind, since this state began
    elections: dict[str, Count]  # confirmed leader elections, by strategy
    isr_changes: dict[str, Count]  # shrink | expand
    refused: Count  # znodes that could not be read, since this state began
    divergences: dict[str, Count]  # by kind
    reactions: dict[str, ReactionTimes] = {}  # the controller's, by kind of event
    slowest_reactions: tuple[SlowReaction, ...] = ()
    maintenance: tuple[Maintenance, ...] = ()  # the windows in force

    def subject_key(self) -> str:
        """One row a cluster."""
        return f"{self.cluster}/gauges"
