"""In-flight events of the controller, and the requests that they wait to send."""

from __future__ import annotations

from enum import Enum
from typing import Final

import msgspec

from controller.contract.ids import NO_BROKER, BrokerEpoch, BrokerId, ControllerEpoch, Zxid
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
    ISR_CHANGE_NOTIFICATION = "IsrChangeNotification"
    UNEXPLAINED = "Unexplained"  # no event of Kafka's. It stands for an unexplained write

    __hash__ = object.__hash__  # members are singletons, so identity is enough, and much faster than the enum's own


CREATIONS: Final = (EventKind.PARTITION_MODIFICATIONS, EventKind.TOPIC_CHANGE)  # of partitions


class Sending(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """Request that waits to be sent. Its partition states wait in the partitions' queues, under its ordinal."""

    ordinal: int
    api: str  # LeaderAndIsr | UpdateMetadata | StopReplica
    brokers: tuple[BrokerId, ...]
    partitions: int | None  # planned number, None for all partitions without an entry in any queue
    deletes: bool = False  # StopReplica up to 2.5


class Batch(msgspec.Struct, frozen=True, array_like=True):
    """Requests that wait to be sent together after a batch of a state machine, with the live brokers of that time."""

    at_batch: int
    requests: tuple[Sending, ...]
    live_brokers: tuple[BrokerId, ...]
    broker_epochs: tuple[BrokerEpoch, ...]  # of the live brokers


class BrokersChanged(msgspec.Struct, frozen=True, array_like=True, tag=1):
    """Brokers that failed, with their last registrations, and the broker that started (Kafka's BrokerChange)."""

    failed: dict[BrokerId, Broker] = {}
    started: BrokerId = NO_BROKER


class UnprovenShutdown(msgspec.Struct, frozen=True, array_like=True, tag=2):
    """Controlled shutdown of a broker that may have asked again. The end of its session will show whether it did."""

    broker: BrokerId


class UnknownBroker(msgspec.Struct, frozen=True, array_like=True, tag=3):
    """TopicChange with replicas on a broker that registered while the controller loaded its context."""

    broker: BrokerId


class BrokerBounced(msgspec.Struct, frozen=True, array_like=True, tag=4):
    """Failure and startup of a broker in one BrokerChange, because it registered again before it was missed."""

    broker: BrokerId


class Event(msgspec.Struct, array_like=True):
    """In-flight event of the controller, with planned actions that are not certain yet.

    It runs in batches of the state machines, one after the other. A batch's actions are certain once the event has
    begun and has no earlier write due. A transaction changes the event. A context stores it as a `StoredEvent`.
    """

    id: int
    kind: EventKind
    cause: str
    zxid: Zxid
    time_ms: int
    epoch: ControllerEpoch
    due: list[int] = []  # writes by batch that ZooKeeper has not shown yet
    begun: bool = False  # one of its writes was seen, or it has no writes
    pending: int = 0  # planned actions and request batches that are not certain yet
    topics: dict[str, None] = {}  # affected topics, in order. Only the record that begins the event adds topics
    batches: tuple[Batch, ...] = ()  # of requests that are not certain yet
    taken_up: bool = False  # no older event held the controller up, if it was still active
    proven_ms: int = 0  # moment of certainty without a write, because a controller may fail before it handles the event
    first_write_ms: int = 0  # when its first write was seen, 0 before that and for an event that a write shows
    last_write_ms: int = 0  # when its newest write was seen, 0 before that
    controller: BrokerId = NO_BROKER  # the broker that handles it
    held_by: int = -1  # the older event whose due writes stand before its next batch
    detail: BrokersChanged | UnprovenShutdown | UnknownBroker | BrokerBounced | None = None
    inferred_by: str = ""  # its rule of inference, empty if a znode announced the event
    inferred_from: str = ""  # the write that shows the event
    deferred_in_vain: int = 0  # writes that stayed unexplained although the event was deferred for them

    @property
    def sentence(self) -> str:
        """Return the event in words, as rows give it."""
        return f"{self.kind.value}: {self.cause}"

    @property
    def failed_brokers(self) -> dict[BrokerId, Broker]:
        """Return the brokers whose failure the event handles."""
        return self.detail.failed if isinstance(self.detail, BrokersChanged) else {}

    @property
    def started_broker(self) -> BrokerId:
        """Return the broker whose startup the event handles, else NO_BROKER."""
        return self.detail.started if isinstance(self.detail, BrokersChanged) else NO_BROKER

    @property
    def may_not_know(self) -> int:
        """Return the broker that the controller may not know yet, else NO_BROKER."""
        return self.detail.broker if isinstance(self.detail, UnknownBroker) else NO_BROKER

    @property
    def bounced_broker(self) -> BrokerId:
        """Return the broker that bounced, NO_BROKER in other events."""
        return self.detail.broker if isinstance(self.detail, BrokerBounced) else NO_BROKER

    @property
    def holds_back(self) -> bool:
        """Return whether the event stays doubtful after it has begun, while a write for the broker in doubt is due."""
        return isinstance(self.detail, UnknownBroker) and self.writes_due > 0

    @property
    def is_doubtful(self) -> bool:
        """Return whether the event may not have happened, or not with these brokers."""
        return isinstance(self.detail, UnprovenShutdown) or self.holds_back

    @property
    def next_batch(self) -> int:
        """Return the first batch that still has a write due. All batches before it are done."""
        for at, count in enumerate(self.due):
            if count:
                return at
        return len(self.due)

    @property
    def writes_due(self) -> int:
        """Return the number of writes that are due."""
        return sum(self.due)

    def stored(self) -> StoredEvent:
        """Return the event as a context stores it, once the transaction changes it no more."""
        return StoredEvent(*msgspec.structs.astuple(self))


class StoredEvent(Event, frozen=True, array_like=True):  # type: ignore[misc]  # msgspec can freeze a subclass
    """Event in a context, protected from changes. A transaction opens a copy."""

    def opened(self) -> Event:
        """Return a copy to change. It shares the event's topics, which never change again."""
        copied = Event(*msgspec.structs.astuple(self))
        copied.due = list(self.due)
        return copied
