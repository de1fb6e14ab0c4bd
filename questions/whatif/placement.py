"""Assignments of replicas to brokers: the output of Kafka's own tool, and the smallest movement to a goal.

Kafka's tools read and write them as JSON (`kafka-reassign-partitions --reassignment-json-file`).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from itertools import chain
from typing import Final

import msgspec

from controller.contract.ids import BrokerId, PartitionId, TopicPartition
from controller.rules.placement import PlacementError, place_replicas
from controller.view.types import Context
from questions.known_brokers import refuse_unknown
from questions.picture import Picture
from questions.question import NotFoundError, Question
from wording.sentences import did_you_mean, listed, near, plural


class _Reassigned(msgspec.Struct, frozen=True):
    topic: str
    partition: PartitionId
    replicas: tuple[BrokerId, ...]


class _ReassignmentJson(msgspec.Struct, frozen=True):
    partitions: tuple[_Reassigned, ...]
    version: int = 1


_PROPOSED: Final = b"Proposed partition reassignment configuration"


class ReassignmentJsonError(ValueError):
    """Bytes that are not a reassignment, with the reason."""


def decode_reassignment(content: bytes) -> dict[TopicPartition, tuple[BrokerId, ...]]:
    """Return the target replicas of each partition. Raise ReassignmentJsonError."""
    if _PROPOSED in content:
        raise ReassignmentJsonError(
            "it is the output of kafka-reassign-partitions --generate. Keep only the JSON below "
            '"Proposed partition reassignment configuration"'
        )
    try:
        file = msgspec.json.decode(content, type=_ReassignmentJson)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise ReassignmentJsonError(f"it is no reassignment in JSON: {error}") from error
    if not file.partitions:
        raise ReassignmentJsonError("it names no partition, so Kafka would have nothing to reassign")
    targets: dict[TopicPartition, tuple[BrokerId, ...]] = {}
    for entry in file.partitions:
        tp = TopicPartition(entry.topic, entry.partition)
        if tp in targets:
            raise ReassignmentJsonError(f"it names partition {tp} twice")
        if not entry.replicas or len(set(entry.replicas)) < len(entry.replicas):
            raise ReassignmentJsonError(f"partition {tp} needs replicas on different brokers, but has {entry.replicas}")
        targets[tp] = entry.replicas
    return targets


def encode_reassignment(targets: Mapping[TopicPartition, tuple[BrokerId, ...]]) -> bytes:
    """Return the JSON, a partition a line, in order."""
    entries = [_Reassigned(tp.topic, tp.partition, replicas) for tp, replicas in sorted(targets.items())]
    lines = b",\n  ".join(map(msgspec.json.encode, entries))
    return b'{"version":1,"partitions":[' + (b"\n  " + lines + b"\n" if entries else b"") + b"]}"


Assignment = Mapping[TopicPartition, tuple[BrokerId, ...]]

_FEWEST_BUCKETS: Final = 16  # of a Java HashMap, which doubles them when it is three quarters full


class UnplaceableError(NotFoundError):
    """A goal that these brokers and racks cannot meet, or topics that are not there."""


class Goal(msgspec.Struct, frozen=True):
    """Goal of a movement. An unset field changes nothing."""

    drain: frozenset[BrokerId] = frozenset()  # brokers that must host no replica
    rack_aware: bool = False  # spread the replicas of a partition evenly over the racks
    replication_factor: int | None = None

    def is_met_by(self, replicas: tuple[BrokerId, ...]) -> bool:
        """Return whether these replicas may stay. Return False if racks count, which are unknown here."""
        is_enough = self.replication_factor in (None, len(replicas))
        return is_enough and not self.rack_aware and self.drain.isdisjoint(replicas)


class Movement(msgspec.Struct, frozen=True):
    """A reassignment: the changed partitions and the copied replicas."""

    targets: dict[TopicPartition, tuple[BrokerId, ...]]
    replicas_added: dict[BrokerId, int]  # by broker
    replicas_removed: dict[BrokerId, int]

    @property
    def copies(self) -> int:
        """Return the number of replicas that must be copied."""
        return sum(self.replicas_added.values())


class PlaceReplicas(Question, frozen=True):
    """Assign replicas to brokers as Kafka's own tool does, or by the smallest movement to a goal."""

    answer = Movement

    topics: tuple[str, ...] = ()
    brokers: tuple[BrokerId, ...] = ()
    goal: Goal | None = None  # unset, Kafka's way
    rack_aware: bool | None = None
    start_index: int = 0
    shift: int = 0

    def ask(self, picture: Picture) -> tuple[Assignment, Movement]:
        """Return the assignment to print, and its movement. Raise NotFoundError."""
        context, draw = picture.context, {"start_index": self.start_index, "shift": self.shift}
        if self.goal is not None:
            movement = least_movement(context, self.topics, self.brokers, self.goal)
            return movement.targets, movement
        try:
            placed = placed_by_kafka(context, self.topics, self.brokers, rack_aware=self.rack_aware, **draw)
        except PlacementError as error:
            raise NotFoundError(str(error)) from error
        return placed, _movement(current_assignment(context, {tp.topic for tp in placed}), placed)


def current_assignment(context: Context, topics: Collection[str] = ()) -> dict[TopicPartition, tuple[BrokerId, ...]]:
    """Return the replicas of these topics, by default all, after current reassignments.

    Topics in the deletion queue are excluded. Raise UnplaceableError for a missing topic.
    """
    return {TopicPartition(name, number): replicas for name, number, replicas in _replicas_of(context, topics)}


def _replicas_of(
    context: Context, topics: Collection[str] = ()
) -> Iterator[tuple[str, PartitionId, tuple[BrokerId, ...]]]:
    known = {name: topic for name, topic in context.topics if topic.exists and not topic.queued_for_deletion}
    absent = sorted(set(topics) - known.keys())
    if absent:
        similar = did_you_mean(near(absent[0], known))
        raise UnplaceableError(f"there is no topic {', '.join(absent)}{similar}")
    for name in sorted(set(topics) or known):
        for number, partition in sorted(known[name].partitions.items()):
            yield name, number, partition.assignment.target if partition.reassigning else partition.replicas


def placed_by_kafka(  # noqa: PLR0913 (all that Kafka is given or draws)
    context: Context,
    topics: Collection[str],
    brokers: Collection[BrokerId],
    *,
    rack_aware: bool | None = None,
    start_index: int = 0,
    shift: int = 0,
) -> dict[TopicPartition, tuple[BrokerId, ...]]:
    """Return the assignment that Kafka generates for these topics on these brokers (3.9 `ReassignPartitionsCommand`).

    Kafka draws `start_index` and `shift` of each topic at random. A topic keeps the number of replicas of its first
    partition. Racks count if every broker has one, unless `rack_aware` decides. Raise UnplaceableError and
    PlacementError.
    """
    registered = context.header.brokers
    absent = sorted(set(brokers) - registered.keys())
    if absent:
        raise UnplaceableError(f"{listed(absent, 'is')} not registered")
    racks = {broker: registered[broker].rack for broker in _as_the_tool_has_them(context) if broker in brokers}
    if rack_aware is False or (rack_aware is None and None in racks.values()):
        racks = dict.fromkeys(racks, None)
    by_topic: dict[str, list[tuple[BrokerId, ...]]] = {}
    for tp, replicas in current_assignment(context, topics).items():
        by_topic.setdefault(tp.topic, []).append(replicas)
    placed: dict[TopicPartition, tuple[BrokerId, ...]] = {}
    for name, current in by_topic.items():
        drawn = place_replicas(racks, len(current), len(current[0]), start_index=start_index, shift=shift)
        placed.update({TopicPartition(name, number): to for number, to in drawn.items()})
    return placed


def _as_the_tool_has_them(context: Context) -> list[BrokerId]:
    """Return the registered brokers in the order of Kafka's tool without racks.

    Before 3.0 the tool can read ZooKeeper and uses the ids' order. A tool that asks a broker keeps the answer in a Java
    `HashMap` and uses its order (3.9 `DescribeClusterResponse.nodes`). Ids of one bucket keep the broker's order, but
    ZooKeeper does not show that order, so this function uses the ids' order there.
    """
    ids = sorted(context.header.brokers)
    if not context.header.profile.tools_ask_a_broker:
        return ids
    buckets = _FEWEST_BUCKETS
    while len(ids) > buckets * 3 // 4:
        buckets *= 2
    return sorted(ids, key=lambda broker: (broker ^ broker >> 16) & (buckets - 1))


def least_movement(context: Context, topics: Collection[str], brokers: Collection[BrokerId], goal: Goal) -> Movement:
    """Return a reassignment to the goal that keeps each replica that may stay, at its place in the order.

    Each new replica goes to the broker with the fewest replicas so far. If racks count, only brokers in a rack with the
    fewest replicas of the partition can get it. Raise UnplaceableError, and UnknownBrokersError for a broker to drain
    that does not exist.
    """
    refuse_unknown(context, sorted(goal.drain))
    racks = _usable(context, brokers, goal)
    hosted = Counter(chain.from_iterable(replicas for _, _, replicas in _replicas_of(context)))
    load = Counter({broker: hosted[broker] for broker in racks})
    moving = {  # most partitions need not move
        TopicPartition(name, number): replicas
        for name, number, replicas in _replicas_of(context, topics)
        if not goal.is_met_by(replicas)
    }
    placed: dict[TopicPartition, tuple[BrokerId, ...]] = {}
    for tp, replicas in moving.items():
        placed[tp] = to = _moved(tp, replicas, racks, load, goal)
        for added in set(to).difference(replicas):
            load[added] += 1
        for left in racks.keys() & set(replicas).difference(to):
            load[left] -= 1
    return _movement(moving, placed)


def _movement(assignment: Assignment, placed: Assignment) -> Movement:
    targets = {tp: to for tp, to in placed.items() if assignment.get(tp) != to}
    pairs = [(assignment.get(tp, ()), to) for tp, to in targets.items()]
    added = _counted(replica for before, to in pairs for replica in to if replica not in before)
    removed = _counted(replica for before, to in pairs for replica in before if replica not in to)
    return Movement(targets, added, removed)


def _counted(replicas: Iterable[BrokerId]) -> dict[BrokerId, int]:
    return dict(sorted(Counter(replicas).items()))


def _usable(context: Context, brokers: Collection[BrokerId], goal: Goal) -> dict[BrokerId, str | None]:
    """Return the racks of the brokers that may get replicas."""
    registered = context.header.brokers
    absent = sorted(set(brokers) - registered.keys())
    if absent:
        they = plural(len(absent), "it", "they")
        raise UnplaceableError(f"{listed(absent, 'is')} not registered, so {they} cannot get replicas")
    usable = sorted(set(brokers or registered) - goal.drain)
    racks = {broker: registered[broker].rack for broker in usable}
    without = [broker for broker, rack in racks.items() if rack is None]
    if goal.rack_aware and without:
        them = plural(len(without), "it", "them")
        raise UnplaceableError(f"{listed(without, 'has')} no rack. Set broker.rack and restart {them}")
    return racks


def _moved(
    tp: TopicPartition,
    replicas: tuple[BrokerId, ...],
    racks: Mapping[BrokerId, str | None],
    load: Counter[BrokerId],
    goal: Goal,
) -> tuple[BrokerId, ...]:
    factor = goal.replication_factor or len(replicas)
    if factor > len(racks) and (goal.replication_factor or goal.drain.intersection(replicas)):
        raise UnplaceableError(f"{tp} needs {factor} replicas, but only {len(racks)} brokers can host them")
    most = -(-factor // len(set(racks.values()))) if goal.rack_aware and racks else factor
    kept: list[BrokerId | None] = []
    in_rack: Counter[str | None] = Counter()
    for replica in replicas[:factor]:
        rack = racks.get(replica)
        stays = replica not in goal.drain and not (goal.rack_aware and (replica not in racks or in_rack[rack] >= most))
        kept.append(replica if stays else None)
        in_rack[rack] += stays
    kept += [None] * (factor - len(kept))
    for at, stays_there in enumerate(kept):
        if stays_there is None:
            chosen = _next_broker(tp, kept, racks, load, in_rack if goal.rack_aware else Counter())
            kept[at] = chosen
            in_rack[racks[chosen]] += 1
    return tuple(replica for replica in kept if replica is not None)


def _next_broker(
    tp: TopicPartition,
    kept: Sequence[BrokerId | None],
    racks: Mapping[BrokerId, str | None],
    load: Counter[BrokerId],
    in_rack: Counter[str | None],
) -> BrokerId:
    free = [broker for broker in racks if broker not in kept]
    if not free:
        raise UnplaceableError(f"{tp} needs {len(kept)} replicas, but only {len(racks)} brokers can host them")
    if not in_rack:
        return min(free, key=load.__getitem__)  # of several brokers with the fewest, the first by id
    return min(free, key=lambda broker: (in_rack[racks[broker]], load[broker]))
