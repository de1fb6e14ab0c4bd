"""Topics and partitions of a cluster, in a persistent map whose chunks can be stored and loaded one by one.

`restore/stored_context.py` turns the chunks into bytes.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable, Collection, Iterator
from functools import lru_cache
from typing import Final

import msgspec

from controller.contract.ids import (
    NO_LEADER,
    UNKNOWN_ZXID,
    BrokerId,
    ControllerEpoch,
    LeaderEpoch,
    PartitionId,
    TopicPartition,
    Zxid,
)
from controller.contract.leader_and_isr import LeaderAndIsr
from controller.contract.problem import Problem
from controller.model.leadership import AnyAction, Create, Done, fold
from controller.rules.assignment import UNNAMED, ReplicaAssignment
from controller.rules.states import PartitionState, ReplicaState

_NON_EXISTENT: Final = ReplicaState.NON_EXISTENT
_ONLINE: Final = ReplicaState.ONLINE


class OverdueElection(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """Election that the controller passed over. It wrote later events, and not this election."""

    leader: BrokerId  # the expected leader
    leader_epoch: LeaderEpoch  # of the state that the election was to replace
    controller_epoch: ControllerEpoch
    since_ms: int  # when the election's event came


class Partition(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """Partition with its state in ZooKeeper, the controller's planned actions, and its states in the state machines."""

    replicas: tuple[BrokerId, ...]  # in the controller's memory
    # By broker, also of replicas that are being removed. None if each of `replicas` is Online, as of nearly all
    replica_states: dict[BrokerId, ReplicaState] | None = {}
    state: PartitionState = PartitionState.NON_EXISTENT
    zk_state: LeaderAndIsr | None = None
    queue: tuple[AnyAction, ...] = ()  # planned actions that are not certain yet, the oldest first
    adding: tuple[BrokerId, ...] = ()
    removing: tuple[BrokerId, ...] = ()
    problem: Problem | None = None
    problem_since_ms: int = 0
    cached: LeaderAndIsr | None = None  # the controller's cached state, where it lags behind ZooKeeper
    offline_dirs: tuple[BrokerId, ...] = ()  # replicas whose log directory failed
    zk_assignment: ReplicaAssignment | None = None  # in the topic znode, where it differs from `assignment`
    pending_assignments: tuple[ReplicaAssignment, ...] = ()  # due writes to the topic znode, in order
    passed_over: OverdueElection | None = None
    in_sync_lacking: int = 0  # replicas that must still get in sync before its leader accepts acks=all
    absent: tuple[BrokerId, ...] = ()  # in-sync replicas whose brokers left, if no controller is there to remove them
    unreadable: bool = False  # the znode of its state is there, but could not be read

    def value(self, controller_epoch: ControllerEpoch) -> LeaderAndIsr | None:
        """Return the state that ZooKeeper will hold once the controller has done its due writes."""
        return fold(self.queue, self.zk_state, controller_epoch) if self.queue else self.zk_state

    @property
    def write_due(self) -> bool:
        """Return whether a write of the partition's state by the controller is due."""
        for action in self.queue:  # noqa: SIM110 (runs for every change: a generator takes twice as long)
            if action.writes:
                return True
        return False

    def owed(self, controller_epoch: ControllerEpoch) -> OverdueElection | None:
        """Return the election that this controller still owes, because no later write has taken its place."""
        owed, value = self.passed_over, self.zk_state
        if owed is None or value is None:
            return None
        waits = (owed.leader_epoch, owed.controller_epoch) == (value.leader_epoch, controller_epoch)
        return owed if waits else None

    @property
    def has_value(self) -> bool:
        """Return whether ZooKeeper holds a state, or will once the controller has created it."""
        return self.zk_state is not None or any(isinstance(action, Create) for action in self.queue)

    @property
    def is_named(self) -> bool:
        """Return whether the topic's znode names the partition. A controller may keep one that was taken out of it."""
        return self.zk_assignment != UNNAMED

    @property
    def reassigning(self) -> bool:
        """Return whether replicas are being added or removed."""
        return bool(self.adding or self.removing)

    @property
    def all_replica_states(self) -> dict[BrokerId, ReplicaState]:
        """Return the state of each known replica by broker."""
        return dict.fromkeys(self.replicas, _ONLINE) if self.replica_states is None else self.replica_states

    def replica_state(self, broker: BrokerId) -> ReplicaState:
        """Return the state of the replica on this broker."""
        if self.replica_states is None:
            return _ONLINE if broker in self.replicas else _NON_EXISTENT
        return self.replica_states.get(broker, _NON_EXISTENT)

    def with_replica_state(self, broker: BrokerId, state: ReplicaState) -> Partition:
        """Return the partition with one replica in another state, or without a replica that no longer exists."""
        states = {**self.all_replica_states, broker: state}
        if state is _NON_EXISTENT:
            del states[broker]
        return self.with_replica_states(states)

    def with_replica_states(self, states: dict[BrokerId, ReplicaState]) -> Partition:
        """Return the partition with these states of its replicas."""
        return msgspec.structs.replace(self, replica_states=but_all_online(self.replicas, states))

    def with_dirs_back(self, brokers: Collection[BrokerId]) -> Partition:
        """Return the partition without failed log directories of these brokers."""
        left = tuple(broker for broker in self.offline_dirs if broker not in brokers)
        return self if left == self.offline_dirs else msgspec.structs.replace(self, offline_dirs=left)

    @property
    def assignment(self) -> ReplicaAssignment:
        """Return the replicas, with the ones that are being added and removed."""
        return ReplicaAssignment(self.replicas, self.adding, self.removing)

    def with_assignment(self, assignment: ReplicaAssignment) -> Partition:
        """Return the partition with another assignment in the controller's memory."""
        states = but_all_online(assignment.replicas, self.all_replica_states)
        return msgspec.structs.replace(
            self,
            replicas=assignment.replicas,
            replica_states=states,
            adding=assignment.adding,
            removing=assignment.removing,
        )


def but_all_online(
    replicas: tuple[BrokerId, ...], states: dict[BrokerId, ReplicaState]
) -> dict[BrokerId, ReplicaState] | None:
    """Return the states as a partition with these replicas stores them."""
    return None if states == dict.fromkeys(replicas, _ONLINE) else states


class Topic(msgspec.Struct, frozen=True, array_like=True):
    """Topic with its partitions, the settings that the controller reads, and its deletion's progress."""

    partitions: dict[PartitionId, Partition] = {}
    exists: bool = True  # False if only its configuration is known
    topic_id: str | None = None
    min_insync_replicas: int | None = None
    unclean_election: bool | None = None
    queued_for_deletion: bool = False
    deletion_started: bool = False
    ineligible: bool = False  # its deletion waits for a broker
    request_removed: bool = False  # entry in /admin/delete_topics was removed, so the next controller keeps the topic
    asked_ms: int = 0  # when StopReplica with delete was last sent for it
    doubtful_ms: int = 0  # from `asked_ms` until a silent broker lost its session. Other brokers may be silent too
    leaked: tuple[PartitionId, ...] = ()  # partitions whose states a controller kept when the topic was removed by hand
    leaked_epoch: ControllerEpoch = ControllerEpoch(-1)  # of that controller
    seen_generation: int = 0  # of the forwarder whose records last named it
    refused: dict[PartitionId, ReplicaAssignment] = {}  # added during its deletion. The next controller loads them
    unproven: tuple[Done, ...] = ()  # actions of deposed controllers, which happened only if these lived on
    czxid: Zxid = UNKNOWN_ZXID  # of its znode. Another one is that of another topic of the same name

    @property
    def seems_unread(self) -> bool:
        """Return whether the request for its deletion was removed by hand before it took a leader away."""
        states = [partition.zk_state for partition in self.partitions.values()] if self.request_removed else [None]
        return all(state is not None and state.leader != NO_LEADER for state in states)


InTopic = tuple["Topic | None", "Partition | None"]  # a partition with its topic, None if they do not exist
ChunkLoader = Callable[[int], "dict[str, Topic]"]


@lru_cache(1 << 15)
def chunk_of(topic: str, chunk_count: int) -> int:
    """Return the index of the chunk that holds a topic. The index is the same on every machine and in every version."""
    return zlib.crc32(topic.encode()) % chunk_count


class StoredChunks:
    """Stored chunks, each loaded once when it is first used."""

    __slots__ = ("_load", "_loaded")

    def __init__(self, load: ChunkLoader) -> None:
        self._load = load
        self._loaded: dict[int, dict[str, Topic]] = {}

    def __getitem__(self, index: int) -> dict[str, Topic]:
        if index not in self._loaded:
            self._loaded[index] = self._load(index)
        return self._loaded[index]


class Topics:
    """Persistent map from topic name to `Topic`. A changed map shares all unchanged chunks.

    A chunk that no transaction has changed is None here and read from the stored chunks.
    """

    __slots__ = ("_chunks", "_stored")

    def __init__(self, chunks: list[dict[str, Topic] | None], stored: StoredChunks) -> None:
        self._chunks = chunks
        self._stored = stored

    @classmethod
    def load(cls, chunk_count: int, load: ChunkLoader) -> Topics:
        """Return the stored topics. `load` returns a chunk at its first use."""
        return cls([None] * chunk_count, StoredChunks(load))

    @classmethod
    def empty(cls, chunk_count: int) -> Topics:
        """Return an empty map of this many chunks."""
        return cls.load(chunk_count, lambda _: {})

    @classmethod
    def emptied(cls, chunk_count: int) -> Topics:
        """Return an empty map of this many chunks, each of which replaces a stored chunk."""
        return cls([{} for _ in range(chunk_count)], StoredChunks(lambda _: {}))

    def chunk(self, index: int) -> dict[str, Topic]:
        """Return the chunk at this index, which is read-only."""
        chunk = self._chunks[index]
        return self._stored[index] if chunk is None else chunk

    def get(self, topic: str) -> Topic | None:
        """Return the topic of this name, if known."""
        index = chunk_of(topic, len(self._chunks))
        chunk = self._chunks[index]
        return (self._stored[index] if chunk is None else chunk).get(topic)

    def partition(self, tp: TopicPartition) -> Partition | None:
        """Return the partition of this name, if known."""
        topic = self.get(tp.topic)
        return None if topic is None else topic.partitions.get(tp.partition)

    def __getitem__(self, topic: str) -> Topic:
        """Return the topic of this name, which must be known."""
        found = self.get(topic)
        assert found is not None, f"{topic} is no known topic"
        return found

    def __iter__(self) -> Iterator[tuple[str, Topic]]:
        for index in range(len(self._chunks)):
            yield from list(self.chunk(index).items())

    def mutable_copy(self) -> MutableTopics:
        """Return a private copy to change."""
        return MutableTopics(list(self._chunks), self._stored)

    def changed_since(self, before: Topics) -> list[int]:
        """Return the indexes of the chunks that are not the same objects as before."""
        pairs = enumerate(zip(self._chunks, before._chunks, strict=True))
        return [index for index, (now, then) in pairs if now is not then]


class MutableTopics(Topics):
    """Topics that one transaction changes in place. Each changed chunk is copied once, the rest stays shared."""

    __slots__ = ("_owned", "_owned_topics")

    def __init__(self, chunks: list[dict[str, Topic] | None], stored: StoredChunks) -> None:
        self._chunks = chunks
        self._stored = stored
        self._owned: set[int] = set()
        self._owned_topics: dict[str, Topic] = {}

    def get(self, topic: str) -> Topic | None:
        """Return the topic as it is now, if known."""
        owned = self._owned_topics.get(topic)
        return Topics.get(self, topic) if owned is None else owned

    def partition(self, tp: TopicPartition) -> Partition | None:
        """Return the partition as it is now, if known."""
        owned = self._owned_topics.get(tp.topic)
        topic = Topics.get(self, tp.topic) if owned is None else owned
        return None if topic is None else topic.partitions.get(tp.partition)

    def put(self, name: str, topic: Topic | None) -> None:
        """Replace a topic, or remove it if it is None."""
        chunk = self._own_chunk(name)
        self._owned_topics.pop(name, None)
        if topic is None:
            chunk.pop(name, None)
        else:
            chunk[name] = topic

    def put_partition(self, tp: TopicPartition, partition: Partition) -> None:
        """Replace a partition of a known topic."""
        owned = self._owned_topics.get(tp.topic)
        (self.own(tp.topic) if owned is None else owned).partitions[tp.partition] = partition

    def own(self, name: str) -> Topic:
        """Return a known topic whose partitions may be changed in place. The first call copies them."""
        owned = self._owned_topics.get(name)
        if owned is None:
            chunk = self._own_chunk(name)
            topic = chunk[name]
            owned = msgspec.structs.replace(topic, partitions=topic.partitions.copy())
            chunk[name] = self._owned_topics[name] = owned
        return owned

    def _own_chunk(self, name: str) -> dict[str, Topic]:
        index = chunk_of(name, len(self._chunks))
        if index not in self._owned:
            self._chunks[index] = self.chunk(index).copy()
            self._owned.add(index)
        return self.chunk(index)

    def freeze(self) -> Topics:
        """Return the immutable result. This copy must not change after that."""
        return Topics(self._chunks, self._stored)
