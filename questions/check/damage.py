"""The damage to clients, computed once from a cluster's partitions and worded once for every face.

Partitions that clients cannot use, or not with acks=all, are grouped by topic and cause. The damage counts them by
topic, the most important topic first. A rank orders topics inside a fact, never the facts, so offline partitions come
before those that reject acks=all.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import starmap
from typing import Final

import msgspec

from controller.contract.ids import INTERNAL_TOPICS, BrokerId, PartitionId, TopicPartition
from controller.contract.metadata_rows import PartitionRow, TopicRow
from controller.contract.problem import UNUSABLE, Problem
from controller.rules.topic_ranks import TopicRanks, place_in_sentence
from controller.says.alert_kinds.partitions import ELECTION_DUE
from controller.view.health import needed_in_sync
from controller.view.returns import Waiting
from controller.view.rows import partition_row, topic_row
from controller.view.types import Context, CountingRules
from questions.cluster_rows import TopicRows, problem_since_ms
from wording.facts import Fact
from wording.sentences import counted, joined, listed, one_of

_EXAMPLES: Final = 20
_TOPICS_IN_A_SENTENCE: Final = 2
_LONGEST_NAME: Final = 48
_UP_TO_CONTROLLER: Final = frozenset(
    {Problem.LEADERLESS.value, Problem.ELECTION_DUE.value, Problem.NOT_YET_CREATED.value}
)

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

    @property
    def waiting(self) -> Waiting:
        """Return the partitions as they wait for brokers to return."""
        internal = self.count if self.topic in INTERNAL_TOPICS else 0
        return Waiting(frozenset(self.needs), self.lacking, self.count, self.is_offline, internal, self.topic)

    @property
    def is_offline(self) -> bool:
        """Return whether no client can use the partitions. Otherwise they reject acks=all."""
        return self.problem != Problem.UNDER_MIN_ISR.value

    @property
    def is_up_to_controller(self) -> bool:
        """Return whether only the controller can end the problem."""
        return self.problem in _UP_TO_CONTROLLER


class TopicDamage(msgspec.Struct, frozen=True):
    """Partitions of a topic that clients cannot use, or not with acks=all."""

    topic: str
    of: int
    offline: int
    refusing: int  # partitions that reject acks=all


class Damage(msgspec.Struct, frozen=True):
    """What clients cannot use, by topic, the most important topic first."""

    topics: tuple[TopicDamage, ...] = ()

    @property
    def offline(self) -> int:
        """Return how many partitions no client can use."""
        return sum(each.offline for each in self.topics)

    @property
    def refusing(self) -> int:
        """Return how many partitions reject acks=all."""
        return sum(each.refusing for each in self.topics)

    @property
    def title(self) -> str:
        """Return the counts for a title: "2 offline, 6 reject acks=all"."""
        facts = ((self.offline, Fact.OFFLINE.word), (self.refusing, Fact.REJECTS_ACKS_ALL.predicate(self.refusing)))
        return ", ".join(f"{count:,} {word}" for count, word in facts if count)

    @property
    def sentence(self) -> str:
        """Return "2 partitions of scratch are offline, and 6 of ledger reject acks=all.", empty without damage."""
        facts = (
            (Fact.OFFLINE, [each.topic for each in self.topics if each.offline], self.offline),
            (Fact.REJECTS_ACKS_ALL, [each.topic for each in self.topics if each.refusing], self.refusing),
        )
        said: list[str] = []
        for fact, topics, count in facts:
            if count:
                number = f"and {count:,}" if said else counted(count, "partition")
                said.append(f"{number} of {_named(topics)} {fact.predicate(count)}")
        return f"{', '.join(said)}." if said else ""


def _named(topics: Sequence[str]) -> str:
    names, more = list(map(short, topics[:_TOPICS_IN_A_SENTENCE])), len(topics) - _TOPICS_IN_A_SENTENCE
    return joined([*names, *([counted(more, "more topic")] if more > 0 else [])])


def short(name: str) -> str:
    """Return the name without its middle if it is too long for a sentence."""
    return name if len(name) <= _LONGEST_NAME else f"{name[: _LONGEST_NAME - 13]}…{name[-12:]}"


def damage_of(groups: Iterable[PartitionGroup]) -> Damage:
    """Return the damage of these groups, which are in the order of their topics."""
    by_topic: dict[str, list[PartitionGroup]] = {}
    for group in groups:
        by_topic.setdefault(group.topic, []).append(group)
    return Damage(tuple(starmap(_topic_damage, by_topic.items())))


def _topic_damage(topic: str, groups: Sequence[PartitionGroup]) -> TopicDamage:
    offline = sum(group.count for group in groups if group.is_offline)
    return TopicDamage(topic, groups[0].of, offline, sum(group.count for group in groups) - offline)


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


def after_elections(
    rows: Iterable[PartitionRow], topics: Topics, rules: CountingRules, now_ms: int
) -> Iterator[PartitionRow]:
    """Yield the rows as the controller's due elections leave them. An election that is late stays as it is."""
    for row in rows:
        is_late = now_ms - problem_since_ms(row) >= ELECTION_DUE.patience_ms
        if (
            row.problem != Problem.ELECTION_DUE.value
            or not row.predicted_isr
            or row.predicted_leader is None
            or is_late
        ):
            yield row
            continue
        topic, replicas = topics.get(row.topic, _NO_TOPIC).row, len(row.replicas)
        by_topic = None if topic is None else topic.min_insync_replicas
        lacking = needed_in_sync(by_topic, row.predicted_leader, replicas, rules) - len(row.predicted_isr)
        if lacking > 0:
            yield msgspec.structs.replace(
                row,
                problem=Problem.UNDER_MIN_ISR.value,
                isr=row.predicted_isr,
                in_sync_lacking=lacking,
                in_sync_candidates=tuple(broker for broker in row.replicas if broker not in row.predicted_isr),
            )


def groups_in(context: Context) -> tuple[PartitionGroup, ...]:
    """Return the groups of a cluster whose partitions are all in the context."""
    header = context.header
    stamp, epoch = (header.cluster, 0, 0, 0, header.zxid, header.time_ms), header.controller_epoch
    rows: list[PartitionRow] = []
    topics: dict[str, TopicRows] = {}
    for name, topic in context.topics:
        for number, partition in topic.partitions.items():
            if partition.problem in UNUSABLE or partition.problem is Problem.UNDER_MIN_ISR:
                due = partition.value(epoch) if partition.write_due else None
                rows.append(partition_row(TopicPartition(name, number), partition, topic, due, None, stamp))
                topics[name] = TopicRows(topic_row(name, topic, stamp), {})
    return groups_of(rows, topics, header.topic_ranks)


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
        live = len(set(row.isr).difference(needs))  # without a dead replica that is still in the ISR
        in_sync = f"{live} of {len(row.replicas)} replicas in sync, {live + lacking} needed."
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
