"""Memory of the modelled controller, its writes of partition states, and the elections."""

from __future__ import annotations

import zlib
from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from lab.modelled_cluster.zookeeper import ZooKeeper

Release = tuple[int, int]
TopicPartition = tuple[str, int]
Work = Iterator[None]  # the controller's thread, which pauses after each write, and when its queue is empty
EPOCH = "/controller_epoch"


class MovedError(Exception):
    """Another controller was elected, so the write was fenced."""


class State(NamedTuple):
    """Content of a partition's state znode."""

    leader: int
    epoch: int
    isr: tuple[int, ...]
    controller_epoch: int


@dataclass(frozen=True)
class Assignment:
    """Replicas of a partition, with the ones that are being added and removed."""

    replicas: tuple[int, ...]
    adding: tuple[int, ...] = ()
    removing: tuple[int, ...] = ()

    @property
    def target(self) -> tuple[int, ...]:
        """Return replicas after the reassignment."""
        return without(self.replicas, self.removing)

    @property
    def origin(self) -> tuple[int, ...]:
        """Return replicas before the reassignment."""
        return without(self.replicas, self.adding)

    def reassigned_to(self, target: tuple[int, ...]) -> Assignment:
        """Return the assignment while the partition moves to the target."""
        origin = self.origin
        full = tuple(dict.fromkeys(target + origin))
        return Assignment(full, without(full, origin), without(full, target))


def without(brokers: Iterable[int], others: Collection[int]) -> tuple[int, ...]:
    """Return brokers that are not among the others, in order."""
    return tuple(broker for broker in brokers if broker not in others)


def state_path(tp: TopicPartition) -> str:
    """Return the path of the partition's state."""
    return f"/brokers/topics/{tp[0]}/partitions/{tp[1]}/state"


def read_state(zookeeper: ZooKeeper, tp: TopicPartition) -> State | None:
    """Return the state in ZooKeeper, or None."""
    content = zookeeper.content(state_path(tp))
    if content is None:
        return None
    return State(content["leader"], content["leader_epoch"], tuple(content["isr"]), content["controller_epoch"])


def state_znode(state: State, *, recovering: bool = False) -> dict[str, Any]:
    """Return the content of the state's znode."""
    fields = {"version": 1, "leader": state.leader, "leader_epoch": state.epoch, "isr": list(state.isr)}
    recovery = {"leader_recovery_state": 1} if recovering else {}
    return fields | {"controller_epoch": state.controller_epoch} | recovery


@dataclass
class Memory:
    """Context of one controller's term."""

    zookeeper: ZooKeeper
    release: Release
    broker: int
    session: int
    salt: int
    epoch: int = 0
    live: dict[int, int] = field(default_factory=dict)  # broker -> epoch of its registration
    leaving: set[int] = field(default_factory=set)  # in a controlled shutdown
    failed: set[tuple[TopicPartition, int]] = field(default_factory=set)  # replicas whose log directory failed
    topics: set[str] = field(default_factory=set)
    assigned: dict[TopicPartition, Assignment] = field(default_factory=dict)
    cached: dict[TopicPartition, State] = field(default_factory=dict)
    partition_states: dict[TopicPartition, str] = field(default_factory=dict)
    replica_states: dict[tuple[TopicPartition, int], str] = field(default_factory=dict)
    queued: set[str] = field(default_factory=set)
    started: set[str] = field(default_factory=set)
    ineligible: set[str] = field(default_factory=set)
    reassigning: dict[TopicPartition, tuple[int, ...]] = field(default_factory=dict)  # to these replicas
    stops: set[tuple[int, TopicPartition]] = field(default_factory=set)  # replicas that brokers still have to delete
    sent_to: dict[int, int] = field(default_factory=dict)
    deletes_topics: bool = True  # delete.topic.enable
    removing_replicas: bool = False  # while the replica state machine writes

    def is_since(self, *release: int) -> bool:
        """Return whether the controller is of this release or a newer one."""
        return self.release >= release

    def online(self, broker: int) -> bool:
        """Return whether the broker is live and not shutting down."""
        return broker in self.live and broker not in self.leaving

    def in_some_order(self, items: Iterable[Any]) -> list[Any]:
        """Return items in the order of a hash map, which is the same within a history."""
        return sorted(items, key=lambda item: zlib.crc32(f"{item}{self.salt}".encode()))

    def has(self, tp: TopicPartition, broker: int) -> bool:
        """Return whether the replica is online."""
        return self.online(broker) and (tp, broker) not in self.failed

    def leader_is_online(self, tp: TopicPartition) -> bool:
        """Return whether the cached leader is online."""
        return self.has(tp, self.cached[tp].leader)

    def check_fence(self) -> None:
        """Raise MovedError if ZooKeeper refuses the controller's writes. Before 2.1 it accepts them."""
        znode = self.zookeeper.get(EPOCH)
        if self.is_since(2, 1) and (znode is None or int(znode.data or 0) != self.epoch):
            raise MovedError

    def write_state(self, tp: TopicPartition, state: State, *, recovering: bool = False) -> None:
        """Write a partition's state."""
        self.check_fence()
        with self.zookeeper.written_by(self.session):
            self.zookeeper.set(state_path(tp), state_znode(state, recovering=recovering))
        self.cached[tp] = state

    def is_recovering(self, tp: TopicPartition) -> bool:
        """Return whether the leader still recovers from an unclean election."""
        content = self.zookeeper.content(state_path(tp)) or {}
        return bool(content.get("leader_recovery_state"))

    def writable(self, tp: TopicPartition) -> State | None:
        """Return the state in ZooKeeper if this controller may replace it."""
        state = read_state(self.zookeeper, tp)
        return state if state is not None and state.controller_epoch <= self.epoch else None

    def topic_setting(self, topic: str, key: str) -> str | None:
        """Return the topic's setting in ZooKeeper."""
        content = self.zookeeper.content(f"/config/topics/{topic}") or {}
        value = content.get("config", {}).get(key)
        return None if value is None else str(value)

    def allows_unclean(self, topic: str) -> bool:
        """Return whether the topic, the brokers, or the release allow the election of an out-of-sync replica."""
        key = "unclean.leader.election.enable"
        value = self.topic_setting(topic, key)
        for name in (str(self.broker), "<default>"):
            content = self.zookeeper.content(f"/config/brokers/{name}") or {}
            value = content.get("config", {}).get(key) if value is None else value
        return not self.is_since(0, 11) if value is None else value == "true"

    # --- elections, with the new leader and ISR, or None without a candidate

    def elect_offline(self, tp: TopicPartition, state: State, *, unclean: bool | None) -> tuple[State, bool] | None:
        """Elect the first online replica in sync, else one that is not. Return whether it has to recover."""
        replicas = [broker for broker in self.assigned[tp].replicas if self.has(tp, broker)]
        leader = next((broker for broker in replicas if broker in state.isr), None)
        if leader is not None:
            isr = tuple(broker for broker in state.isr if self.has(tp, broker))
            return State(leader, state.epoch + 1, isr, self.epoch), self.is_recovering(tp)
        if not (self.allows_unclean(tp[0]) if unclean is None else unclean) or not replicas:
            return None
        return State(replicas[0], state.epoch + 1, (replicas[0],), self.epoch), self.is_since(3, 2)

    def elect_preferred(self, tp: TopicPartition, state: State) -> State | None:
        """Elect the first assigned replica if it is online and in sync."""
        preferred = self.assigned[tp].replicas[:1]
        if not preferred or not self.has(tp, preferred[0]) or preferred[0] not in state.isr:
            return None
        return state._replace(leader=preferred[0], epoch=state.epoch + 1, controller_epoch=self.epoch)

    def elect_among(self, tp: TopicPartition, target: Iterable[int], state: State) -> State | None:
        """Elect the first replica of the reassignment's target that is online and in sync."""
        leader = next((broker for broker in target if self.has(tp, broker) and broker in state.isr), None)
        if leader is None:
            return None
        return state._replace(leader=leader, epoch=state.epoch + 1, controller_epoch=self.epoch)

    def elect_away_from_leaving(self, tp: TopicPartition, state: State) -> State | None:
        """Elect a replica in sync that does not shut down."""
        isr = without(state.isr, self.leaving)
        here = [broker for broker in self.live if (tp, broker) not in self.failed]
        candidates = (broker for broker in self.assigned[tp].replicas if broker in isr and broker in here)
        leader = next(candidates, None)
        return None if leader is None else State(leader, state.epoch + 1, isr, self.epoch)

    def assign(self, tp: TopicPartition, assignment: Assignment) -> None:
        """Replace the assignment in memory."""
        self.assigned[tp] = assignment

    def partitions_of(self, topic: str) -> list[TopicPartition]:
        """Return partitions of the topic, by number."""
        return sorted(tp for tp in self.assigned if tp[0] == topic)

    def replicas_on(self, brokers: Collection[int]) -> list[tuple[TopicPartition, int]]:
        """Return replicas on these brokers."""
        return [(tp, each) for tp in sorted(self.assigned) for each in self.assigned[tp].replicas if each in brokers]

    def forget_topic(self, topic: str) -> None:
        """Forget the topic like the controller, which keeps the states of its partitions and replicas."""
        self.topics.discard(topic)
        self.queued.discard(topic)
        self.started.discard(topic)
        for tp in self.partitions_of(topic):
            del self.assigned[tp]
            self.cached.pop(tp, None)

    def write_topic(self, topic: str, changed: dict[TopicPartition, Assignment]) -> bool:
        """Write the topic's znode from memory with these assignments. Return whether the znode existed."""
        self.check_fence()
        content = dict(self.zookeeper.content(f"/brokers/topics/{topic}") or {})
        known = {tp: self.assigned[tp] for tp in self.partitions_of(topic)} | changed
        content["partitions"] = {str(tp[1]): list(each.replicas) for tp, each in known.items()}
        if self.is_since(2, 4):
            content["adding_replicas"] = {str(tp[1]): list(each.adding) for tp, each in known.items() if each.adding}
            removing = {str(tp[1]): list(each.removing) for tp, each in known.items() if each.removing}
            content["removing_replicas"] = removing
        with self.zookeeper.written_by(self.session):
            return self.zookeeper.set(f"/brokers/topics/{topic}", content)

    def delete(self, path: str) -> bool:
        """Delete a znode."""
        self.check_fence()
        with self.zookeeper.written_by(self.session):
            return self.zookeeper.delete(path)

    def refreshed(self, tp: TopicPartition, state: State) -> None:
        """Cache the state that was read, as of this controller's epoch."""
        self.cached[tp] = replace_epoch(state, self.epoch)


def replace_epoch(state: State, controller_epoch: int) -> State:
    """Return the state as of another controller's epoch."""
    return state._replace(controller_epoch=controller_epoch)
