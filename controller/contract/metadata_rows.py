"""Rows of the present cluster: partitions, topics, brokers, the controller, the migration, and an output's beginning.

`restore/context_of_rows.py` builds the cluster's context from them, with the newest gauges.
"""

from __future__ import annotations

from typing import ClassVar

import msgspec

from controller.contract.ids import UNKNOWN_ZXID, ControllerEpoch
from controller.contract.records import Int64
from controller.contract.row import (
    MomentMs,
    Row,
    RowBrokerEpoch,
    RowBrokerId,
    RowControllerEpoch,
    RowLeaderEpoch,
    RowPartitionId,
    RowZxid,
)


class Assignment(msgspec.Struct, frozen=True, omit_defaults=True, gc=False):
    """Replicas of a partition, with the ones that are being added and removed."""

    replicas: tuple[RowBrokerId, ...]
    adding: tuple[RowBrokerId, ...] = ()
    removing: tuple[RowBrokerId, ...] = ()


class PassedOver(msgspec.Struct, frozen=True, gc=False):
    """Election that the controller owes: it wrote later events, and not this election."""

    leader: RowBrokerId
    leader_epoch: RowLeaderEpoch
    controller_epoch: RowControllerEpoch
    since_ms: MomentMs


class PartitionDetails(msgspec.Struct, frozen=True, omit_defaults=True, gc=False):
    """Facts that few partitions have, without fields that have their default."""

    recovering: bool = False  # led after an unclean election that its leader has not confirmed yet
    replica_states: dict[str, tuple[RowBrokerId, ...]] = {}  # brokers by their replica's state, but for OnlineReplica
    offline_dirs: tuple[RowBrokerId, ...] = ()  # replicas whose log directory failed
    due_events: tuple[Int64, ...] = ()  # ids of the events whose writes are due, in their order: see `PendingEvent`
    assignment_in_zookeeper: Assignment | None = None  # where it differs from the controller's
    assignments_due: tuple[Assignment, ...] = ()  # that the controller must write to the topic's znode, in their order
    passed_over: PassedOver | None = None


class PartitionRow(Row, frozen=True, gc=False, tag="partition"):
    """Partition as it is now: its state in ZooKeeper, the controller's next write, and its problem."""

    output: ClassVar[str] = "metadata"

    topic: str
    partition: RowPartitionId
    state: str  # NewPartition | OnlinePartition | OfflinePartition | NonExistentPartition: in the controller's memory
    leader: RowBrokerId  # in ZooKeeper: -1 none
    leader_epoch: RowLeaderEpoch
    isr: tuple[RowBrokerId, ...]
    replicas: tuple[RowBrokerId, ...]
    adding_replicas: tuple[RowBrokerId, ...] = ()
    removing_replicas: tuple[RowBrokerId, ...] = ()
    controller_epoch: RowControllerEpoch = ControllerEpoch(-1)
    partition_epoch: Int64 = -1  # the state znode's data version
    predicted_leader: RowBrokerId | None = None  # set while the controller has a write due
    predicted_leader_epoch: RowLeaderEpoch | None = None
    predicted_isr: tuple[RowBrokerId, ...] | None = None
    problem: str | None = None  # why the partition cannot be used, or what it lacks: see `topics.Problem`
    problem_since_ms: MomentMs | None = None
    reason: str | None = None  # the problem as a sentence that names brokers and zxids
    deleting: bool = False  # its topic is queued for deletion: nothing is wrong with it any more
    writable_acks_all: bool | None = None  # its leader accepts acks=all, as far as ZooKeeper shows; null: not known
    in_sync_lacking: Int64 = 0  # replicas that must still get in sync before its leader accepts acks=all again
    in_sync_candidates: tuple[RowBrokerId, ...] = ()  # the replicas that can make up for them
    details: PartitionDetails | None = None  # null: each has its default
    removed: bool = False  # the partition no longer exists: this is its last row

    def subject_key(self) -> str:
        """Key with one row a partition."""
        return f"{self.cluster}/partition/{self.topic}/{self.partition}"

    @property
    def ends_subject(self) -> bool:
        """Whether the partition no longer exists."""
        return self.removed


class TopicRow(Row, frozen=True, kw_only=True, gc=False, tag="topic"):
    """Topic as it is now: its settings, its size, and the state of its deletion."""

    output: ClassVar[str] = "metadata"

    topic: str
    topic_id: str | None
    min_insync_replicas: Int64 | None  # its own setting; null: the brokers' one holds
    unclean_election: bool | None  # its own unclean.leader.election.enable; null: the brokers' one holds
    partitions: Int64
    replication_factors: tuple[Int64, ...]  # each number of replicas that one of its partitions has, in order
    deletion: str | None  # queued | held (cannot start) | started | waiting (for a broker); null: it is not deleted
    request_removed: bool = False  # its entry in /admin/delete_topics is gone: the next controller keeps the topic
    removed: bool = False  # the topic no longer exists: this is its last row

    def subject_key(self) -> str:
        """Key with one row a topic."""
        return f"{self.cluster}/topic/{self.topic}"

    @property
    def ends_subject(self) -> bool:
        """Whether the topic no longer exists."""
        return self.removed


class BrokerRow(Row, frozen=True, kw_only=True, gc=False, tag="broker"):
    """Broker as it is now; of one that is not registered, listeners, rack and release are those it had last."""

    output: ClassVar[str] = "metadata"

    broker: RowBrokerId
    registered: bool
    epoch: RowBrokerEpoch  # the czxid of its znode, -1 without one
    since_ms: MomentMs  # when it registered, or when it left
    session: Int64 = 0  # that owns its znode
    endpoints: tuple[str, ...] = ()
    rack: str | None = None
    least_release: str | None = None  # oldest release that registers as it does, by inter.broker.protocol.version
    forgotten: bool = False  # it left a day ago and hosts no replicas: this is its last row
    inferred: bool = False  # not registered in ZooKeeper: ISRs and leaders show that it lives in KRaft mode
    left_in_order: bool | None = None  # how a broker that is not registered left; null: it is, or was never seen
    left_zxid: RowZxid = UNKNOWN_ZXID  # of the transaction that ended its registration; -1: a later read showed it

    def subject_key(self) -> str:
        """Key with one row a broker."""
        return f"{self.cluster}/broker/{self.broker}"

    @property
    def ends_subject(self) -> bool:
        """Whether the broker was forgotten."""
        return self.forgotten


class ControllerRow(Row, frozen=True, kw_only=True, gc=False, tag="controller"):
    """Controller of the cluster now; broker -1 when there is none."""

    output: ClassVar[str] = "metadata"

    broker: RowBrokerId
    epoch: RowControllerEpoch
    since_ms: MomentMs
    session: Int64 = 0  # that owns /controller, or was the last that did; 0 if /controller is persistent
    overwritten: bool = False  # /controller was written by hand: that broker never took over
    kraft_epoch: Int64 = -1  # KRaft's own epoch where a KRaft controller owns /controller; `broker` is its id then

    def subject_key(self) -> str:
        """Key with one row a cluster."""
        return f"{self.cluster}/controller"


class MigrationRow(Row, frozen=True, kw_only=True, gc=False, tag="migration"):
    """Migration to KRaft as ZooKeeper shows it now, at each change, and at each heartbeat while KRaft leads.

    Only a cluster in which a migration was ever seen has one.
    """

    output: ClassVar[str] = "metadata"

    phase: str  # zookeeper | waiting | claimed | syncing | hybrid | dual_write | silent | rolled_back
    since_ms: MomentMs  # when the phase began
    leader: RowBrokerId  # id of the KRaft controller that owns /controller, -1 none
    kraft_epoch: Int64  # its epoch in KRaft, -1 none
    controller_epoch: RowControllerEpoch  # in /controller_epoch
    exists: bool = True  # whether /migration is there
    offset: Int64  # in /migration: how far of KRaft's log ZooKeeper is; -1 nothing is copied
    pulse_ms: MomentMs | None  # when /migration was last written; null: it is not there, or was not written since
    highest_state_epoch: RowControllerEpoch  # highest controller epoch in a partition's state
    rollback: str  # yes | raise_epoch | loses | no | done: whether ZooKeeper's controllers can take over again
    rollback_epoch: Int64 | None  # what /controller_epoch must at least be before, where it is less
    rollback_sentence: str
    next_step: str  # a sentence: what the migration waits for, by name, or what comes next
    zookeeper_brokers: tuple[RowBrokerId, ...] = ()  # registered in ZooKeeper, with the migration flag or without
    kraft_brokers: tuple[RowBrokerId, ...] = ()  # inferred: they lead or are in sync though ZooKeeper has them not
    missing_brokers: tuple[RowBrokerId, ...] = ()  # with replicas, and neither
    leftovers: tuple[str, ...] = ()  # what an earlier attempt left, or what waits in /admin for a rollback
    never_elected_partitions: Int64 = 0  # after a rollback: the controller elects no leader for them
    never_elected_examples: tuple[str, ...] = ()

    def subject_key(self) -> str:
        """Key with one row a cluster."""
        return f"{self.cluster}/migration"


class BeginningRow(Row, frozen=True, kw_only=True, gc=False, tag="beginning"):
    """Start of a cluster's state from nothing: all earlier rows of the cluster in this output are void.

    It comes in each of `STANDING_OUTPUTS`, whose rows hold until a newer one of the same key.
    """

    output: ClassVar[str] = "metadata"

    forgotten: bool = False  # an operator forgot the cluster: no rows follow unless it is watched again

    def subject_key(self) -> str:
        """Key with one row a cluster."""
        return f"{self.cluster}/beginning"


MetadataRow = BrokerRow | ControllerRow | MigrationRow | PartitionRow | TopicRow  # of a cluster's present
