"""The rows of what there is: partitions, brokers, the controller, the migration, and where an output begins."""

from __future__ import annotations

from typing import ClassVar

from controller.contract.records import Int64
from controller.contract.row import Moment, Row


class PartitionRow(Row, frozen=True, gc=False, tag="partition"):
    """Partition as it is now: its state in ZooKeeper, the controller's next write, and its problem."""

    output: ClassVar[str] = "metadata"

    topic: str
    partition: Int64
    state: str  # NewPartition | OnlinePartition | OfflinePartition | NonExistentPartition (the row's tombstone)
    leader: Int64  # in ZooKeeper: -1 none
    leader_epoch: Int64
    isr: tuple[Int64, ...]
    replicas: tuple[Int64, ...]
    adding_replicas: tuple[Int64, ...] = ()
    removing_replicas: tuple[Int64, ...] = ()
    controller_epoch: Int64 = -1
    partition_epoch: Int64 = -1  # the state znode's data version
    predicted_leader: Int64 | None = None  # set while the controller has a write due
    predicted_leader_epoch: Int64 | None = None
    predicted_isr: tuple[Int64, ...] | None = None
    problem: str | None = None  # why the partition cannot be used, or what it lacks: see `topics.Problem`
    problem_since_ms: Moment | None = None
    reason: str | None = None  # the problem as a sentence that names brokers and zxids
    deleting: bool = False  # its topic is queued for deletion: nothing is wrong with it any more
    writable_acks_all: bool | None = None  # its leader accepts acks=all, as far as ZooKeeper shows; null: not known
    in_sync_lacking: Int64 = 0  # replicas that must still get in sync before its leader accepts acks=all again
    in_sync_candidates: tuple[Int64, ...] = ()  # the replicas that can make up for them

    def subject_key(self) -> str:
        """Key with one row a partition."""
        return f"{self.cluster}/partition/{self.topic}/{self.partition}"


class BrokerRow(Row, frozen=True, kw_only=True, gc=False, tag="broker"):
    """Broker registration as it is now."""

    output: ClassVar[str] = "metadata"

    broker: Int64
    registered: bool
    epoch: Int64  # the czxid of its znode
    since_ms: Moment
    endpoints: tuple[str, ...] = ()  # of an inferred broker those that it registered last
    rack: str | None = None
    forgotten: bool = False  # it left a day ago and hosts no replicas: this is its last row
    inferred: bool = False  # not registered in ZooKeeper: ISRs and leaders show that it lives in KRaft mode
    left_in_order: bool | None = None  # how a broker that is not registered left; null: it is, or was never seen

    def subject_key(self) -> str:
        """Key with one row a broker."""
        return f"{self.cluster}/broker/{self.broker}"


class ControllerRow(Row, frozen=True, kw_only=True, gc=False, tag="controller"):
    """Controller of the cluster now; broker -1 when there is none."""

    output: ClassVar[str] = "metadata"

    broker: Int64
    epoch: Int64
    since_ms: Moment
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
    since_ms: Moment  # when the phase began
    leader: Int64  # id of the KRaft controller that owns /controller, -1 none
    kraft_epoch: Int64  # its epoch in KRaft, -1 none
    controller_epoch: Int64  # in /controller_epoch
    offset: Int64  # in /migration: how far of KRaft's log ZooKeeper is; -1 nothing is copied
    pulse_ms: Moment | None  # when /migration was last written; null: it is not there, or was not written since
    highest_state_epoch: Int64  # highest controller epoch in a partition's state
    rollback: str  # yes | raise_epoch | loses | no | done: whether ZooKeeper's controllers can take over again
    rollback_epoch: Int64 | None  # what /controller_epoch must at least be before, where it is less
    rollback_sentence: str
    next_step: str  # a sentence: what the migration waits for, by name, or what comes next
    zookeeper_brokers: tuple[Int64, ...] = ()  # registered in ZooKeeper, with the migration flag or without
    kraft_brokers: tuple[Int64, ...] = ()  # inferred: they lead or are in sync though ZooKeeper has them not
    missing_brokers: tuple[Int64, ...] = ()  # with replicas, and neither
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
