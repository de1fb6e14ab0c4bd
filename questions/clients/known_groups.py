"""Consumer groups and transactional ids as the brokers last described them. Pure, without connection or clock.

The answers are kept, because during an outage no coordinator answers for the groups that it lost.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Final

import msgspec

from controller.contract.ids import BrokerId, PartitionId
from wording.sentences import counted, in_brackets, listed

CONSUMER_OFFSETS: Final = "__consumer_offsets"
TRANSACTION_STATE: Final = "__transaction_state"
_READ_FOR_MS: Final = 900_000  # a group without members counts as a reader for so long after a commit
_DEAD: Final = "Dead"  # Kafka's state of a group that does not exist

Partitions = dict[str, tuple[PartitionId, ...]]  # by topic, in order
Offsets = dict[str, dict[PartitionId, int]]  # by topic


Sizes = Mapping[str, int]
"""The number of partitions of internal topics. A missing topic has no coordinators yet."""


class Troubled(msgspec.Struct, frozen=True):
    """Partitions that clients cannot use, and those that reject acks=all, with the size of the internal topics."""

    offline: frozenset[tuple[str, PartitionId]]
    refusing: frozenset[tuple[str, PartitionId]]
    sizes: dict[str, int]  # partitions of each internal topic that exists


class Group(msgspec.Struct, frozen=True, omit_defaults=True):
    """A consumer group. `state` is Kafka's word, and `seen_ms` is when its coordinator last described it.

    The group reads the partitions in `read_ms`, each with the time of the last sign: a member had it assigned, or its
    committed offset had moved, because a consumer can assign partitions to itself.
    """

    group: str
    state: str
    seen_ms: int
    has_members: bool = False
    read_ms: dict[str, dict[PartitionId, int]] = {}
    subscribes: tuple[str, ...] = ()  # topics
    committed: Offsets = {}  # known only without members

    @property
    def is_running(self) -> bool:
        """Return whether the group has members, or its committed offsets moved lately."""
        return self.has_members or bool(self.read_ms)

    @property
    def reads(self) -> Partitions:
        """Return the partitions that the group reads, by topic."""
        return {topic: tuple(sorted(numbers)) for topic, numbers in self.read_ms.items()}


class KnownGroups(msgspec.Struct, frozen=True):
    """The groups and transactional ids of a cluster, by name. `asked_ms` is the newest round with an answer, or 0.

    `gaps` are sentences about missing facts, because a broker was silent, too old, or denied the request.
    """

    asked_ms: int = 0
    groups: dict[str, Group] = {}
    transactional_ids: dict[str, int] = {}  # with the time when their coordinator last listed them
    gaps: tuple[str, ...] = ()


NO_GROUPS: Final = KnownGroups()


class Described(msgspec.Struct, frozen=True):
    """A coordinator's description. `assigned` is None while the group rebalances, when brokers tell no assignment."""

    state: str
    has_members: bool = False
    assigned: Partitions | None = None
    subscribes: tuple[str, ...] = ()


class Round(msgspec.Struct):
    """The answers of one round of questions, filled as they come."""

    asked_ms: int
    brokers: tuple[BrokerId, ...] = ()  # to ask
    listed: dict[BrokerId, list[str]] = {}  # groups by the broker that answered
    described: dict[str, Described] = {}
    committed: dict[str, Offsets] = {}
    transactional_ids: dict[BrokerId, list[str]] = {}
    denied: dict[str, list[str]] = {}  # groups by Kafka's name of the request, no group if it was about the cluster
    untold: bool = False  # a broker does not know ListTransactions
    silent: set[BrokerId] = set()  # brokers that listed their groups, and then did not answer about them


def after_round(before: KnownGroups, found: Round, troubled: Troubled) -> KnownGroups:
    """Return the knowledge after a round. `troubled` are the partitions in trouble during the round.

    A group or a transactional id that no broker lists is gone only if every broker answered, and its coordinator has a
    leader. Otherwise it stays.
    """
    every, present = _names(found.listed), _names(found.transactional_ids)

    def is_kept(topic: str, name: str) -> bool:
        names, answers = (every, found.listed) if topic == CONSUMER_OFFSETS else (present, found.transactional_ids)
        is_silent = len(answers) < len(found.brokers)
        return name in names or is_silent or coordinator_of(topic, name, troubled.sizes) in troubled.offline

    groups = {name: known for name, known in before.groups.items() if is_kept(CONSUMER_OFFSETS, name)}
    for name, described in found.described.items():
        if described.state == _DEAD:
            groups.pop(name, None)
        else:
            groups[name] = _group(name, described, found, before.groups.get(name), troubled)
    ids = {name: at for name, at in before.transactional_ids.items() if is_kept(TRANSACTION_STATE, name)}
    asked_ms = found.asked_ms if found.listed else before.asked_ms
    return KnownGroups(asked_ms, groups, {**ids, **dict.fromkeys(present, found.asked_ms)}, _gaps(found))


def _names(by_broker: Mapping[BrokerId, Iterable[str]]) -> set[str]:
    return {name for names in by_broker.values() for name in names}


def _group(name: str, described: Described, found: Round, before: Group | None, troubled: Troubled) -> Group:
    then = before or Group(name, described.state, found.asked_ms)
    if described.assigned is not None:
        read_ms = {topic: dict.fromkeys(numbers, found.asked_ms) for topic, numbers in described.assigned.items()}
        return Group(name, described.state, found.asked_ms, True, read_ms, described.subscribes)
    if described.has_members:
        return Group(name, described.state, found.asked_ms, True, then.read_ms, then.subscribes)
    committed = found.committed.get(name)
    if committed is None:  # a later round asks for its offsets
        return Group(name, described.state, found.asked_ms, read_ms=then.read_ms, committed=then.committed)
    cannot_commit = coordinator_of(CONSUMER_OFFSETS, name, troubled.sizes) in troubled.offline | troubled.refusing
    read_ms = _read_ms(then, committed, found.asked_ms, lambda tp: cannot_commit or tp in troubled.offline)
    return Group(name, described.state, found.asked_ms, read_ms=read_ms, committed=committed)


def _read_ms(
    before: Group, now: Offsets, asked_ms: int, is_stuck: Callable[[tuple[str, PartitionId]], bool]
) -> dict[str, dict[PartitionId, int]]:
    """Return when each partition was last read by a group without members.

    A stuck partition stays, because an outage ends the commits of the very groups that it hits.
    """
    read: dict[str, dict[PartitionId, int]] = {}
    for topic, known in before.read_ms.items():
        for number, at_ms in known.items():
            if is_stuck((topic, number)):
                read.setdefault(topic, {})[number] = asked_ms
            elif asked_ms - at_ms <= _READ_FOR_MS:
                read.setdefault(topic, {})[number] = at_ms
    for topic, offsets in now.items():
        for number, offset in offsets.items():
            if before.committed.get(topic, {}).get(number, offset) != offset:
                read.setdefault(topic, {})[number] = asked_ms
    return read


def _gaps(found: Round) -> tuple[str, ...]:
    silent = (set(found.brokers) - found.listed.keys()) | found.silent
    gaps = [f"{listed(silent)} did not answer, so its groups are as they were before"] if silent else []
    for request, groups in found.denied.items():
        what = f"on {counted(len(groups), 'group')}{in_brackets(groups, len(groups))}" if groups else "on the cluster"
        gaps.append(f"the brokers deny {request}: allow Kontrast's user the operation Describe {what}")
    if found.untold:
        gaps.append("brokers before 3.0 do not list transactional ids")
    return tuple(gaps)


def partitions_of(pairs: Iterable[tuple[str, Iterable[int]]]) -> Partitions:
    """Return the partitions of several assignments together, by topic."""
    found: dict[str, set[PartitionId]] = {}
    for topic, numbers in pairs:
        found.setdefault(topic, set()).update(map(PartitionId, numbers))
    return {topic: tuple(sorted(numbers)) for topic, numbers in sorted(found.items())}


def coordinator_partition(name: str, partition_count: int) -> PartitionId:
    """Return the partition of `__consumer_offsets` for a group, or of `__transaction_state` for a transactional id.

    The number is Java's hash of the name modulo the count, without its sign by Kafka's `Utils.abs`, which maps the
    smallest integer to 0.
    """
    units = memoryview(name.encode("utf-16-le", "surrogatepass")).cast("H")
    hashed = 0
    for unit in units:
        hashed = (31 * hashed + unit) & 0xFFFFFFFF
    signed = hashed - 2**32 if hashed >= 2**31 else hashed
    return PartitionId((0 if signed == -(2**31) else abs(signed)) % partition_count)


def coordinator_of(topic: str, name: str, sizes: Sizes) -> tuple[str, PartitionId] | None:
    """Return the partition whose leader coordinates a group or a transactional id, None before the topic exists."""
    size = sizes.get(topic, 0)
    return (topic, coordinator_partition(name, size)) if size else None
