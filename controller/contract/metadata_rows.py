"""The rows of what there is: partitions, brokers, the controller, and where an output begins."""

from __future__ import annotations

from typing import ClassVar

from controller.contract.records import Int64
from controller.contract.row import Moment, Row


class PartitionRow(Row, frozen=True, gc=False, tag="partition"):
    """A partition as it is now: what ZooKeeper says, what the controller must write next, and what is wrong."""

    output: ClassVar[str] = "metadata"

    topic: str
    partition: Int64
    state: str  # NewPartition | OnlinePartition | OfflinePartition | NonExistentPartition (the row's tombstone)
    leader: Int64  # as ZooKeeper has it: -1 none
    leader_epoch: Int64
    isr: tuple[Int64, ...]
    replicas: tuple[Int64, ...]
    adding_replicas: tuple[Int64, ...] = ()
    removing_replicas: tuple[Int64, ...] = ()
    controller_epoch: Int64 = -1
    partition_epoch: Int64 = -1  # the state znode's data version
    predicted_leader: Int64 | None = None  # set while a write of the controller is due
    predicted_leader_epoch: Int64 | None = None
    predicted_isr: tuple[Int64, ...] | None = None
    problem: str | None = None  # see `topics.Problem`: why the partition cannot be used, or what it lacks
    problem_since_ms: Moment | None = None
    reason: str | None = None  # the problem as a sentence that names brokers and zxids
    deleting: bool = False  # the deletion of its topic was asked for: nothing is wrong with it any more
    writable_acks_all: bool | None = None  # a write with acks=all is taken, as far as ZooKeeper shows; null: not said
    in_sync_lacking: Int64 = 0  # of a led partition: so many more replicas must be in sync before it is taken again
    in_sync_candidates: tuple[Int64, ...] = ()  # the replicas of which so many would do

    def subject_key(self) -> str:
        """One row a partition."""
        return f"{self.cluster}/partition/{self.topic}/{self.partition}"


class BrokerRow(Row, frozen=True, kw_only=True, gc=False, tag="broker"):
    """A broker's registration as it is now."""

    output: ClassVar[str] = "metadata"

    broker: Int64
    registered: bool
    epoch: Int64  # the czxid of its znode
    since_ms: Moment
    endpoints: tuple[str, ...] = ()
    rack: str | None = None
    forgotten: bool = False  # it left a day ago and hosts nothing: this is its last row

    def subject_key(self) -> str:
        """One row a broker."""
        return f"{self.cluster}/broker/{self.broker}"


class ControllerRow(Row, frozen=True, kw_only=True, gc=False, tag="controller"):
    """Who is controller now; broker -1 when nobody is."""

    output: ClassVar[str] = "metadata"

    broker: Int64
    epoch: Int64
    since_ms: Moment

    def subject_key(self) -> str:
        """One row a cluster."""
        return f"{self.cluster}/controller"


class BeginningRow(Row, frozen=True, kw_only=True, gc=False, tag="beginning"):
    """What is known of the cluster begins anew: what this output said of it before is void.

    It comes in each of `STANDING_OUTPUTS`, whose rows hold until a newer one of the same key.
    """

    output: ClassVar[str] = "metadata"

    def subject_key(self) -> str:
        """One row a cluster."""
        return f"{self.cluster}/beginning"
