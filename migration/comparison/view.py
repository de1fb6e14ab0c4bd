"""One side of the comparison: what it has of each subject, as text for people, and where two sides differ."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field
from enum import Enum
from typing import NamedTuple

from migration.nodes.nodes import Node

NOT_SHOWN = "set, not shown"
DEFAULT = "<default>"


class Subject(Enum):
    """What a migration copies, by the reference of the dual write (KRaftMigrationZkWriter, 3.9)."""

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


class Key(NamedTuple):
    """A single value of a subject: like a topic and its setting, a user and a mechanism."""

    subject: Subject
    group: str
    name: str = ""

    def __str__(self) -> str:
        return f"{self.group} {self.name}".strip()


class Difference(NamedTuple):
    """Both values, None for a side that has none."""

    zookeeper: str | None
    quorum: str | None


@dataclass(frozen=True, slots=True)
class Expected:
    """What ZooKeeper has, which says what to ask for by name and how much to expect."""

    topics: frozenset[str]
    partitions: int
    configured_topics: frozenset[str] = frozenset()
    configured_brokers: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class QuorumView:
    """What the quorum says.

    `sources` is the node that answered about a subject, `reasons` why nobody did, `withheld` why not about one of
    its groups. `plain` are the names of settings whose values are no secrets: the only ones that may be shown.
    """

    values: dict[Key, str] = field(default_factory=dict)
    sources: dict[Subject, Node] = field(default_factory=dict)
    reasons: dict[Subject, str] = field(default_factory=dict)
    withheld: dict[tuple[Subject, str], str] = field(default_factory=dict)
    plain: dict[Subject, frozenset[str]] = field(default_factory=dict)

    def is_known(self, key: Key) -> bool:
        """Whether the quorum's side of this is known, even if it has none."""
        return key.subject in self.sources and (key.subject, key.group) not in self.withheld

    def forget(self, subjects: Collection[Subject]) -> None:
        """Drop what was read of these subjects before the node failed."""
        for key in [key for key in self.values if key.subject in subjects]:
            del self.values[key]


def differences(zookeeper: Mapping[Key, str], quorum: QuorumView) -> dict[Key, Difference]:
    """Every value that the two sides do not have alike."""
    return {
        key: Difference(zookeeper.get(key), quorum.values.get(key))
        for key in zookeeper.keys() | quorum.values.keys()
        if zookeeper.get(key) != quorum.values.get(key) and quorum.is_known(key)
    }


def brokers(ids: Iterable[int]) -> str:
    """A list of brokers, in its order."""
    return f"[{', '.join(map(str, ids))}]"


def replicas_text(replicas: Iterable[int], adding: Iterable[int] = (), removing: Iterable[int] = ()) -> str:
    """The assignment of a partition; the order of what is added and removed says nothing."""
    moves = (("adding", sorted(adding)), ("removing", sorted(removing)))
    return ", ".join([f"replicas {brokers(replicas)}", *(f"{word} {brokers(ids)}" for word, ids in moves if ids)])


def leadership_text(leader: int, leader_epoch: int, isr: Iterable[int]) -> str:
    """The state of a partition."""
    return f"leader {leader}, leader epoch {leader_epoch}, ISR {brokers(isr)}"


def quota_text(value: float) -> str:
    """A quota as a number of which 1000 and 1000.0 are the same."""
    return f"{value:.15g}"


def acl_text(principal: str, permission: str, operation: str, host: str) -> str:
    """An entry of a resource, by the names that ZooKeeper and the protocol write differently."""
    return f"{principal} {_plain(permission)} {_plain(operation)} from {host}"


def resource_text(kind: str, pattern: str, name: str) -> str:
    """A resource of ACLs."""
    return f"{_plain(kind)} {_plain(pattern)} {name}"


def entity_text(entity: Mapping[str, str | None]) -> str:
    """Whom a quota holds for; None is the default."""
    return ", ".join(f"{kind} {DEFAULT if name is None else name}" for kind, name in sorted(entity.items()))


def _plain(name: str) -> str:
    """The name of an enumeration: ZooKeeper has ClusterAction, the protocol CLUSTER_ACTION."""
    return name.replace("_", "").upper()
