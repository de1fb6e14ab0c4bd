"""Print the metadata of a complete read for `kontrast snapshot`, worst first."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from cli.printing.standard_output import (
    flush,
    print_json as print_object,
    print_json_lines as print_objects,
    print_line,
)
from controller.view.metadata import UNREADABLE
from questions.judged_cluster import Concern, JudgedCluster, JudgedPartition
from wording.facts import replicas_in_words
from wording.sentences import counted

_NAMED_PARTITIONS: Final = 20
_LINES_AT_ONCE: Final = 1_000

_UNASKED: Final = frozenset({Concern.OFFLINE, Concern.UNDER_MIN_ISR, Concern.UNDER_REPLICATED})
_ORDER: Final = {concern: place for place, concern in enumerate(Concern)}


@dataclass(frozen=True, slots=True, kw_only=True)
class Selection:
    """Choice of partitions by topic and by concern, by default all."""

    topics: frozenset[str] = frozenset()
    only: Concern | None = None

    def __bool__(self) -> bool:
        return bool(self.topics) or self.only is not None

    def has(self, partition: JudgedPartition) -> bool:
        """Return whether to show the partition."""
        of_topic = not self.topics or partition.topic in self.topics
        return of_topic and (self.only is None or self.only in partition.concerns)


def print_json(snapshot: JudgedCluster, selection: Selection) -> None:
    """Print one JSON object per line: unreadable znodes, brokers, the controller, then the chosen partitions."""
    for line in (*snapshot.unreadable, *snapshot.brokers, snapshot.controller):
        print_object(line, flush=False)
    chosen = list(filter(selection.has, snapshot.partitions)) if selection else snapshot.partitions
    for at in range(0, len(chosen), _LINES_AT_ONCE):
        print_objects(chosen[at : at + _LINES_AT_ONCE])
    flush()


def print_summary(snapshot: JudgedCluster, selection: Selection) -> None:
    """Print the brokers, the counts, and the chosen or troubled partitions, worst first."""
    for line in (*_cluster_lines(snapshot), *_partition_lines(snapshot, selection)):
        print_line(line, flush=False)
    flush()


def _partition_lines(snapshot: JudgedCluster, selection: Selection) -> Iterator[str]:
    if selection:
        chosen = sorted(filter(selection.has, snapshot.partitions), key=_worst_first)
        yield from map(_partition_line, chosen)
        if not chosen:
            yield "no partition matches"
        return
    unwell = sorted((partition for partition in snapshot.partitions if _is_unwell(partition)), key=_worst_first)
    yield from map(_partition_line, unwell[:_NAMED_PARTITIONS])
    if len(unwell) > _NAMED_PARTITIONS:
        rest = Counter(_word(partition) for partition in unwell[_NAMED_PARTITIONS:])
        counts = ", ".join(f"{count} {word}" for word, count in rest.items())
        yield (f"and {len(unwell) - _NAMED_PARTITIONS} more ({counts}, --only names all of one kind, --json all)")


def _cluster_lines(snapshot: JudgedCluster) -> Iterator[str]:
    partitions = snapshot.partitions
    led, hosted = Counter(line.leader for line in partitions), Counter(b for line in partitions for b in line.replicas)
    controller = snapshot.controller
    who = f"broker {controller.broker}" if controller.broker >= 0 else "none"
    yield f"controller: {who}, epoch {controller.epoch}"
    for broker in snapshot.brokers:
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
    if snapshot.unreadable:
        yield f"incomplete: {counted(len(snapshot.unreadable), 'znode')} cannot be read, nor their children"


def _is_unwell(partition: JudgedPartition) -> bool:
    return partition.state == UNREADABLE or not _UNASKED.isdisjoint(partition.concerns)


def _worst_first(partition: JudgedPartition) -> tuple[int, str, int]:
    worst = min((_ORDER[concern] for concern in partition.concerns), default=len(_ORDER))
    return worst, partition.topic, partition.partition


def _word(partition: JudgedPartition) -> str:
    if partition.concerns:
        return partition.concerns[0].value
    return "deleting" if partition.deleting else partition.state


def _partition_line(partition: JudgedPartition) -> str:
    leader = f"broker {partition.leader}" if partition.leader >= 0 else "none"
    said = partition.reason or f"leader {leader}, {replicas_in_words(partition.isr, partition.replicas)}"
    return f"{partition.name}: {_word(partition)}: {said}"
