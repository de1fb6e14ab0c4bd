"""Partitions of one complete read as `kontrast snapshot` shows them, each with its concerns and their reasons.

The znodes suffice for a partition with a registered leader, all its replicas in sync, and no move under way, as most
partitions of most clusters are. Only the remaining partitions go through the replica, because each costs ten times as
much there.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Any, Final

from msgspec.structs import replace

from controller.contract.ids import BrokerId, PartitionId
from controller.contract.metadata_rows import PartitionRow
from controller.contract.problem import UNUSABLE
from controller.step import Outcome
from controller.view.counting import leadership
from controller.view.health import needed_in_sync
from controller.view.metadata import (
    LED,
    UNREADABLE,
    BrokerMetadata,
    ControllerMetadata,
    Metadata,
    PartitionMetadata,
    UnreadableZnode,
)
from controller.view.types import Context
from wording.facts import replicas_in_words
from wording.said import Line, Said, line
from wording.sentences import counted

_UNREADABLE_STATE: Final = "its state cannot be read"

Sound = Mapping[str, Collection[PartitionId]]
"""Partitions that Kontrast judges by their znodes, by topic."""

_Key = tuple[str, PartitionId]


class Concern(Enum):
    """The concerns about a partition, the worst first; the words of kafka-topics.sh."""

    OFFLINE = "offline"
    UNDER_MIN_ISR = "under-min-isr"
    UNDER_REPLICATED = "under-replicated"
    AT_MIN_ISR = "at-min-isr"


_UNASKED: Final = frozenset({Concern.OFFLINE, Concern.UNDER_MIN_ISR, Concern.UNDER_REPLICATED})
_ORDER: Final = {concern: place for place, concern in enumerate(Concern)}
_NAMED_PARTITIONS: Final = 20


class JudgedPartition(PartitionMetadata, frozen=True, tag_field="type", tag="partition"):
    """A partition's metadata with what is wrong with it, the worst first, by default nothing."""

    writable_acks_all: bool | None = True  # None without a judgement
    in_sync_lacking: int = 0
    in_sync_candidates: tuple[BrokerId, ...] = ()
    concerns: tuple[Concern, ...] = ()
    reason: str | None = None  # the worst concern in a sentence

    @property
    def name(self) -> str:
        """Return TOPIC-PARTITION."""
        return f"{self.topic}-{self.partition}"

    @property
    def is_unwell(self) -> bool:
        """Return whether it is shown unasked."""
        return self.state == UNREADABLE or not _UNASKED.isdisjoint(self.concerns)

    @property
    def word(self) -> str:
        """Return the worst concern, or the state."""
        if self.concerns:
            return self.concerns[0].value
        return "deleting" if self.deleting else self.state

    def said(self) -> Line:
        """Return the partition with its worst concern, and the reason."""
        leader = f"broker {self.leader}" if self.leader >= 0 else "none"
        why = self.reason or f"leader {leader}, {replicas_in_words(self.isr, self.replicas)}"
        return line(f"{self.name}: {self.word}: {why}")


@dataclass(frozen=True, slots=True, kw_only=True)
class PartitionChoice:
    """Choice of partitions by topic and by concern, by default all."""

    topics: frozenset[str] = frozenset()
    only: Concern | None = None

    def __bool__(self) -> bool:
        return bool(self.topics) or self.only is not None

    def has(self, partition: JudgedPartition) -> bool:
        """Return whether to show the partition."""
        of_topic = not self.topics or partition.topic in self.topics
        return of_topic and (self.only is None or self.only in partition.concerns)


class JudgedCluster:
    """A cluster at one moment, from the metadata of its znodes with a JudgedPartition for each partition.

    `replicated` takes the partitions that need no replica, and returns the replica's view of all others.
    """

    def __init__(self, metadata: Collection[Metadata], replicated: Callable[[Sound], Outcome]) -> None:
        of: defaultdict[type[Metadata], list[Any]] = defaultdict(list)  # one pass, because there may be 200,000 lines
        for each in metadata:
            of[type(each)].append(each)
        self.unreadable: list[UnreadableZnode] = of[UnreadableZnode]
        self.brokers: list[BrokerMetadata] = of[BrokerMetadata]
        self.controller: ControllerMetadata = of[ControllerMetadata][0]
        live = frozenset(each.broker for each in self.brokers if each.registered)
        self.partitions = _judged(of[JudgedPartition], live, replicated)

    def chosen(self, selection: PartitionChoice) -> list[JudgedPartition]:
        """Return the chosen partitions."""
        return list(filter(selection.has, self.partitions)) if selection else self.partitions

    def said(self, selection: PartitionChoice) -> Said:
        """Yield the brokers, the counts, and the chosen or troubled partitions, worst first."""
        yield from self._cluster()
        if selection:
            chosen = sorted(self.chosen(selection), key=_worst_first)
            yield from (partition.said() for partition in chosen)
            if not chosen:
                yield line("no partition matches")
            return
        unwell = sorted((partition for partition in self.partitions if partition.is_unwell), key=_worst_first)
        yield from (partition.said() for partition in unwell[:_NAMED_PARTITIONS])
        if rest := unwell[_NAMED_PARTITIONS:]:
            words = Counter(partition.word for partition in rest)
            counts = ", ".join(f"{count} {word}" for word, count in words.items())
            yield line(f"and {len(rest)} more ({counts}, --only names all of one kind, --json all)")

    def _cluster(self) -> Said:
        partitions, controller = self.partitions, self.controller
        led = Counter(partition.leader for partition in partitions)
        hosted = Counter(broker for partition in partitions for broker in partition.replicas)
        who = f"broker {controller.broker}" if controller.broker >= 0 else "none"
        yield line(f"controller: {who}, epoch {controller.epoch}")
        for broker in self.brokers:
            hosts = counted(hosted[broker.broker], "partition")
            if not broker.registered:
                yield line(f"broker {broker.broker}: not registered, hosts {hosts}")
                continue
            rack = f", rack {broker.rack}" if broker.rack else ""
            where = ",".join(broker.endpoints) or "no endpoint"
            leads = f"leads {led[broker.broker]} of {hosts}"
            yield line(f"broker {broker.broker}: epoch {broker.epoch}, {where}{rack}, {leads}")
        states = Counter(partition.state for partition in partitions)
        counts = ", ".join(f"{count} {state}" for state, count in sorted(states.items())) or "none"
        topics = counted(len({partition.topic for partition in partitions}), "topic")
        yield line(f"{topics}, {counted(len(partitions), 'partition')}: {counts}")
        if self.unreadable:
            yield line(f"incomplete: {counted(len(self.unreadable), 'znode')} cannot be read, nor their children")


def _worst_first(partition: JudgedPartition) -> tuple[int, str, int]:
    worst = min((_ORDER[concern] for concern in partition.concerns), default=len(_ORDER))
    return worst, partition.topic, partition.partition


def _judged(
    lines: Sequence[JudgedPartition], live: frozenset[BrokerId], replicated: Callable[[Sound], Outcome]
) -> list[JudgedPartition]:
    sound = _sound(lines, live)
    outcome = replicated(sound)
    header = outcome.context.header
    if header.led_by_kraft or header.migration.seen:  # then only all partitions together show which brokers are alive
        sound.clear()
        outcome = replicated(sound)
    margin = _margins(outcome.context)
    thin = [(line, more) for topic in sound.values() for line in topic.values() if (more := margin(line)) <= 0]
    for each, more in thin:
        if more == 0:
            sound[each.topic][each.partition] = replace(each, concerns=(Concern.AT_MIN_ISR,))
        else:
            del sound[each.topic][each.partition]
    outcome = replicated(sound) if any(more < 0 for _, more in thin) else outcome
    concerns = _concerns(outcome.context)
    rows = {(row.topic, row.partition): row for row in outcome.effects if isinstance(row, PartitionRow)}
    none: dict[PartitionId, JudgedPartition] = {}
    return [sound.get(line.topic, none).get(line.partition) or _of_replica(line, concerns, rows) for line in lines]


def _sound(
    lines: Iterable[JudgedPartition], live: frozenset[BrokerId]
) -> dict[str, dict[PartitionId, JudgedPartition]]:
    found: dict[str, dict[PartitionId, JudgedPartition]] = {}
    for each in lines:
        still = not (each.deleting or each.adding_replicas or each.removing_replicas)
        if each.state == LED and still and len(each.isr) >= len(each.replicas) and live.issuperset(each.replicas):
            found.setdefault(each.topic, {})[each.partition] = each
    return found


def _margins(context: Context) -> Callable[[JudgedPartition], int]:
    """Return how many in-sync replicas a led partition has more than acks=all needs."""
    rules = context.header.counting_rules
    needed_by = {name: topic.min_insync_replicas for name, topic in context.topics}

    def margin(line: JudgedPartition) -> int:
        return len(line.isr) - needed_in_sync(needed_by[line.topic], line.leader, len(line.replicas), rules)

    return margin


def _of_replica(
    line: JudgedPartition, concerns: Mapping[_Key, tuple[Concern, ...]], rows: Mapping[_Key, PartitionRow]
) -> JudgedPartition:
    key = (line.topic, line.partition)
    if line.state == UNREADABLE:
        return replace(line, writable_acks_all=None, reason=_UNREADABLE_STATE)
    about, row = concerns.get(key, ()), rows.get(key)
    if row is None:
        return replace(line, writable_acks_all=None, concerns=about)
    return replace(
        line,
        writable_acks_all=row.writable_acks_all,
        in_sync_lacking=row.in_sync_lacking,
        in_sync_candidates=row.in_sync_candidates,
        concerns=about,
        reason=row.reason,
    )


def _concerns(context: Context) -> dict[_Key, tuple[Concern, ...]]:
    """Return the concerns by partition, as the gauges count them."""
    rules = context.header.counting_rules
    found: dict[_Key, tuple[Concern, ...]] = {}
    for name, topic in context.topics:
        if topic.queued_for_deletion:
            continue  # the remaining replicas of a deleted topic do not matter
        for number, partition in topic.partitions.items():
            *_, under_replicated, at_min_isr, _, rejects = leadership(topic, partition, rules)
            counted_in = {
                Concern.OFFLINE: partition.problem in UNUSABLE,
                Concern.UNDER_MIN_ISR: rejects is not None,
                Concern.UNDER_REPLICATED: under_replicated is not None,
                Concern.AT_MIN_ISR: at_min_isr is not None,
            }
            found[name, number] = tuple(concern for concern, is_counted in counted_in.items() if is_counted)
    return found
