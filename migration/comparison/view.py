"""One side of the comparison: its values of each subject as text, and the differences of two sides."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field
from enum import Enum
from typing import NamedTuple

from controller.contract.ids import BrokerId, LeaderEpoch
from migration.nodes.nodes import Node

NOT_SHOWN = "set, not shown"
DEFAULT = "<default>"


class CopiedSubject(Enum):
    """A subject that a migration copies, by the reference of the dual write (KRaftMigrationZkWriter, 3.9)."""

    TOPICS = "topics"
    REPLICAS = "replicas"
    PARTITIONS = "partitions"
    TOPIC_CONFIGS = "topic configurations"
    BROKER_CONFIGS = "broker configurations"
    QUOTAS = "quotas"
    SCRAM = "SCRAM credentials"
    ACLS = "ACLs"
    PRODUCER_IDS = "producer ids"
    DELEGATION_TOKENS = "delegation tokens"


class CopiedKey(NamedTuple):
    """A single value of a subject, such as a topic's setting or a user's mechanism."""

    subject: CopiedSubject
    group: str
    name: str = ""

    def __str__(self) -> str:
        return f"{self.group} {self.name}".strip()


class BothValues(NamedTuple):
    """The values of a key on both sides, None if a side lacks the key."""

    zookeeper: str | None
    quorum: str | None


@dataclass(frozen=True, slots=True)
class Expected:
    """Names and counts in ZooKeeper, which decide the requests to the quorum."""

    topics: frozenset[str]
    partitions: int
    configured_topics: frozenset[str] = frozenset()
    configured_brokers: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class QuorumView:
    """The quorum's values.

    `sources` has the answering node of each subject, `reasons` why a subject has no answer, and `withheld` why a part
    of a subject has none. `plain` has the names of settings whose values may be shown, because they are not secret.
    """

    values: dict[CopiedKey, str] = field(default_factory=dict)
    sources: dict[CopiedSubject, Node] = field(default_factory=dict)
    reasons: dict[CopiedSubject, str] = field(default_factory=dict)
    withheld: dict[tuple[CopiedSubject, str], str] = field(default_factory=dict)
    plain: dict[CopiedSubject, frozenset[str]] = field(default_factory=dict)

    def is_known(self, key: CopiedKey) -> bool:
        """Return whether the quorum's value is known, or its absence."""
        return key.subject in self.sources and (key.subject, key.group) not in self.withheld

    def forget(self, subjects: Collection[CopiedSubject]) -> None:
        """Drop the values of these subjects after the node failed."""
        for key in [key for key in self.values if key.subject in subjects]:
            del self.values[key]


def differences(zookeeper: Mapping[CopiedKey, str], quorum: QuorumView) -> dict[CopiedKey, BothValues]:
    """Return every value that differs between the two sides, as far as the quorum's side is known."""
    return {
        key: BothValues(zookeeper.get(key), quorum.values.get(key))
        for key in zookeeper.keys() | quorum.values.keys()
        if zookeeper.get(key) != quorum.values.get(key) and quorum.is_known(key)
    }


def brokers(ids: Iterable[int]) -> str:
    """Return a list of brokers as text, in the given order."""
    return f"[{', '.join(map(str, ids))}]"


def replicas_text(
    replicas: Iterable[BrokerId], adding: Iterable[BrokerId] = (), removing: Iterable[BrokerId] = ()
) -> str:
    """Return the assignment of a partition as text. The order of added and removed replicas does not matter."""
    moves = (("adding", sorted(adding)), ("removing", sorted(removing)))
    return ", ".join([f"replicas {brokers(replicas)}", *(f"{word} {brokers(ids)}" for word, ids in moves if ids)])


def leadership_text(leader: BrokerId, leader_epoch: LeaderEpoch, isr: Iterable[BrokerId]) -> str:
    """Return the state of a partition as text."""
    return f"leader {leader}, leader epoch {leader_epoch}, ISR {brokers(isr)}"


def quota_text(value: float) -> str:
    """Return a quota as a number, so that 1000 and 1000.0 are equal."""
    return f"{value:.15g}"


def acl_text(principal: str, permission: str, operation: str, host: str) -> str:
    """Return an entry of a resource as text. ZooKeeper and the protocol spell the same names differently."""
    return f"{principal} {_plain(permission)} {_plain(operation)} from {host}"


def resource_text(kind: str, pattern: str, name: str) -> str:
    """Return a resource of ACLs as text."""
    return f"{_plain(kind)} {_plain(pattern)} {name}"


def entity_text(entity: Mapping[str, str | None]) -> str:
    """Return the entity of a quota as text, with the word for the default if it has no name."""
    return ", ".join(f"{kind} {DEFAULT if name is None else name}" for kind, name in sorted(entity.items()))


def _plain(name: str) -> str:
    """Return the common form of an enumeration's name. ZooKeeper has ClusterAction, the protocol CLUSTER_ACTION."""
    return name.replace("_", "").upper()
