"""Consumer groups and transactional ids as the brokers last described them. Pure, without connection or clock.

The answers are kept, because during an outage no coordinator answers for the groups that it lost.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from typing import Final

import msgspec

from controller.contract.ids import BrokerId, PartitionId
from wording.sentences import counted, in_brackets, listed

CONSUMER_OFFSETS: Final = "__consumer_offsets"
TRANSACTION_STATE: Final = "__transaction_state"
_DEAD: Final = "Dead"  # Kafka's state of a group that does not exist

Partitions = dict[str, tuple[PartitionId, ...]]  # by topic, in order
Offsets = dict[str, dict[PartitionId, int]]  # by topic


class Group(msgspec.Struct, frozen=True, omit_defaults=True):
    """A consumer group. `state` is Kafka's word, and `seen_ms` is when its coordinator last described it.

    `reads` are the partitions that its members are assigned. Without members they are the partitions whose committed
    offset moved between the last two answers, as for consumers that assign partitions to themselves.
    """

    group: str
    state: str
    seen_ms: int
    has_members: bool = False
    reads: Partitions = {}
    subscribes: tuple[str, ...] = ()  # topics
    committed: Offsets = {}  # known only without members

    @property
    def is_running(self) -> bool:
        """Return whether somebody consumed in its name."""
        return self.has_members or bool(self.reads)


class KnownGroups(msgspec.Struct, frozen=True):
    """The groups and transactional ids of a cluster, by name. `asked_ms` is the newest round, 0 before the first.

    `gaps` are sentences about facts that the brokers do not tell or deny.
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
    denied: dict[str, list[str]] = {}  # groups, or nothing, by Kafka's name of the request
    untold: bool = False  # a broker does not know ListTransactions


def after_round(before: KnownGroups, found: Round, is_led: Callable[[str, str], bool]) -> KnownGroups:
    """Return the knowledge after a round. `is_led` takes an internal topic and a name, and is about its partition.

    A group that no broker lists is gone if its coordinator answered. Otherwise its last description stays.
    """
    every = {group for groups in found.listed.values() for group in groups}
    all_answered = len(found.listed) == len(found.brokers)

    def is_kept(topic: str, name: str, listed_now: Collection[str]) -> bool:
        return name in listed_now or not all_answered or not is_led(topic, name)

    groups = {name: known for name, known in before.groups.items() if is_kept(CONSUMER_OFFSETS, name, every)}
    for name, described in found.described.items():
        if described.state == _DEAD:
            groups.pop(name, None)
        else:
            groups[name] = _group(name, described, found, before.groups.get(name))
    present = {name for names in found.transactional_ids.values() for name in names}
    ids = {name: at for name, at in before.transactional_ids.items() if is_kept(TRANSACTION_STATE, name, present)}
    return KnownGroups(found.asked_ms, groups, {**ids, **dict.fromkeys(present, found.asked_ms)}, _gaps(found))


def _group(name: str, described: Described, found: Round, before: Group | None) -> Group:
    if described.has_members:
        is_known = described.assigned is not None
        reads = described.assigned if described.assigned is not None else before.reads if before else {}
        subscribes = described.subscribes if is_known or before is None else before.subscribes
        return Group(name, described.state, found.asked_ms, True, reads, subscribes)
    then = before.committed if before else {}
    if name not in found.committed:  # its turn comes in a later round
        reads = before.reads if before and not before.has_members else {}
        return Group(name, described.state, found.asked_ms, reads=reads, committed=then)
    now = found.committed[name]
    return Group(name, described.state, found.asked_ms, reads=_moved(then, now), committed=now)


def _moved(then: Offsets, now: Offsets) -> Partitions:
    """Return the partitions whose committed offset differs. Without an earlier answer none is known to move."""
    moved = {
        topic: tuple(
            sorted(each for each, offset in offsets.items() if then.get(topic, {}).get(each, offset) != offset)
        )
        for topic, offsets in now.items()
    }
    return {topic: partitions for topic, partitions in moved.items() if partitions}


def _gaps(found: Round) -> tuple[str, ...]:
    silent = set(found.brokers) - found.listed.keys()
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

    It is Java's hash of the name, without its sign by Kafka's `Utils.abs`, which makes the smallest integer 0.
    """
    units = memoryview(name.encode("utf-16-le", "surrogatepass")).cast("H")
    hashed = 0
    for unit in units:
        hashed = (31 * hashed + unit) & 0xFFFFFFFF
    signed = hashed - 2**32 if hashed >= 2**31 else hashed
    return PartitionId((0 if signed == -(2**31) else abs(signed)) % partition_count)


Sizes = Mapping[str, int]
"""The number of partitions of internal topics. A missing topic has no coordinators yet."""
