"""Print the metadata of a complete read for `kontrast snapshot`, worst first."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from enum import Enum
from types import MappingProxyType
from typing import Any, Final

import msgspec

from cli.printing.standard_output import flush, print_json as print_object, print_line
from controller.contract.metadata_rows import PartitionRow
from controller.contract.row import Row
from controller.view.gauges import keys_of_partition
from controller.view.metadata import (
    UNREADABLE,
    BrokerMetadata,
    ControllerMetadata,
    Metadata,
    PartitionMetadata,
    UnreadableZnode,
)
from controller.view.types import Context
from wording.sentences import counted

_NAMED_PARTITIONS: Final = 20


class Concern(Enum):
    """The concerns about a partition, the worst first; the words of kafka-topics.sh."""

    OFFLINE = "offline"
    UNDER_MIN_ISR = "under-min-isr"
    UNDER_REPLICATED = "under-replicated"
    AT_MIN_ISR = "at-min-isr"


# Read as: a partition that is VALUE in the gauges has KEY.
_GAUGES: Final[Mapping[Concern, str]] = MappingProxyType(
    {
        Concern.OFFLINE: "leaderless",
        Concern.UNDER_MIN_ISR: "under_min_isr",
        Concern.UNDER_REPLICATED: "under_replicated",
        Concern.AT_MIN_ISR: "at_min_isr",
    }
)
_UNASKED: Final = frozenset({Concern.OFFLINE, Concern.UNDER_MIN_ISR, Concern.UNDER_REPLICATED})
_ORDER: Final = {concern: place for place, concern in enumerate(Concern)}

_Key = tuple[str, int]


@dataclass(frozen=True, slots=True)
class Judged:
    """A partition with what is wrong with it, the worst first, and its row; none where its state cannot be read."""

    metadata: PartitionMetadata
    concerns: tuple[Concern, ...] = ()
    row: PartitionRow | None = None

    @property
    def reason(self) -> str | None:
        """The concern about it in a sentence."""
        if self.metadata.state == UNREADABLE:
            return "its state cannot be read"
        return None if self.row is None else self.row.reason

    @property
    def name(self) -> str:
        """TOPIC-PARTITION."""
        return f"{self.metadata.topic}-{self.metadata.partition}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Selection:
    """The partitions to show: of some topics, with one concern; nothing given: all."""

    topics: frozenset[str] = frozenset()
    only: Concern | None = None

    def __bool__(self) -> bool:
        return bool(self.topics) or self.only is not None

    def has(self, partition: Judged) -> bool:
        """Whether it is shown."""
        of_topic = not self.topics or partition.metadata.topic in self.topics
        return of_topic and (self.only is None or self.only in partition.concerns)


class JudgedCluster:
    """A cluster at one moment: what its znodes say, and what the replica that took them in makes of it."""

    def __init__(self, metadata: Collection[Metadata], context: Context, rows: Iterable[Row]) -> None:
        concerns = _concerns(context)
        by_partition = {(row.topic, row.partition): row for row in rows if isinstance(row, PartitionRow)}
        self.unreadable = [line for line in metadata if isinstance(line, UnreadableZnode)]
        self.brokers = [line for line in metadata if isinstance(line, BrokerMetadata)]
        (self.controller,) = (line for line in metadata if isinstance(line, ControllerMetadata))
        self.partitions = [
            _judged(line, concerns, by_partition) for line in metadata if isinstance(line, PartitionMetadata)
        ]


def _concerns(context: Context) -> dict[_Key, tuple[Concern, ...]]:
    """The concerns by partition, as the gauges count them."""
    rules = context.header.counting_rules
    found: dict[_Key, tuple[Concern, ...]] = {}
    for name, topic in context.topics:
        if topic.queued_for_deletion:
            continue  # nobody asks any more who is left of it
        for number, partition in topic.partitions.items():
            keys = keys_of_partition(topic, partition, rules)
            found[name, number] = tuple(concern for concern, key in _GAUGES.items() if key in keys)
    return found


def _judged(
    line: PartitionMetadata, concerns: Mapping[_Key, tuple[Concern, ...]], rows: Mapping[_Key, PartitionRow]
) -> Judged:
    if line.state == UNREADABLE:
        return Judged(line)
    key = (line.topic, line.partition)
    return Judged(line, concerns.get(key, ()), rows.get(key))


def print_json(picture: JudgedCluster, selection: Selection) -> None:
    """One JSON object a line: what cannot be read, brokers, controller, then the chosen partitions."""
    for line in (*picture.unreadable, *picture.brokers, picture.controller):
        print_object(line, flush=False)
    for partition in filter(selection.has, picture.partitions):
        print_object(_object(partition), flush=False)
    flush()


def _object(partition: Judged) -> dict[str, Any]:
    fields: dict[str, Any] = msgspec.to_builtins(partition.metadata)
    row = partition.row
    return {
        **fields,
        "writable_acks_all": None if row is None else row.writable_acks_all,
        "in_sync_lacking": 0 if row is None else row.in_sync_lacking,
        "in_sync_candidates": () if row is None else row.in_sync_candidates,
        "concerns": [concern.value for concern in partition.concerns],
        "reason": partition.reason,
    }


def print_summary(picture: JudgedCluster, selection: Selection) -> None:
    """The brokers, the counts, and the partitions that are chosen or not well, the worst first."""
    for line in (*_cluster_lines(picture), *_partition_lines(picture, selection)):
        print_line(line, flush=False)
    flush()


def _partition_lines(picture: JudgedCluster, selection: Selection) -> Iterator[str]:
    if selection:
        chosen = sorted(filter(selection.has, picture.partitions), key=_worst_first)
        yield from map(_partition_line, chosen)
        if not chosen:
            yield "no partition is as asked for"
        return
    unwell = sorted((partition for partition in picture.partitions if _is_unwell(partition)), key=_worst_first)
    yield from map(_partition_line, unwell[:_NAMED_PARTITIONS])
    if len(unwell) > _NAMED_PARTITIONS:
        rest = Counter(_word(partition) for partition in unwell[_NAMED_PARTITIONS:])
        counts = ", ".join(f"{count} {word}" for word, count in rest.items())
        yield (f"and {len(unwell) - _NAMED_PARTITIONS} more ({counts}): --only names all of one kind, --json all")


def _cluster_lines(picture: JudgedCluster) -> Iterator[str]:
    partitions = [partition.metadata for partition in picture.partitions]
    led, hosted = Counter(line.leader for line in partitions), Counter(b for line in partitions for b in line.replicas)
    controller = picture.controller
    who = f"broker {controller.broker}" if controller.broker >= 0 else "nobody"
    yield f"controller: {who}, epoch {controller.epoch}"
    for broker in picture.brokers:
        hosts = counted(hosted[broker.broker], "partition")
        if not broker.registered:
            yield f"broker {broker.broker}: not registered, hosts {hosts}"
            continue
        rack = f", rack {broker.rack}" if broker.rack else ""
        where = ",".join(broker.endpoints) or "no endpoint"
        leads = f"leads {led[broker.broker]} of {hosts}"
        yield f"broker {broker.broker}: epoch {broker.epoch}, {where}{rack}, {leads}"
    states = Counter(line.state for line in partitions)
    counts = ", ".join(f"{count} {state}" for state, count in sorted(states.items())) or "none"
    topics = counted(len({line.topic for line in partitions}), "topic")
    yield f"{topics}, {counted(len(partitions), 'partition')}: {counts}"
    if picture.unreadable:
        yield f"incomplete: {counted(len(picture.unreadable), 'znode')} cannot be read, nor what is below"


def _is_unwell(partition: Judged) -> bool:
    return partition.metadata.state == UNREADABLE or not _UNASKED.isdisjoint(partition.concerns)


def _worst_first(partition: Judged) -> tuple[int, str, int]:
    worst = min((_ORDER[concern] for concern in partition.concerns), default=len(_ORDER))
    return worst, partition.metadata.topic, partition.metadata.partition


def _word(partition: Judged) -> str:
    if partition.concerns:
        return partition.concerns[0].value
    return "deleting" if partition.metadata.deleting else partition.metadata.state


def _partition_line(partition: Judged) -> str:
    line = partition.metadata
    leader = f"broker {line.leader}" if line.leader >= 0 else "none"
    said = partition.reason or f"leader {leader}, in sync {list(line.isr)} of {list(line.replicas)}"
    return f"{partition.name}: {_word(partition)}: {said}"
