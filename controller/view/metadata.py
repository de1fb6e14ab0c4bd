"""Metadata of a cluster from its znodes at one moment, without history.

The controller's reaction needs the whole state (see `step`).
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from typing import Final

import msgspec

from controller.contract.ids import (
    NO_BROKER,
    NO_LEADER,
    BrokerEpoch,
    BrokerId,
    ControllerEpoch,
    LeaderEpoch,
    PartitionId,
    Zxid,
)
from controller.contract.znode_table import Place, locate
from controller.contract.znodes import (
    BrokerZnode,
    ControllerZnode,
    StateZnode,
    TopicZnode,
    ZnodeError,
    decode,
    decode_config,
    decode_epoch,
)
from controller.rules.states import PartitionState


class BrokerMetadata(msgspec.Struct, frozen=True, tag_field="type", tag="broker"):
    """Broker that is registered or hosts replicas. Its epoch is its znode's czxid, -1 without a znode."""

    broker: BrokerId
    epoch: BrokerEpoch
    endpoints: tuple[str, ...] = ()
    rack: str | None = None
    registered: bool = True


class ControllerMetadata(msgspec.Struct, frozen=True, tag_field="type", tag="controller"):
    """Controller's broker id, -1 without a controller, and the newest controller epoch, -1 before the first."""

    broker: BrokerId
    epoch: ControllerEpoch


class PartitionMetadata(msgspec.Struct, frozen=True, tag_field="type", tag="partition"):
    """Partition. Before its first state, leader and leader epoch are -1 and the ISR is empty."""

    topic: str
    partition: PartitionId
    replicas: tuple[BrokerId, ...]
    leader: BrokerId
    leader_epoch: LeaderEpoch
    isr: tuple[BrokerId, ...]
    state: str  # the state that a new controller would give it, or `UNREADABLE`
    adding_replicas: tuple[BrokerId, ...]
    removing_replicas: tuple[BrokerId, ...]
    deleting: bool  # its topic's deletion was asked for


class UnreadableZnode(msgspec.Struct, frozen=True, tag_field="type", tag="unreadable"):
    """Znode with unreadable content, and the reason. The metadata lacks its facts."""

    path: str
    reason: str


Metadata = BrokerMetadata | ControllerMetadata | PartitionMetadata | UnreadableZnode

UNREADABLE: Final = "Unreadable"
LED: Final = PartitionState.ONLINE.word
_FORBIDDEN: Final = "its ACL does not let this session in"
_NO_STATE = StateZnode(NO_LEADER, LeaderEpoch(-1), ControllerEpoch(-1), ())


class Znode(msgspec.Struct, frozen=True, gc=False):
    """Znode as it was read."""

    path: str
    data: bytes | None
    czxid: Zxid


def cluster_metadata(
    znodes: Iterable[Znode], forbidden: Collection[str] = (), partition: type[PartitionMetadata] = PartitionMetadata
) -> Iterator[Metadata]:
    """Yield unreadable znodes, then the brokers, the controller and the partitions, each in order.

    `forbidden` are the paths that may not be read or listed. All znodes below these are missing too. The caller names
    the class of a partition, so that 200,000 are not made again.
    """
    found = _Found(forbidden)
    for path in sorted(forbidden):
        yield UnreadableZnode(path, _FORBIDDEN)
    for znode in znodes:
        try:
            found.take(znode)
        except ZnodeError as error:
            found.unreadable.add(znode.path)
            yield UnreadableZnode(znode.path, str(error))
    hosts = set[BrokerId]().union(*(hosts for topic in found.topics.values() for hosts in topic.partitions.values()))
    absent = {
        broker: BrokerMetadata(broker, BrokerEpoch(-1), registered=False) for broker in hosts - found.brokers.keys()
    }
    yield from (broker for _, broker in sorted({**found.brokers, **absent}.items()))
    yield ControllerMetadata(found.controller, found.controller_epoch)
    for name in sorted(found.topics):
        yield from found.partitions_of(name, partition)


class _Found:
    """Metadata of the znodes read so far."""

    def __init__(self, forbidden: Collection[str]) -> None:
        self.unreadable = set(forbidden)
        self.brokers: dict[BrokerId, BrokerMetadata] = {}
        self.topics: dict[str, TopicZnode] = {}
        self.controller = NO_BROKER
        self.controller_epoch = ControllerEpoch(-1)
        self._states: dict[str, dict[PartitionId, StateZnode]] = {}
        self._deletions: set[str] = set()

    def take(self, znode: Znode) -> None:
        """Add a znode. Raise ZnodeError."""
        where = locate(znode.path)
        if where.place is Place.PARTITION_STATE:
            self._states.setdefault(where.name, {})[where.partition] = decode(znode.data, StateZnode)
        elif where.place is Place.TOPIC:
            self.topics[where.name] = decode(znode.data, TopicZnode)
        elif where.place is Place.BROKER:
            read = decode(znode.data, BrokerZnode)
            self.brokers[where.broker] = BrokerMetadata(
                where.broker, BrokerEpoch(znode.czxid), read.addresses(), read.rack
            )
        elif where.place is Place.CONTROLLER:
            self.controller = decode(znode.data, ControllerZnode).brokerid
        elif where.place is Place.CONTROLLER_EPOCH:
            self.controller_epoch = decode_epoch(znode.data)
        elif where.place is Place.DELETE_TOPIC:
            self._deletions.add(where.name)
        elif where.place in (Place.TOPIC_CONFIG, Place.BROKER_CONFIG):
            decode_config(znode.data)  # settings are no metadata, but an unreadable znode is reported

    def partitions_of(self, name: str, made: type[PartitionMetadata]) -> Iterator[PartitionMetadata]:
        """Yield a topic's assigned partitions by number, without states that lack an assignment."""
        topic, states = self.topics[name], self._states.get(name, {})
        adding, removing, deleting = topic.adding_replicas, topic.removing_replicas, name in self._deletions
        for number in sorted(topic.partitions):
            state = states.get(number, _NO_STATE)
            leader = state.leader
            word = LED if leader in self.brokers else self._state_without_leader(name, number, state)
            moves = adding.get(number, ()), removing.get(number, ())
            yield made(
                name, number, topic.partitions[number], leader, state.leader_epoch, state.isr, word, *moves, deleting
            )

    def _state_without_leader(self, name: str, number: PartitionId, state: StateZnode) -> str:
        if state is not _NO_STATE:
            return PartitionState.OFFLINE.word
        partitions = f"/brokers/topics/{name}/partitions"
        hidden = self.unreadable and not self.unreadable.isdisjoint((partitions, f"{partitions}/{number}/state"))
        return UNREADABLE if hidden else PartitionState.NEW.word
