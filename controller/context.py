"""What the replica knows of one cluster: a small header and the topics.

Here belongs the state between two records and nothing that changes it: a step works on a `turn.Turn`. The header is
small on purpose: a heartbeat needs nothing else.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

import msgspec

from controller.records import Position
from controller.topics import Topics

NO_BROKER = -1


class Phase(Enum):
    """How far the replica may be trusted."""

    BOOTSTRAPPING = "bootstrapping"  # no complete read was seen yet: nothing is known
    LOADING = "loading"  # a complete read is coming in: values are taken, nothing is concluded
    FOLLOWING = "following"  # changes are followed one by one


class Broker(msgspec.Struct, frozen=True, array_like=True):
    """A registered broker; `epoch` is its znode's czxid, Kafka's broker epoch."""

    epoch: int
    session: int
    since_ms: int
    endpoints: tuple[str, ...] = ()
    rack: str | None = None


class Departure(msgspec.Struct, frozen=True, array_like=True):
    """When a broker's znode vanished; zxid -1 where only a later read showed it."""

    zxid: int
    time_ms: int


class Event(msgspec.Struct, frozen=True, array_like=True):
    """Something that the controller handles, in Kafka's words, while writes of it are still due."""

    id: int
    kind: str
    cause: str
    zxid: int
    time_ms: int
    due: int = 0  # writes that ZooKeeper has not shown yet


class Header(msgspec.Struct, array_like=True):
    """All that is known of a cluster beside its topics.

    A step changes a copy of its own, and replaces the containers in it instead of changing them.
    """

    cluster: str
    chunk_count: int
    position: Position = Position(-1, -1)
    zxid: int = -1
    time_ms: int = 0
    phase: Phase = Phase.BOOTSTRAPPING
    session: str = "unknown"
    watch_mode: str = "unknown"
    brokers: dict[int, Broker] = {}
    departed: dict[int, Departure] = {}
    controller: int = NO_BROKER  # as /controller names it
    controller_since_ms: int = 0
    controller_epoch: int = -1  # as /controller_epoch says
    controller_overwritten: bool = False  # /controller was edited: who it names never took over
    term_epoch: int = -1  # the newest epoch whose controller took over
    term_active: bool = False  # that controller is still there
    controller_changes: int = 0
    next_event: int = 0
    events: dict[int, Event] = {}
    counts: dict[str, int] = {}  # see `gauges`
    open_alerts: dict[str, int] = {}  # alerts of the cluster itself: id -> since_ms
    seen_brokers: tuple[int, ...] = ()  # named by the read that is coming in
    seen_deletions: tuple[str, ...] = ()  # the same

    @property
    def acting(self) -> bool:
        """Whether a controller is there that has taken over and handles events."""
        return self.phase is Phase.FOLLOWING and self.term_active


@dataclass(frozen=True, slots=True)
class Context:
    """One cluster as the replica knows it; immutable."""

    header: Header
    topics: Topics
