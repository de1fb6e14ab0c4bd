"""A cluster's znodes at one moment, decoded once for all checks."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import NamedTuple, Protocol

import msgspec

from controller.contract.consequences import consequence_of, flaw_of
from controller.contract.decoding import JsonDecoder, UndecodableError
from controller.contract.ids import BrokerId, PartitionId
from controller.contract.znodes import (
    BrokerZnode,
    ControllerZnode,
    FeatureZnode,
    MigrationZnode,
    StateZnode,
    TopicZnode,
    ZnodeError,
    decode,
)
from controller.rules.releases import Evidence, Release
from migration.nodes.nodes import Nodes

BROKERS = "/brokers/ids"
TOPICS = "/brokers/topics"
TOPIC_CONFIGS = "/config/topics"
BROKER_CONFIGS = "/config/brokers"
USERS = "/config/users"
DELETIONS = "/admin/delete_topics"
MIGRATION = "/migration"
CONTROLLER = "/controller"
CLIENTS = "/config/clients"
IPS = "/config/ips"
QUOTAS = (USERS, CLIENTS, IPS)
STATES = (TOPICS, DELETIONS)


class ReadZnode(Protocol):
    """A znode's value (None for null), its version, and its session, 0 for a persistent znode."""

    @property
    def data(self) -> bytes | None:
        """Return the value."""

    @property
    def version(self) -> int:
        """Return the number of writes since the znode's creation."""

    @property
    def ephemeral_owner(self) -> int:
        """Return the session."""


class Owner(NamedTuple):
    """A user of a znode, with ZooKeeper's scheme (world, sasl, digest, x509, ip) and the name in it."""

    scheme: str
    name: str


class TreePartition(msgspec.Struct, frozen=True, gc=False):
    """A partition in a topic's znode. `state` is None if ZooKeeper has no readable state."""

    topic: str
    number: PartitionId
    replicas: tuple[BrokerId, ...]
    state: StateZnode | None

    @property
    def name(self) -> str:
        """Return TOPIC-NUMBER."""
        return f"{self.topic}-{self.number}"

    @property
    def state_path(self) -> str:
        """Return the path of the znode with the partition's state."""
        return f"{TOPICS}/{self.topic}/partitions/{self.number}/state"


@dataclass(frozen=True)
class Tree:
    """A cluster's znodes by path below its chroot, and the paths hidden from this session.

    `owners` has the users that each znode's ACL names, None if ACLs were not read. `controller_ids` are the planned ids
    of the quorum, which a person gives. `nodes` has the answers of Kafka's nodes, None if they were not asked.
    """

    znodes: Mapping[str, ReadZnode]
    unreadable: frozenset[str] = frozenset()
    owners: Mapping[str, frozenset[Owner]] | None = None
    controller_ids: frozenset[int] = field(default=frozenset())
    nodes: Nodes | None = None

    def data(self, path: str) -> bytes | None:
        """Return a znode's value, unless it is missing or null."""
        znode = self.znodes.get(path)
        return None if znode is None else znode.data

    def children(self, parent: str) -> list[str]:
        """Return the names of a znode's children, including hidden ones."""
        return self._children.get(parent, [])

    def may_be_read(self, path: str) -> bool:
        """Return whether this session may read the znode and all znodes above it."""
        if not self.unreadable:
            return True
        parts = path.split("/")
        return not any("/".join(parts[:end]) in self.unreadable for end in range(2, len(parts) + 1))

    @cached_property
    def _children(self) -> dict[str, list[str]]:
        found: dict[str, list[str]] = {}
        # Leave out partitions' states, because they are looked up by path, and 200,000 lists of children take long.
        paths = (path for path in self.znodes if not (path.startswith(f"{TOPICS}/") and path.count("/") > 3))
        for path in sorted({*paths, *self.unreadable}):
            parent, _, name = path.rpartition("/")
            found.setdefault(parent, []).append(name)
        return found

    # --- meaning of the znodes

    @cached_property
    def brokers(self) -> Mapping[BrokerId, BrokerZnode]:
        """Return the registered brokers. A broker with an unreadable znode has no fields."""
        return {BrokerId(int(name)): self._broker(name) for name in self.children(BROKERS) if _ID.fullmatch(name)}

    def _broker(self, name: str) -> BrokerZnode:
        try:
            return decode(self.data(f"{BROKERS}/{name}"), BrokerZnode)
        except ZnodeError:
            return BrokerZnode(version=1, jmx_port=-1, host="", port=-1)

    @cached_property
    def topics(self) -> Mapping[str, TopicZnode | None]:
        """Return the topics, with None for an unreadable assignment."""
        return {name: self._topic(name) for name in self.children(TOPICS)}

    def _topic(self, name: str) -> TopicZnode | None:
        try:
            return decode(self.data(f"{TOPICS}/{name}"), TopicZnode)
        except ZnodeError:
            return None

    @cached_property
    def kept_topics(self) -> Mapping[str, TopicZnode]:
        """Return the topics with an assignment that are not being deleted."""
        deleted = set(self.children(DELETIONS))
        return {name: topic for name, topic in self.topics.items() if topic is not None and name not in deleted}

    @cached_property
    def partitions(self) -> list[TreePartition]:
        """Return the assigned partitions of the kept topics."""
        return [
            TreePartition(name, number, replicas, self._state(f"{TOPICS}/{name}/partitions/{number}/state"))
            for name, topic in self.kept_topics.items()
            for number, replicas in sorted(topic.partitions.items())
        ]

    def _state(self, path: str) -> StateZnode | None:
        try:
            return decode(self.data(path), StateZnode)
        except ZnodeError:
            return None

    @cached_property
    def controller(self) -> ControllerZnode | None:
        """Return /controller, unless it is missing or unreadable."""
        try:
            return decode(self.data(CONTROLLER), ControllerZnode)
        except ZnodeError:
            return None

    @cached_property
    def migration(self) -> MigrationZnode | None:
        """Return /migration, unless it is missing or not Kafka's."""
        try:
            return decode(self.data(MIGRATION), MigrationZnode)
        except ZnodeError:
            return None

    @cached_property
    def harm_of_failover(self) -> str:
        """Return a znode at which the next ZooKeeper controller fails, with the mend, empty if none is known."""
        release, _ = self.releases()
        for path, znode in self.znodes.items():
            flaw = None if path == CONTROLLER else flaw_of(path, znode.data)
            consequence = None if flaw is None else consequence_of(path, flaw, release)
            if flaw is not None and consequence is not None and consequence.harms_failover:
                return f"{path} {flaw.predicate}: {consequence.effect}. {consequence.mend}"
        return ""

    @property
    def is_ruled_by_kraft(self) -> bool:
        """Return whether a KRaft controller leads, because it has claimed /controller and copied the metadata."""
        has_copied = self.migration is not None and self.migration.kraft_metadata_offset > 0
        claimed = self.controller is not None and self.controller.kraftControllerEpoch >= 0
        return has_copied and claimed and self.znodes[CONTROLLER].ephemeral_owner == 0

    @cached_property
    def feature(self) -> FeatureZnode | None:
        """Return /feature, unless it is missing or unreadable."""
        try:
            return decode(self.data("/feature"), FeatureZnode)
        except ZnodeError:
            return None

    def configurations(self, parent: str) -> Iterator[tuple[str, Mapping[str, object] | None]]:
        """Yield path and settings of each child of a /config znode. Settings that Kafka cannot read are None."""
        for name in self.children(parent):
            path = f"{parent}/{name}"
            if path in self.znodes:
                yield path, _settings(self.data(path))

    def releases(self) -> tuple[Release, Release]:
        """Return the oldest and newest release that write znodes like these."""
        return Evidence(
            controller_version=self.controller.version if self.controller else 0,
            broker_version=max((broker.version for broker in self.brokers.values()), default=0),
            topic_version=max((topic.version for topic in self.topics.values() if topic), default=0),
            feature_version=self.feature.version if self.feature else 0,
        ).releases()


class _Configuration(msgspec.Struct, frozen=True):
    config: dict[str, object] = {}


_ID = re.compile("[0-9]{1,10}")
_CONFIGURATION = JsonDecoder(_Configuration)


def _settings(data: bytes | None) -> Mapping[str, object] | None:
    if not data:
        return {}
    try:
        return _CONFIGURATION.decode(data).config
    except UndecodableError:
        return None
