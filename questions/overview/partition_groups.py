"""Partitions that clients cannot use, grouped by topic and cause."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final

import msgspec

from controller.contract.ids import BrokerId, PartitionId
from controller.contract.metadata_rows import PartitionRow, TopicRow
from controller.contract.problem import Problem
from controller.rules.topic_ranks import TopicRanks, place_in_sentence
from questions.cluster_rows import TopicRows, problem_since_ms
from wording.facts import Fact
from wording.sentences import listed, one_of

_EXAMPLES: Final = 20

PROBLEMS_OF_CLIENTS: Final = {
    Problem.NO_LIVE_IN_SYNC_REPLICA: (Fact.OFFLINE.word, "No in-sync replica is alive."),
    Problem.ELECTION_DUE: ("no leader", "The controller must elect a leader."),
    Problem.LEADERLESS: ("no leader", "An in-sync replica is alive, but the controller does not elect it."),
    Problem.NO_LIVE_REPLICA_AT_CREATION: ("never led", "Created while no replica was alive."),
    Problem.NOT_YET_CREATED: ("not created", "It has no state. A controller writes only that of a new partition."),
    Problem.UNDER_MIN_ISR: (Fact.REJECTS_ACKS_ALL.singular, "Fewer replicas are in sync than min.insync.replicas."),
}
"""Short name and cause of each problem of clients."""


class PartitionLine(msgspec.Struct, frozen=True):
    """A partition in a list; `leader` -1 is none."""

    topic: str
    partition: PartitionId
    leader: BrokerId
    isr: tuple[BrokerId, ...]
    replicas: tuple[BrokerId, ...]
    problem: str | None
    since_ms: int | None  # when the problem began
    reason: str | None
    predicted_leader: BrokerId | None  # leader in the controller's due write, if there is one


class PartitionGroup(msgspec.Struct, frozen=True, kw_only=True):
    """Partitions of one topic with one problem and one cause."""

    topic: str
    problem: str
    says: str  # the cause
    needs: tuple[BrokerId, ...]  # brokers of which `lacking` must return
    lacking: int
    count: int
    of: int  # partitions of the topic
    names: frozenset[str]  # of the oldest partitions


Topics = Mapping[str, TopicRows]
_NO_TOPIC: Final = TopicRows(None, {})


def groups_of(rows: Iterable[PartitionRow], topics: Topics, ranks: TopicRanks) -> tuple[PartitionGroup, ...]:
    """Return the groups of partitions with a problem, the most important topics first."""
    found: dict[tuple[str, str, str], list[PartitionRow]] = {}
    for row in rows:
        found.setdefault(cause_key(row), []).append(row)
    groups = [_group(key, members, topics.get(key[0], _NO_TOPIC)) for key, members in found.items()]
    order = list(PROBLEMS_OF_CLIENTS)

    def rank(group: PartitionGroup) -> tuple[object, ...]:
        topic = topics.get(group.topic, _NO_TOPIC).row
        return place_of(group.topic, topic, ranks), order.index(Problem(group.problem)), -group.count, group.says

    return tuple(sorted(groups, key=rank))


def cause_key(row: PartitionRow) -> tuple[str, str, str]:
    """Return the key of the row's group: its topic, problem and cause."""
    return row.topic, str(row.problem), cause_of(row)


def place_of(name: str, topic: TopicRow | None, ranks: TopicRanks) -> tuple[int, str]:
    """Return the place of a topic among others, the smallest first. `topic` is None if its settings are unknown."""
    in_sync, replicas = (
        (0, 0) if topic is None else (topic.min_insync_replicas or 1, max(topic.replication_factors, default=0))
    )
    return place_in_sentence(name, in_sync, replicas, ranks), name


def partition_line(row: PartitionRow) -> PartitionLine:
    """Return the partition as a line of a list."""
    return PartitionLine(
        row.topic,
        row.partition,
        row.leader,
        row.isr,
        row.replicas,
        row.problem,
        None if row.problem is None else problem_since_ms(row),
        row.reason,
        row.predicted_leader,
    )


def needs_of(row: PartitionRow) -> tuple[tuple[BrokerId, ...], int]:
    """Return the brokers that can end the partition's problem, if any, and how many of these must return."""
    if row.problem == Problem.UNDER_MIN_ISR.value:
        return row.in_sync_candidates, row.in_sync_lacking
    if row.problem == Problem.NO_LIVE_REPLICA_AT_CREATION.value:
        return row.replicas, 1
    if row.problem == Problem.NO_LIVE_IN_SYNC_REPLICA.value and not (row.details and row.details.offline_dirs):
        return row.isr or row.replicas, 1
    return (), 0


def cause_of(row: PartitionRow) -> str:
    """Return why clients cannot use the partition, or not write to it with acks=all, and which brokers it needs."""
    problem = Problem(row.problem)
    needs, lacking = needs_of(row)
    if problem is Problem.UNDER_MIN_ISR:
        in_sync = f"{len(row.isr)} of {len(row.replicas)} replicas in sync, {len(row.isr) + lacking} needed."
        if lacking > len(needs):
            return f"{in_sync} No broker can help. Lower min.insync.replicas."
        return f"{in_sync} {_needs(needs, lacking)}"
    if problem is Problem.NO_LIVE_IN_SYNC_REPLICA and needs:
        if len(row.replicas) == 1:
            return f"Its only replica is on broker {row.replicas[0]}."
        return f"No in-sync replica is alive. {_needs(needs, 1)}"
    if problem is Problem.ELECTION_DUE and row.predicted_leader is not None and row.predicted_leader >= 0:
        return f"The controller must elect broker {row.predicted_leader}."
    return PROBLEMS_OF_CLIENTS[problem][1]


def _needs(brokers: tuple[BrokerId, ...], lacking: int) -> str:
    return f"Needs {one_of(brokers)}." if lacking == 1 else f"Needs {lacking} of {listed(brokers)}."


def _group(key: tuple[str, str, str], rows: list[PartitionRow], in_topic: TopicRows) -> PartitionGroup:
    topic, problem, says = key
    needs, lacking = needs_of(rows[0])
    return PartitionGroup(
        topic=topic,
        problem=problem,
        says=says,
        needs=needs,
        lacking=lacking,
        count=len(rows),
        of=max(len(in_topic.partitions), len(rows)),
        names=frozenset(f"{row.topic}-{row.partition}" for row in rows[:_EXAMPLES]),
    )
