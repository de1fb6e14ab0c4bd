"""A cluster's metadata as its znodes say it at one moment, without any history.

Here belongs what each znode tells of brokers, controller and partitions. What the controller would do about it, and
what it did before, takes the replica: see `step`.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from typing import Final

import msgspec

from controller.contract.znodes import (
    BrokerZnode,
    ControllerZnode,
    Place,
    StateZnode,
    TopicZnode,
    ZnodeError,
    ZnodePath,
    decode,
    decode_config,
    decode_epoch,
    locate,
)
from controller.derived.health import needed_in_sync
from controller.model.brokers import NO_BROKER
from controller.model.context import LEAST_IN_SYNC, Header
from controller.model.leadership import NO_LEADER
from controller.model.tally import CountingRules
from controller.rules.states import PartitionState


class BrokerMetadata(msgspec.Struct, frozen=True, tag_field="type", tag="broker"):
    """A broker that is registered, or only hosts replicas; its epoch is its znode's czxid, -1 without one."""

    broker: int
    epoch: int
    endpoints: tuple[str, ...] = ()
    rack: str | None = None
    registered: bool = True


class ControllerMetadata(msgspec.Struct, frozen=True, tag_field="type", tag="controller"):
    """Who is controller, -1 for nobody, and the newest controller epoch, -1 before the first."""

    broker: int
    epoch: int


class PartitionMetadata(msgspec.Struct, frozen=True, tag_field="type", tag="partition"):
    """A partition; leader and leader epoch are -1 and the ISR is empty before its first state."""

    topic: str
    partition: int
    replicas: tuple[int, ...]
    leader: int
    leader_epoch: int
    isr: tuple[int, ...]
    state: str  # as a controller that starts now would take it; `UNREADABLE` where its znode does not say
    adding_replicas: tuple[int, ...]
    removing_replicas: tuple[int, ...]
    deleting: bool  # its topic's deletion was asked for
    writable_acks_all: bool  # a write with acks=all is taken
    in_sync_lacking: int  # of a led partition: so many more replicas must be in sync before it is taken again
    in_sync_candidates: tuple[int, ...]  # the replicas of which so many would do


class UnreadableZnode(msgspec.Struct, frozen=True, tag_field="type", tag="unreadable"):
    """A znode whose content cannot be read, and why; what it says is missing from the metadata."""

    path: str
    reason: str


Metadata = BrokerMetadata | ControllerMetadata | PartitionMetadata | UnreadableZnode

UNREADABLE: Final = "Unreadable"
_FORBIDDEN: Final = "its ACL does not let this session in"
_NO_STATE = StateZnode(NO_LEADER, -1, -1, ())


class Znode(msgspec.Struct, frozen=True, gc=False):
    """A znode as it was read."""

    path: str
    data: bytes | None
    czxid: int


def cluster_metadata(znodes: Iterable[Znode], forbidden: Collection[str] = ()) -> Iterator[Metadata]:
    """What cannot be read, then the brokers, the controller and the partitions, each in their order.

    `forbidden` are the paths that may not be read or listed: what is below them is missing too.
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
    hosts = {
        replica for topic in found.topics.values() for replicas in topic.partitions.values() for replica in replicas
    }
    absent = {broker: BrokerMetadata(broker, -1, registered=False) for broker in hosts - found.brokers.keys()}
    yield from (broker for _, broker in sorted({**found.brokers, **absent}.items()))
    yield ControllerMetadata(found.controller, found.controller_epoch)
    rules = found.rules()
    for name in sorted(found.topics):
        yield from found.partitions_of(name, rules)


class _Found:
    """What the znodes told so far."""

    def __init__(self, forbidden: Collection[str]) -> None:
        self.unreadable = set(forbidden)
        self.brokers: dict[int, BrokerMetadata] = {}
        self.topics: dict[str, TopicZnode] = {}
        self.controller = NO_BROKER
        self.controller_epoch = -1
        self._states: dict[str, dict[int, StateZnode]] = {}
        self._deletions: set[str] = set()
        self._least_in_sync: dict[str, int | None] = {}  # by topic, where it says so itself
        self._header = Header("", 1)  # what shows of the brokers' release, and their dynamic settings

    def take(self, znode: Znode) -> None:
        """Add what a znode says; raises ZnodeError."""
        where = locate(znode.path)
        if where.place is Place.PARTITION_STATE:
            self._states.setdefault(where.name, {})[where.number] = decode(znode.data, StateZnode)
        elif where.place is Place.TOPIC:
            self.topics[where.name] = topic = decode(znode.data, TopicZnode)
            self._header.witness(topic_version=topic.version)
        elif where.place is Place.BROKER:
            read = decode(znode.data, BrokerZnode)
            self.brokers[where.number] = BrokerMetadata(where.number, znode.czxid, read.addresses(), read.rack)
            self._header.witness(broker_version=read.version)
        elif where.place is Place.CONTROLLER:
            controller = decode(znode.data, ControllerZnode)
            self.controller = controller.brokerid
            self._header.witness(controller_version=controller.version)
        elif where.place is Place.CONTROLLER_EPOCH:
            self.controller_epoch = decode_epoch(znode.data)
        elif where.place is Place.DELETE_TOPIC:
            self._deletions.add(where.name)
        else:
            self._take_settings(where, znode.data)

    def _take_settings(self, where: ZnodePath, data: bytes | None) -> None:
        if where.place is Place.TOPIC_CONFIG:
            self._least_in_sync[where.name] = decode_config(data).integer(LEAST_IN_SYNC, at_least=1)
        elif where.place is Place.BROKER_CONFIG:
            self._header.configuration.dynamic[where.name] = decode_config(data).config

    def rules(self) -> CountingRules:
        """What a partition's need of in-sync replicas depends on beside its topic."""
        return self._header.counting_rules

    def partitions_of(self, name: str, rules: CountingRules) -> Iterator[PartitionMetadata]:
        """A topic's partitions by number; a state whose partition is not assigned any more is not one."""
        topic, states = self.topics[name], self._states.get(name, {})
        deleting = name in self._deletions
        for number in sorted(topic.partitions):
            state, replicas = states.get(number, _NO_STATE), topic.partitions[number]
            as_of_now = self._state_at_start(name, number, state)
            is_led = as_of_now == PartitionState.ONLINE.word and not deleting
            needed = needed_in_sync(self._least_in_sync.get(name), state.leader, len(replicas), rules)
            lacking = max(0, needed - len(state.isr)) if is_led else 0
            yield PartitionMetadata(
                topic=name,
                partition=number,
                replicas=replicas,
                leader=state.leader,
                leader_epoch=state.leader_epoch,
                isr=state.isr,
                state=as_of_now,
                adding_replicas=topic.adding_replicas.get(number, ()),
                removing_replicas=topic.removing_replicas.get(number, ()),
                deleting=deleting,
                writable_acks_all=is_led and not lacking,
                in_sync_lacking=lacking,
                in_sync_candidates=tuple(at for at in replicas if at not in state.isr) if lacking else (),
            )

    def _state_at_start(self, name: str, number: int, state: StateZnode) -> str:
        if state is not _NO_STATE:
            is_led = state.leader in self.brokers
            return (PartitionState.ONLINE if is_led else PartitionState.OFFLINE).word
        partitions = f"/brokers/topics/{name}/partitions"
        hidden = self.unreadable and not self.unreadable.isdisjoint((partitions, f"{partitions}/{number}/state"))
        return UNREADABLE if hidden else PartitionState.NEW.word
