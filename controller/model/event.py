"""Events of the controller while steps of them are not certain yet, and the requests that they wait to send."""

from __future__ import annotations

from enum import Enum

import msgspec

from controller.model.brokers import NO_BROKER, Broker


class EventKind(Enum):
    """The events of the controller, by Kafka's names (`ControllerEvent`, 0.11 to 3.9)."""

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

    __hash__ = object.__hash__  # there is one of each: what the enum's own takes time for is not needed


class Sending(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """A request to brokers; what it says of partitions stands in their queues, as entries with its ordinal."""

    ordinal: int
    api: str  # LeaderAndIsr | UpdateMetadata | StopReplica
    brokers: tuple[int, ...]
    partitions: int | None  # how many it was to speak of; None: of all that there are, without an entry in any queue
    deletes: bool = False  # StopReplica up to 2.5


class Batch(msgspec.Struct, frozen=True, array_like=True):
    """The requests that one pass of a state machine sends, and the live brokers then, while that is not certain."""

    at_batch: int
    requests: tuple[Sending, ...]
    live_brokers: tuple[int, ...]
    broker_epochs: tuple[int, ...]  # of the live brokers


class Event(msgspec.Struct, array_like=True):
    """Something that the controller handles, in Kafka's words, while steps of it are not certain yet.

    It runs in passes of the state machines, one after the other: what belongs to a pass is certain once the event is
    known to have begun and no earlier write of it is due. A turn changes copies of its own.
    """

    id: int
    kind: EventKind
    cause: str
    zxid: int
    time_ms: int
    epoch: int  # the controller's
    due: list[int] = []  # writes by pass that ZooKeeper has not shown yet
    begun: bool = False  # a write of it was seen, or it has none
    pending: int = 0  # steps and batches that are not certain yet
    topics: dict[str, None] = {}  # that it concerns, in order
    batches: tuple[Batch, ...] = ()  # of requests, by pass, not certain yet
    may_have_asked: int = NO_BROKER  # to be shut down once more: the broker whose session's end will show it
    may_not_know: int = NO_BROKER  # a broker that registered while the controller loaded
    taken_up: bool = False  # nothing kept the controller from it, if it was still there
    proven_ms: int = 0  # from when on it is certain though nothing shows it; a controller may die before it acts
    failed_brokers: dict[int, Broker] = {}  # the brokers whose death it handles, as they were
    started_broker: int = NO_BROKER  # the broker whose registration it handles
    first_write_ms: int = 0  # when its first write was seen, 0 while none was
    last_write_ms: int = 0
    controller: int = NO_BROKER  # the broker that handles it
    held_by: int = -1  # the older event whose writes stand before its next batch, where those have not come

    @property
    def sentence(self) -> str:
        """The event in words, as rows give it."""
        return f"{self.kind.value}: {self.cause}"

    @property
    def holds_back(self) -> bool:
        """Whether it stays doubtful though it has begun: only what it writes for the broker shows."""
        return self.may_not_know != NO_BROKER and self.writes_due > 0

    @property
    def is_doubtful(self) -> bool:
        """Whether it may not have been, or not with the brokers that it has."""
        return self.may_have_asked != NO_BROKER or self.may_not_know != NO_BROKER

    @property
    def next_batch(self) -> int:
        """The first pass that still has a write due: what is before it is done."""
        for at, count in enumerate(self.due):
            if count:
                return at
        return len(self.due)

    @property
    def writes_due(self) -> int:
        """How many writes are due in all."""
        return sum(self.due)
