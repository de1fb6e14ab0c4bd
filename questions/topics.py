"""Topics of a cluster as pages of a list, and existing names that are similar to a mistyped one."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Final, NamedTuple

import msgspec

from controller.contract.ids import TopicPartition
from controller.contract.metadata_rows import PartitionRow
from controller.contract.problem import UNUSABLE_WORDS, Problem
from controller.rules.topic_ranks import TopicRanks
from questions.cluster_rows import TopicRows
from questions.explain.subject import Subject
from questions.memory import Memory
from questions.overview.partition_groups import place_of
from wording.suggestions import near

TOPICS_OF_A_PAGE: Final = 50
_MOST_NAMES: Final = 5_000  # compared with a mistyped one, which takes up to 0.3 s


class TopicLine(msgspec.Struct, frozen=True):
    """A topic in a list."""

    topic: str
    partitions: int
    unusable: int
    under_min_isr: int
    under_replicated: int


class TopicList(msgspec.Struct, frozen=True):
    """Topics by name, or those with problems by importance. `next` is the name to go on after, None at the end."""

    doubts: tuple[str, ...]
    topics: tuple[TopicLine, ...]
    next: str | None


class TopicsAsked(NamedTuple):
    """Request of a page of topics whose names contain a text in any case. `after` is the former page's last topic."""

    contains: str = ""
    after: str = ""
    lacking: bool = False  # only topics with problems, the most important first


def list_topics(
    memory: Memory, cluster: str, asked: TopicsAsked, ranks: TopicRanks, doubts: tuple[str, ...]
) -> TopicList:
    """Return a page of the cluster's topics as they are now."""
    if asked.lacking:
        topics = _topics(memory, cluster, None)
        names = _lacking(topics, asked.contains, ranks)
        first = names.index(asked.after) + 1 if asked.after in names else 0
        names = names[first : first + TOPICS_OF_A_PAGE + 1]
    else:
        names = memory.topic_names(cluster, asked.contains, asked.after, TOPICS_OF_A_PAGE + 1)
        topics = _topics(memory, cluster, names)
    shown = names[:TOPICS_OF_A_PAGE]
    lines = tuple(_line(name, topics[name].partitions.values()) for name in shown if name in topics)
    return TopicList(doubts, lines, shown[-1] if len(names) > len(shown) else None)


def _lacking(topics: Mapping[str, TopicRows], contains: str, ranks: TopicRanks) -> list[str]:
    found = {
        name: topic.row
        for name, topic in topics.items()
        if contains.lower() in name.lower() and any(row.problem is not None for row in topic.partitions.values())
    }
    return sorted(found, key=lambda name: place_of(name, found[name], ranks))


def _line(name: str, rows: Collection[PartitionRow]) -> TopicLine:
    problems = [row.problem for row in rows]
    refusing = [row for row in rows if row.problem == Problem.UNDER_MIN_ISR.value]
    return TopicLine(
        name,
        len(problems),
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


def _topics(memory: Memory, cluster: str, names: Collection[str] | None) -> Mapping[str, TopicRows]:
    """Return the named topics that exist, or all topics for None."""
    found = memory.cluster(cluster, topics=names)
    return {} if found is None else found.topics
