"""In-flight events of the controller, and the requests that they wait to send."""

from __future__ import annotations

from enum import Enum

import msgspec

from controller.contract.ids import NO_BROKER, BrokerEpoch, ControllerEpoch
from controller.model.brokers import Broker


class EventKind(Enum):
    """Events of the controller, by Kafka's names (`ControllerEvent`, 0.11 to 3.9)."""

    BROKER_CHANGE = "BrokerChange"
    BROKER_MODIFICATIONS = "BrokerModifications"
    UNCLEAN_LEADER_ELECTION_ENABLE = "UncleanLeaderElectionEnable"
    CONTROLLED_SHUTDOWN = "ControlledShutdown"
    REELECT = "Reelect"
    CONTROLLER_RESIGNATION = "ControllerResignation"
    CONTROLLER_FAILOVER = "ControllerFailover"
    LOG_DIR_EVENT_NOTIFICATION = "LogDirEventNotification"
    LEADER_AND_ISR_RESPONSE_RECEIVED = "LeaderAndIsrResponseReceived"
    REPLICA_LEADER_ELECTION = "ReplicaLeaderElection"
    AUTO_PREFERRED_REPLICA_LEADER_ELECTION = "AutoPreferredReplicaLeaderElection"
    TOPIC_CHANGE = "TopicChange"
    PARTITION_MODIFICATIONS = "PartitionModifications"
    TOPIC_DELETION = "TopicDeletion"
    TOPIC_DELETION_STOP_REPLICA_RESPONSE_RECEIVED = "TopicDeletionStopReplicaResponseReceived"
    TOPIC_UNCLEAN_LEADER_ELECTION_ENABLE = "TopicUncleanLeaderElectionEnable"
    ZK_PARTITION_REASSIGNMENT = "ZkPartitionReassignment"
    API_PARTITION_REASSIGNMENT = "ApiPartitionReassignment"
    PARTITION_REASSIGNMENT_ISR_CHANGE = "PartitionReassignmentIsrChange"
    ALTER_PARTITION_RECEIVED = "AlterPartitionReceived"
    UNEXPLAINED = "Unexplained"  # none of Kafka's: a write that nothing explains

    __hash__ = object.__hash__  # members are singletons: identity is enough, and much faster than the enum's own


class Sending(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """Request that waits to be sent; its partition states are entries with its ordinal in the partitions' queues."""

    ordinal: int
    api: str  # LeaderAndIsr | UpdateMetadata | StopReplica
    brokers: tuple[int, ...]
    partitions: int | None  # how many it was planned with; None: all partitions, without an entry in any queue
    deletes: bool = False  # StopReplica up to 2.5


class Batch(msgspec.Struct, frozen=True, array_like=True):
    """Requests that wait to be sent together after a batch of a state machine, with the live brokers of that time."""

    at_batch: int
    requests: tuple[Sending, ...]
    live_brokers: tuple[int, ...]
    broker_epochs: tuple[BrokerEpoch, ...]  # of the live brokers


class BrokersChanged(msgspec.Struct, frozen=True, array_like=True, tag=1):
    """BrokerChange: the brokers that failed, with their last registrations, and the broker that started."""

    failed: dict[int, Broker] = {}
    started: int = NO_BROKER


class UnprovenShutdown(msgspec.Struct, frozen=True, array_like=True, tag=2):
    """ControlledShutdown of a broker that may have asked again: the end of its session will show it."""

    broker: int


class UnknownBroker(msgspec.Struct, frozen=True, array_like=True, tag=3):
    """TopicChange with replicas on a broker that registered while the controller loaded its context."""

    broker: int


class Event(msgspec.Struct, array_like=True):
    """Event of the controller that is in flight: some of its planned actions are not certain yet.

    It runs in batches of the state machines, one after the other: the actions of a batch are certain once the event has
    begun and no earlier write of it is due. A transaction changes it; a context has it as a `StoredEvent`.
    """

    id: int
    kind: EventKind
    cause: str
    zxid: int
    time_ms: int
    epoch: ControllerEpoch
    due: list[int] = []  # writes by batch that ZooKeeper has not shown yet
    begun: bool = False  # a write of it was seen, or it has none
    pending: int = 0  # planned actions and request batches that are not certain yet
    topics: dict[str, None] = {}  # affected, in order
    batches: tuple[Batch, ...] = ()  # of requests that are not certain yet
    taken_up: bool = False  # no older event held the controller up, if it was still active
    proven_ms: int = 0  # from then on it is certain without a write; a controller may fail before it handles the event
    first_write_ms: int = 0  # when its first write was seen, 0 while none was
    last_write_ms: int = 0
    controller: int = NO_BROKER  # the broker that handles it
    held_by: int = -1  # the older event whose due writes stand before its next batch
    detail: BrokersChanged | UnprovenShutdown | UnknownBroker | None = None
    inferred_by: str = ""  # the rule of inference that it rests on; empty: a znode announced it
    inferred_from: str = ""  # the write that shows it

    @property
    def sentence(self) -> str:
        """Event in words, as rows give it."""
        return f"{self.kind.value}: {self.cause}"

    @property
    def failed_brokers(self) -> dict[int, Broker]:
        """Brokers whose failure it handles."""
        return self.detail.failed if isinstance(self.detail, BrokersChanged) else {}

    @property
    def started_broker(self) -> int:
        """Broker whose startup it handles, NO_BROKER for none."""
        return self.detail.started if isinstance(self.detail, BrokersChanged) else NO_BROKER

    @property
    def may_not_know(self) -> int:
        """Broker that the controller may not know yet, NO_BROKER for none."""
        return self.detail.broker if isinstance(self.detail, UnknownBroker) else NO_BROKER

    @property
    def holds_back(self) -> bool:
        """Whether it stays doubtful after it has begun: a write for the broker in doubt is still due."""
        return isinstance(self.detail, UnknownBroker) and self.writes_due > 0

    @property
    def is_doubtful(self) -> bool:
        """Whether the event may not have happened, or not with these brokers."""
        return isinstance(self.detail, (UnprovenShutdown, UnknownBroker))

    @property
    def next_batch(self) -> int:
        """First batch that still has a write due: those before it are done."""
        for at, count in enumerate(self.due):
            if count:
                return at
        return len(self.due)

    @property
    def writes_due(self) -> int:
        """Number of writes that are due."""
        return sum(self.due)

    def stored(self) -> StoredEvent:
        """Event as a context stores it, once the transaction changes it no more."""
        return StoredEvent(*msgspec.structs.astuple(self))


class StoredEvent(Event, frozen=True, array_like=True):  # type: ignore[misc]  # msgspec can freeze a subclass
    """Event in a context, which nobody can change: a transaction opens a copy."""

    def opened(self) -> Event:
        """Copy of the event to change."""
        copied = Event(*msgspec.structs.astuple(self))
        copied.due = list(self.due)
        return copied
