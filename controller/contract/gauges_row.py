"""Row of a cluster's counts, published at each heartbeat, and the names of the rules of inference that it counts by."""

from __future__ import annotations

from typing import Annotated, ClassVar, Final

import msgspec

from controller.contract.forwarder_status import Ensemble
from controller.contract.ids import NO_BROKER, ControllerEpoch
from controller.contract.records import Int64
from controller.contract.row import Count, MomentMs, Row, RowBrokerEpoch, RowBrokerId, RowControllerEpoch, RowZxid
from controller.contract.znodes import ReassignmentEntry


class Writes(msgspec.Struct, frozen=True, array_like=True):
    """The controller's writes of partition states, by how they were explained."""

    expected: int = 0
    inferred: int = 0
    unexplained: int = 0

    def since(self, earlier: Writes) -> Writes:
        """Return the writes that came after the earlier count."""
        return Writes(
            self.expected - earlier.expected,
            self.inferred - earlier.inferred,
            self.unexplained - earlier.unexplained,
        )

    @property
    def agreement(self) -> float | None:
        """Return the share that the controller's rules explain, expected or inferred. Return None without writes."""
        explained = self.expected + self.inferred
        counted = explained + self.unexplained
        return explained / counted if counted else None


REACTION_BUCKETS_MS = (10, 25, 50, 100, 250, 500, 1_000, 2_500, 5_000, 10_000, 30_000, 60_000)

_Buckets = Annotated[
    tuple[Count, ...], msgspec.Meta(min_length=len(REACTION_BUCKETS_MS) + 1, max_length=len(REACTION_BUCKETS_MS) + 1)
]


Share = Annotated[float, msgspec.Meta(ge=0, le=1)]


class ReactionTimes(msgspec.Struct, frozen=True):
    """Histograms of the time from an event's cause to its first and to its last write, as ZooKeeper shows them.

    The buckets end at `REACTION_BUCKETS_MS`. One more bucket counts longer times.
    """

    first: _Buckets = (0,) * (len(REACTION_BUCKETS_MS) + 1)
    first_sum_ms: Count = 0
    last: _Buckets = (0,) * (len(REACTION_BUCKETS_MS) + 1)
    last_sum_ms: Count = 0


class SlowReaction(msgspec.Struct, frozen=True):
    """One of the controller's slowest reactions, with the event, its cause in ZooKeeper, and the times to writes."""

    event: str
    cause: str
    zxid: RowZxid
    began_ms: MomentMs
    controller_epoch: RowControllerEpoch
    first_ms: Int64
    last_ms: Int64


class Maintenance(msgspec.Struct, frozen=True):
    """Maintenance window in force for these brokers, or for the whole cluster if it names no broker."""

    brokers: tuple[RowBrokerId, ...]
    until_ms: Int64  # by the wall clock, as the operator gave it
    reason: str = ""


class PendingEvent(msgspec.Struct, frozen=True):
    """Event of the controller with writes that ZooKeeper does not show yet."""

    id: Int64
    event: str  # by Kafka's name
    cause: str
    zxid: RowZxid  # of the change that caused it
    time_ms: MomentMs
    writes: Count


class ClusterStatus(msgspec.Struct, frozen=True, omit_defaults=True):
    """Facts beside topics, brokers and /controller that decide the controller's next steps, without defaults."""

    read_ms: MomentMs = 0  # when the complete read began from which the state was derived
    acts: bool = True  # whether the controller has taken over and not resigned
    term_epoch: RowControllerEpoch = ControllerEpoch(-1)  # of the newest controller that took over
    term_broker: RowBrokerId = NO_BROKER
    duplicate_topic_ids: tuple[tuple[str, str, str], ...] = ()  # id, and two topics that have it
    reassign: tuple[ReassignmentEntry, ...] | None = None  # the first 200 in /admin/reassign_partitions, null if absent
    preferred: tuple[ReassignmentEntry, ...] | None = None  # the first 200 in /admin/preferred_replica_election
    reassign_unwatched: bool = False  # the controller ignores the next /admin/reassign_partitions, until a failover
    poisoned: dict[RowBrokerId, RowBrokerEpoch] = {}  # KAFKA-12315: broker -> epoch of its registration
    shutting_down: tuple[RowBrokerId, ...] = ()  # brokers in a controlled shutdown
    never_registered: tuple[RowBrokerId, ...] = ()  # wrong ids in assignments, as far as ZooKeeper shows
    pending: tuple[PendingEvent, ...] = ()  # the oldest 50
    release: str = ""  # of the brokers, if the operator gave it, otherwise it follows from `evidence`
    evidence: dict[str, Int64] = {}  # versions in znodes that show the release
    settings: dict[str, bool | Int64] = {}  # static broker settings that the operator gave, by Kafka's names
    dynamic_settings: dict[str, dict[str, str]] = {}  # in /config/brokers, by broker id or <default>


class GaugesRow(Row, frozen=True, kw_only=True, gc=False, tag="gauges"):
    """Gauges of a cluster, written at every heartbeat. A gauge that Kafka has too is defined as in Kafka."""

    output: ClassVar[str] = "gauges"

    ready: bool  # a complete read has been applied
    session: str  # the forwarder's ZooKeeper session: connected | suspended | lost | unknown | replay (of the past)
    watch_mode: str  # persistent | one-shot | unknown | transaction-log
    controller: RowBrokerId  # broker id, -1 none
    controller_epoch: RowControllerEpoch
    controller_changes: Count  # since this state was created
    active_brokers: Int64
    topics: Int64
    partitions: Int64  # with a leader and ISR, as GlobalPartitionCount
    partitions_by_state: dict[str, Int64]
    replicas_by_state: dict[str, Int64]
    offline_partitions: Int64
    leaderless_partitions: Int64  # without a live leader now, whether an election is due or not
    under_replicated_partitions: Int64
    under_min_isr_partitions: Int64
    at_min_isr_partitions: Int64
    preferred_replica_imbalance: Int64
    topics_to_delete: Int64
    replicas_to_delete: Int64
    topics_ineligible_to_delete: Int64
    replicas_ineligible_to_delete: Int64
    leaders_by_broker: dict[RowBrokerId, Int64]
    replicas_by_broker: dict[RowBrokerId, Int64]
    under_replicated_by_broker: dict[RowBrokerId, Int64] = {}  # by leader, as the leader's ReplicaManager counts
    under_min_isr_by_broker: dict[RowBrokerId, Int64] = {}
    at_min_isr_by_broker: dict[RowBrokerId, Int64] = {}
    sole_in_sync_by_broker: dict[RowBrokerId, Int64] = {}  # partitions whose ISR is this broker alone, live or not
    reassigning_partitions: Int64 = 0
    pending_writes: Int64  # expected writes of the controller that ZooKeeper has not shown yet
    records: dict[str, Count]  # applied, by kind, since this state was created
    elections: dict[str, Count]  # leader elections seen in ZooKeeper, by strategy
    isr_changes: dict[str, Count]  # shrink | expand
    refused: Count  # znodes that could not be read, since this state was created
    divergences: dict[str, Count]  # by kind
    reactions: dict[str, ReactionTimes] = {}  # the controller's, by kind of event
    slowest_reactions: tuple[SlowReaction, ...] = ()
    writes: dict[str, Count] = {}  # of partition states by the controller: expected | inferred | unexplained
    inferences: dict[str, Count] = {}  # inferred writes, by rule
    maintenance: tuple[Maintenance, ...] = ()  # the windows in force
    writes_of_last_hour: dict[str, Int64] = {}  # like `writes`, but in the last 55 to 60 minutes
    agreement: Share | None = None  # share of expected and inferred writes, None without any write
    agreement_of_last_hour: Share | None = None
    status: ClusterStatus = ClusterStatus()
    inferred_events: dict[str, Count] = {}  # events that no znode announced, by the rule that inferred them
    ensemble: Ensemble = Ensemble()  # as its servers described it in the newest round of questions

    def subject_key(self) -> str:
        """Return the key of the cluster's gauges, under which compaction keeps one row."""
        return f"{self.cluster}/gauges"


# Rules that explain a written partition state.
INFERENCES_BY_WRITE: Final = (
    "loaded-before-registration",
    "created-without-broker",
    "never-poisoned",
    "deletion-answered",
    "deletion-unanswered",
    "completed-without-leader",
    "elected-after-all",
    "preferred-election",
    "log-dir-failed",
    "shutdown-reached-late",
    "shutdown-asked",
    "preferred-election-in-vain",
    "reassigned-again",
    "creation-found-early",
    "failure-found-early",
    "unclean-election",
    "deletion-found-early",
    "failover-found-early",
    "read-together",
    "read-by-load",
)

# All rules. Those that are not above rest on time, a session's end, another controller or a topic's znode.
INFERENCES: Final = (
    *INFERENCES_BY_WRITE,
    "shutdown-asked-again",
    "shutdown-asked-before-session-end",
    "ran-to-fenced-write",
    "ran-unfenced",
    "deletion-answered-in-time",
    "reassignment-completed-unread",
    "never-missed",
)
