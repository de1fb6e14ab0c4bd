"""Picture of a cluster, the basis of every question: the controller's context, and some of its past."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Mapping
from enum import Enum
from typing import Final, NamedTuple

import msgspec

from controller.contract.alert_row import AlertRow, Severity
from controller.contract.ids import TopicPartition
from controller.contract.records import Record
from controller.contract.row import NOT_KNOWN_MS, Row
from controller.contract.znodes import Brokers
from controller.says.alert_kinds.kinds import ALERT_KINDS
from controller.view.health import reason_for
from controller.view.types import Context, Header, Partition, Topic
from questions.clients.groups import NO_CLIENTS, Clients
from wording.times import lasting

CONTROLLER_GROUP: Final = "controller"  # group of the alerts about the controller
_ALERTS_OF_A_SEVERITY: Final = 50  # alerts name causes, so a cluster has many only while the causes are unknown
WORST_FIRST: Final[Mapping[Severity, int]] = {severity: place for place, severity in enumerate(Severity)}
_KINDS = {name: place for place, name in enumerate(ALERT_KINDS)}  # partitions, brokers, the controller, topics


class Origin(Enum):
    """Origin of a picture, and so its knowledge of the past."""

    LOOK = "one look at ZooKeeper"  # the earlier past is unknown, except for the times in the znodes
    HISTORY = "history"  # a complete read and every change since, or the rows that follow from them


class Beginning(msgspec.Struct, frozen=True):
    """A beginning. If `exact` is False, it may be earlier. `ms` is since 1970, None if unknown."""

    ms: int | None
    exact: bool

    def lasting(self, as_of_ms: int) -> str:
        """Return the duration and its start, marked if the start may be earlier, as for findings of a first read."""
        return lasting(self.ms, as_of_ms, exact=self.exact)


class Present(NamedTuple):
    """The moment at which a picture is shown as current, and the age from which it is too old for that."""

    now_ms: int
    stale_after_ms: int
    silent: str = ""  # the process that stopped, if it is known

    def is_stale(self, heard_ms: int) -> bool:
        """Return whether a cluster last heard of at this moment is no longer known."""
        return self.now_ms - heard_ms > self.stale_after_ms


class Picture(msgspec.Struct, frozen=True, kw_only=True):
    """A cluster at one moment, with the past that the origin and the question provide.

    `story` has the requested rows, oldest first. `records` has the newest record of each existing znode. Both are None
    if unknown. `written_ms` has the last writes of znodes by ZooKeeper's clock, if known.
    """

    origin: Origin
    context: Context
    alerts: tuple[AlertRow, ...] = ()  # the open ones, worst first
    story: tuple[Row, ...] | None = ()
    records: Mapping[str, Record] | None = None
    written_ms: Mapping[str, int] = {}
    as_of_ms: int = 0  # when the cluster was last heard of, by the forwarder's wall clock
    present: Present | None = None  # unset for a moment of the past
    lacking: tuple[str, ...] = ()  # outputs that lost rows of the cluster, which the job has not written again
    forbidden: frozenset[str] = frozenset()  # paths that an ACL keeps from being read
    clients: Clients = NO_CLIENTS  # as brokers last described them
    source: str = ""  # where it is from, if the command chose

    @property
    def header(self) -> Header:
        """Return the facts beside the topics."""
        return self.context.header

    @property
    def now_ms(self) -> int:
        """Return the present, or the shown moment of the past."""
        return self.as_of_ms if self.present is None else self.present.now_ms

    def topic(self, name: str) -> Topic | None:
        """Return the topic of this name, if it exists."""
        topic = self.context.topics.get(name)
        return topic if topic is not None and topic.exists else None

    def partition(self, tp: TopicPartition) -> Partition | None:
        """Return the partition of this name, if it exists."""
        topic = self.topic(tp.topic)
        return None if topic is None else topic.partitions.get(tp.partition)

    def reason(self, tp: TopicPartition) -> str | None:
        """Return the problem of an existing partition, in a sentence that names brokers and zxids."""
        topic, partition = self.context.topics[tp.topic], self.partition(tp)
        assert partition is not None, f"there is no {tp}"
        return reason_of(partition, topic, self.header)

    def since(self, ms: int) -> Beginning:
        """Return a moment of the context by the wall clock, as far as it is known."""
        return self.since_wall(ms if ms == NOT_KNOWN_MS else self.context.header.wall_ms_of(ms))

    def since_wall(self, wall_ms: int) -> Beginning:
        """Return the moment of a row as far as it is known. The findings of a complete read may be older."""
        if wall_ms == NOT_KNOWN_MS:
            return Beginning(None, exact=False)
        header = self.context.header
        began_ms = header.wall_ms_of(header.read.began_ms)
        return Beginning(wall_ms, exact=self.origin is not Origin.LOOK and wall_ms > began_ms)

    def unregistered(self, brokers: Brokers) -> Brokers:
        """Return the brokers among these that are not registered."""
        return tuple(broker for broker in brokers if broker not in self.header.brokers)


def reason_of(partition: Partition, topic: Topic, header: Header) -> str | None:
    """Return the problem of a partition, in a sentence that names brokers and zxids, None without a problem."""
    if partition.problem is None:
        return None
    return reason_for(partition.problem, partition, topic, header, partition.value(header.controller_epoch))


def worst_first(alerts: Collection[AlertRow]) -> tuple[AlertRow, ...]:
    """Return the alerts by severity, then effects on clients before their causes, then oldest first."""
    return tuple(
        sorted(alerts, key=lambda row: (WORST_FIRST[row.severity], _KINDS.get(row.alert, 0), row.since_ms, row.id))
    )


def oldest(alerts: Iterable[AlertRow]) -> list[AlertRow]:
    """Return the first alerts of each severity, as many as a page has room for. The alerts come oldest first."""
    counts: Counter[Severity] = Counter()
    found = []
    for row in alerts:
        counts[row.severity] += 1
        if counts[row.severity] <= _ALERTS_OF_A_SEVERITY:
            found.append(row)
    return found
