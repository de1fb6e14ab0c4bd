"""Topics of a cluster as pages of a list, and existing names that are similar to a mistyped one."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Collection
from enum import Enum
from operator import attrgetter
from typing import Annotated, Final

import msgspec

from controller.contract.ids import TopicPartition
from controller.contract.metadata_rows import PartitionRow
from controller.contract.problem import UNUSABLE_WORDS, Problem
from questions.check.damage import place_of
from questions.explain.subject import Subject
from questions.memory import Memory
from questions.page.known_clusters import KnownCluster
from questions.question import Question, meaning
from wording.sentences import near

TOPICS_OF_A_PAGE: Final = 50
_NAME: Final = attrgetter("topic")
_MOST_NAMES: Final = 5_000  # compared with a mistyped one, which takes up to 0.3 s


class TopicLine(msgspec.Struct, frozen=True):
    """A topic in a list."""

    topic: str
    partitions: int
    unusable: int
    under_min_isr: int
    under_replicated: int

    @property
    def damage(self) -> tuple[int, int, int]:
        """Return the counts of partitions with problems, the worst problem first."""
        return self.unusable, self.under_min_isr, self.under_replicated


class TopicOrder(Enum):
    """Order of topics, by a field of their lines. The highest count comes first, of equal counts the worst topic."""

    TOPIC = "topic"
    PARTITIONS = "partitions"
    UNUSABLE = "unusable"
    UNDER_MIN_ISR = "under_min_isr"
    UNDER_REPLICATED = "under_replicated"


class TopicTotals(msgspec.Struct, frozen=True):
    """Sums over all selected topics, also over those of other pages."""

    topics: int
    partitions: int
    unusable: int
    under_min_isr: int
    under_replicated: int


class TopicList(msgspec.Struct, frozen=True):
    """A page of the selected topics in their order. `next` is the name to go on after, None at the end."""

    doubts: tuple[str, ...]
    totals: TopicTotals
    topics: tuple[TopicLine, ...]
    next: str | None


class ListTopics(Question, frozen=True):
    """Fifty of the cluster's topics, and the totals of all selected ones."""

    answer = TopicList
    path = "/clusters/{cluster}/topics"
    has_past = True

    words: Annotated[str, meaning("Only names that contain this text, in any case.")] = ""
    lacking: Annotated[str, meaning("1 returns only topics with a problem.")] = ""
    sort: Annotated[
        TopicOrder | None,
        meaning(
            "Order by the name or the highest of these counts, of equal counts the worst topic first. Default: the "
            "worst problem first, the most important topic of each, then all others by their name."
        ),
        msgspec.Meta(extra_json_schema={"type": "string", "enum": [order.value for order in TopicOrder]}),
    ] = None
    after: Annotated[str, meaning("Only topics after this one. Use `next` of the former answer.")] = ""

    def on_page(self, cluster: KnownCluster) -> TopicList:
        """Return a page of the topics that are asked for."""
        topics, ranks, is_lacking = cluster.snapshot(None).topics, cluster.clusters.ranks, self.lacking == "1"
        wanted, order = self.words.strip().lower(), self.sort
        found = (_line(name, topic.partitions.values()) for name, topic in topics.items() if wanted in name.lower())
        lines = [line for line in found if (any(line.damage) if is_lacking else line.partitions)]

        def place(line: TopicLine) -> tuple[object, ...]:
            counts = map(bool, line.damage) if order is None else (getattr(line, order.value), *line.damage)
            by_name = order is None and not any(line.damage)
            return *(-count for count in counts), line.topic if by_name else place_of(
                line.topic, topics[line.topic].row, ranks
            )

        if order is TopicOrder.TOPIC:
            lines.sort(key=_NAME)
            first = bisect_right(lines, self.after, key=_NAME)  # the former page's last topic may be deleted
        else:
            lines.sort(key=place)
            first = next((at for at, line in enumerate(lines, 1) if line.topic == self.after), 0)
        shown = tuple(lines[first : first + TOPICS_OF_A_PAGE])
        counts = TopicLine.__struct_fields__[1:]
        totals = TopicTotals(len(lines), *(sum(getattr(line, count) for line in lines) for count in counts))
        doubts = cluster.doubts() if cluster.at_ms is None else ()
        return TopicList(doubts, totals, shown, shown[-1].topic if first + len(shown) < len(lines) else None)


def _line(name: str, rows: Collection[PartitionRow]) -> TopicLine:
    unwell = [row for row in rows if row.problem is not None]
    problems = [row.problem for row in unwell]
    refusing = [row for row in unwell if row.problem == Problem.UNDER_MIN_ISR.value]
    return TopicLine(
        name,
        len(rows),
        sum(problem in UNUSABLE_WORDS for problem in problems),
        len(refusing),
        # Kafka's gauge also counts partitions that reject acks=all, if a replica is out of sync.
        problems.count(Problem.UNDER_REPLICATED.value) + sum(len(row.isr) < len(row.replicas) for row in refusing),
    )


def similar_topics(memory: Memory, cluster: str, name: str) -> list[str]:
    """Return the topics with a similar name, the nearest first. Of many topics, only those from its first letter on."""
    names = memory.topic_names(cluster, "", "", _MOST_NAMES)
    if len(names) == _MOST_NAMES:
        names = memory.topic_names(cluster, "", name[:1], _MOST_NAMES)
    return near(name, names)


def similar_partitions(memory: Memory, cluster: str, tp: TopicPartition) -> list[str]:
    """Return the partitions of this number in topics with a similar name, the nearest first."""
    names = similar_topics(memory, cluster, tp.topic)
    return [f"{name}-{tp.partition}" for name in names if tp.partition in memory.partitions_of(cluster, name)]


def similar_subjects(memory: Memory, cluster: str, subject: Subject) -> list[str]:
    """Return existing partitions or topics with a similar name, none for a subject that exists."""
    topic, tp = subject.topic, subject.partition
    if topic is None or memory.partitions_of(cluster, topic):
        return []
    if tp is not None and tp.partition in memory.partitions_of(cluster, tp.topic):
        return []
    return (similar_partitions(memory, cluster, tp) if tp is not None else []) or similar_topics(memory, cluster, topic)
