"""Rows of the present cluster: partitions, topics, brokers, the controller, the migration, and an output's beginning.

`restore/context_of_rows.py` builds the cluster's context from these rows and the newest gauges.
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
    """Election that the controller owes, because it wrote later events without this election."""

    leader: RowBrokerId
    leader_epoch: RowLeaderEpoch
    controller_epoch: RowControllerEpoch
    since_ms: MomentMs


class PartitionDetails(msgspec.Struct, frozen=True, omit_defaults=True, gc=False):
    """Facts that few partitions have. Fields with their default are left out."""

    recovering: bool = False  # whether its leader has yet to confirm an unclean election
    replica_states: dict[str, tuple[RowBrokerId, ...]] = {}  # brokers by their replica's state, without OnlineReplica
    offline_dirs: tuple[RowBrokerId, ...] = ()  # replicas whose log directory failed
    due_events: tuple[Int64, ...] = ()  # ids of the events whose writes are due, in order (see `PendingEvent`)
    assignment_in_zookeeper: Assignment | None = None  # if it differs from the controller's
    assignments_due: tuple[Assignment, ...] = ()  # due writes to the topic's znode, in order
    passed_over: PassedOver | None = None


class PartitionRow(Row, frozen=True, gc=False, tag="partition"):
    """Partition as it is now, with its state in ZooKeeper, the controller's next write, and its problem."""

    output: ClassVar[str] = "metadata"

    topic: str
    partition: RowPartitionId
    state: str  # in the controller's memory: NewPartition | OnlinePartition | OfflinePartition | NonExistentPartition
    leader: RowBrokerId  # in ZooKeeper, -1 none
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
    problem: str | None = None  # why the partition cannot be used, or lacks replicas (see `problem.Problem`)
    problem_since_ms: MomentMs | None = None
    reason: str | None = None  # the problem as a sentence that names brokers and zxids
    deleting: bool = False  # its topic is queued for deletion, so the partition has no problem any more
    writable_acks_all: bool | None = None  # its leader accepts acks=all, as far as ZooKeeper shows, null if not known
    in_sync_lacking: Int64 = 0  # replicas that must still get in sync before its leader accepts acks=all again
    in_sync_candidates: tuple[RowBrokerId, ...] = ()  # replicas out of the ISR, `in_sync_lacking` of which must return
    details: PartitionDetails | None = None  # null if each field has its default
    removed: bool = False  # the partition no longer exists, and this is its last row

    def subject_key(self) -> str:
        """Return the partition's key, under which compaction keeps one row."""
        return f"{self.cluster}/partition/{self.topic}/{self.partition}"

    @property
    def ends_subject(self) -> bool:
        """Return whether the partition no longer exists."""
        return self.removed


class TopicRow(Row, frozen=True, kw_only=True, gc=False, tag="topic"):
    """Topic as it is now, with its settings, its size, and the state of its deletion."""

    output: ClassVar[str] = "metadata"

    topic: str
    topic_id: str | None
    min_insync_replicas: Int64 | None  # its own setting, null if the brokers' setting holds
    unclean_election: bool | None  # its own unclean.leader.election.enable, null if the brokers' setting holds
    partitions: Int64
    replication_factors: tuple[Int64, ...]  # the different numbers of replicas of its partitions, in order
    deletion: str | None  # queued | held (cannot start) | started | waiting (for a broker), null if it is not deleted
    request_removed: bool = False  # its entry in /admin/delete_topics is gone, so the next controller keeps the topic
    removed: bool = False  # the topic no longer exists, and this is its last row

    def subject_key(self) -> str:
        """Return the topic's key, under which compaction keeps one row."""
        return f"{self.cluster}/topic/{self.topic}"

    @property
    def ends_subject(self) -> bool:
        """Return whether the topic no longer exists."""
        return self.removed


class BrokerRow(Row, frozen=True, kw_only=True, gc=False, tag="broker"):
    """Broker as it is now. If it is not registered, its listeners, rack and release are from its last registration."""

    output: ClassVar[str] = "metadata"

    broker: RowBrokerId
    registered: bool
    epoch: RowBrokerEpoch  # the czxid of its znode, -1 without one
    since_ms: MomentMs  # when it registered, or when it left
    session: Int64 = 0  # the session that owns its znode
    endpoints: tuple[str, ...] = ()
    rack: str | None = None
    least_release: str | None = None  # oldest release that writes such a registration, by inter.broker.protocol.version
    forgotten: bool = False  # it left a day ago and hosts no replicas, and this is its last row
    inferred: bool = False  # not registered in ZooKeeper, but ISRs and leaders show that it lives in KRaft mode
    left_in_order: bool | None = None  # after a controlled shutdown, null if it is registered or was never seen
    left_zxid: RowZxid = UNKNOWN_ZXID  # of the transaction that ended its registration, -1 if a later read showed it

    def subject_key(self) -> str:
        """Return the broker's key, under which compaction keeps one row."""
        return f"{self.cluster}/broker/{self.broker}"

    @property
    def ends_subject(self) -> bool:
        """Return whether the broker was forgotten."""
        return self.forgotten


class ControllerRow(Row, frozen=True, kw_only=True, gc=False, tag="controller"):
    """Controller of the cluster now. The broker is -1 if there is no controller."""

    output: ClassVar[str] = "metadata"

    broker: RowBrokerId
    epoch: RowControllerEpoch
    since_ms: MomentMs
    session: Int64 = 0  # the present or last owner of /controller, 0 if /controller is persistent
    overwritten: bool = False  # /controller was written by hand, so its broker never took over
    kraft_epoch: Int64 = -1  # KRaft's own epoch if a KRaft controller, with the id `broker`, owns /controller

    def subject_key(self) -> str:
        """Return the key of the cluster's controller, under which compaction keeps one row."""
        return f"{self.cluster}/controller"


class MigrationRow(Row, frozen=True, kw_only=True, gc=False, tag="migration"):
    """Migration to KRaft as ZooKeeper shows it now, published at each change, and at each heartbeat while KRaft leads.

    Only a cluster in which a migration was ever seen has this row.
    """

    output: ClassVar[str] = "metadata"

    phase: str  # zookeeper | waiting | claimed | syncing | hybrid | dual_write | silent | rolled_back
    since_ms: MomentMs  # when the phase began
    leader: RowBrokerId  # id of the KRaft controller that owns /controller, -1 none
    kraft_epoch: Int64  # the epoch of that controller in KRaft, -1 none
    controller_epoch: RowControllerEpoch  # in /controller_epoch
    exists: bool = True  # whether /migration is there
    offset: Int64  # in /migration, the place in KRaft's log up to which ZooKeeper has a copy, -1 if there is no copy
    pulse_ms: MomentMs | None  # when /migration was last written, null if it is absent or not written since
    highest_state_epoch: RowControllerEpoch  # highest controller epoch in a partition's state
    rollback: str  # whether ZooKeeper's controllers can take over again: yes | raise_epoch | loses | no | done
    rollback_epoch: Int64 | None  # the least /controller_epoch that a rollback needs, if the present one is lower
    rollback_sentence: str
    next_step: str  # a sentence with the names that the migration waits for, or the step that comes next
    zookeeper_brokers: tuple[RowBrokerId, ...] = ()  # registered in ZooKeeper, with the migration flag or without
    kraft_brokers: tuple[RowBrokerId, ...] = ()  # not in ZooKeeper, but leaders or in sync
    missing_brokers: tuple[RowBrokerId, ...] = ()  # with replicas, but in neither of these lists
    leftovers: tuple[str, ...] = ()  # what an earlier attempt left, or what waits in /admin for a rollback
    never_elected_partitions: Int64 = 0  # after a rollback the controller elects no leader for them
    never_elected_examples: tuple[str, ...] = ()

    def subject_key(self) -> str:
        """Return the key of the cluster's migration, under which compaction keeps one row."""
        return f"{self.cluster}/migration"


class BeginningRow(Row, frozen=True, kw_only=True, gc=False, tag="beginning"):
    """New beginning of a cluster's state. All earlier rows of the cluster in this output no longer hold.

    The row comes in each of `STANDING_OUTPUTS`, whose rows hold until a newer row has the same key.
    """

    output: ClassVar[str] = "metadata"

    forgotten: bool = False  # an operator forgot the cluster, so no rows follow unless it is watched again

    def subject_key(self) -> str:
        """Return the key of the cluster's beginning, under which compaction keeps one row."""
        return f"{self.cluster}/beginning"


MetadataRow = BrokerRow | ControllerRow | MigrationRow | PartitionRow | TopicRow  # of a cluster's present
