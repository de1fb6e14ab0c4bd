"""Subjects of questions and their notation (orders-7, orders, broker 3, controller), and the state of a consumer group.

A group's coordinator is known by ZooKeeper, its members and partitions by the brokers' last answers.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Annotated, Final

import msgspec

from controller.contract.effect_rows import Transition
from controller.contract.ids import NO_LEADER, BrokerId, PartitionId, TopicPartition
from controller.contract.metadata_rows import PartitionRow
from controller.contract.row import Row
from questions.clients.groups import answered_ago, effects_in_words, effects_on, sizes_in, troubled_in_context
from questions.clients.known_groups import CONSUMER_OFFSETS, Group, coordinator_of
from questions.explain.broker import explain_broker
from questions.explain.controller import explain_controller
from questions.explain.deleted_topic import (
    explain_deleted_topic,
    explain_unloadable_topic,
    has_leftovers,
    is_unloadable,
)
from questions.explain.explanation import Explanation, Statement, explanation_of
from questions.explain.partition import explain_partition
from questions.explain.topic import explain_topic
from questions.known_brokers import is_known
from questions.picture import Picture
from questions.question import NotFoundError, Question, Scope, meaning
from wording.sentences import counted, joined, near

_NAMED: Final = 10
_NOT_ASKED: Final = "not known. Set groups = true in [serve.probe], so that `kontrast serve` asks the brokers"


def explain_group(picture: Picture, name: str) -> Explanation | None:
    """Return the explanation of a group, None if the brokers do not know the group.

    If no broker has answered yet, only the group's coordinator is known.
    """
    clients = picture.clients
    group = clients.known.groups.get(name)
    if group is None and clients.known.asked_ms:
        return None
    troubled = troubled_in_context(picture.context)
    effects, lost = effects_on(group or Group(name, "", 0), troubled)
    coordinator = coordinator_of(CONSUMER_OFFSETS, name, troubled.sizes)
    needed = [*lost, *([TopicPartition(*coordinator)] if coordinator else [])]
    since = [each.problem_since_ms for each in map(picture.partition, needed) if each is not None and each.problem]
    return explanation_of(
        picture,
        f"group {name}",
        effects_in_words(effects, lost) or _headline(group),
        is_well=not effects,
        since=picture.since(min(since)) if effects and since else None,
        statements=_statements(picture, name, group, lost),
        causes=(),
        findings=(),
    )


def _headline(group: Group | None) -> str:
    if group is None:
        return "its coordinator can be reached"
    return "reads all its partitions, and can commit" if group.is_running else "nobody reads in its name"


def _statements(
    picture: Picture, name: str, group: Group | None, lost: Sequence[TopicPartition]
) -> Iterator[Statement]:
    team = picture.clients.teams.team_of(name)
    if team is not None:
        yield Statement("team", str(team))
    yield Statement("coordinator", _coordinator(picture, name))
    if group is None:
        yield Statement("members", _NOT_ASKED)
        return
    members = "with members" if group.has_members else "without members"
    yield Statement("state", f"{group.state}, {members}, {answered_ago(group.seen_ms, picture.now_ms)}")
    if group.subscribes:
        yield Statement("subscribes", joined(group.subscribes))
    reads = [f"{counted(len(numbers), 'partition')} of {topic}" for topic, numbers in group.reads.items()]
    if reads:
        yield Statement("reads", joined(reads))
    for tp in lost[:_NAMED]:
        yield Statement("", f"{tp}: {picture.reason(tp)}")
    if group.committed:
        yield Statement("committed", f"offsets of {joined(list(group.committed))}")
    for gap in picture.clients.known.gaps:
        yield Statement("not known", gap)


def _coordinator(picture: Picture, name: str) -> str:
    found = coordinator_of(CONSUMER_OFFSETS, name, sizes_in(picture.context))
    if found is None:
        return f"none yet, because {CONSUMER_OFFSETS} does not exist"
    tp = TopicPartition(*found)
    partition = picture.partition(tp)
    state = None if partition is None else partition.zk_state
    if partition is None or partition.problem is not None or state is None or state.leader == NO_LEADER:
        reason = None if partition is None or partition.problem is None else picture.reason(tp)
        return f"{tp}: {reason or 'it has no leader'}"
    return f"broker {state.leader}, which leads {tp}"


_PARTITION: Final = re.compile(r"(?P<topic>.+)-(?P<number>0|[1-9][0-9]{0,8})")
NUMBER: Final = re.compile(r"0|[1-9][0-9]{0,8}")


class Subject(msgspec.Struct, frozen=True):
    """Subject of a question, with its possible readings, likelier first, and the required part of the cluster."""

    words: str
    partition: TopicPartition | None = None
    topic: str | None = None
    broker: BrokerId | None = None
    is_controller: bool = False
    group: str | None = None

    @property
    def topics(self) -> frozenset[str] | None:
        """Return the required topics, or None for all."""
        named = [self.topic] if self.topic is not None else []
        named += [self.partition.topic] if self.partition is not None else []
        return frozenset(named) if named else None

    def keeps(self, row: Row) -> bool:
        """Return whether the row may have a cause of the subject's state."""
        tp = self.partition
        if not isinstance(row, (Transition, PartitionRow)):
            return False
        if tp is not None and (row.topic, row.partition) == (tp.topic, tp.partition):
            return True
        if isinstance(row, PartitionRow):
            return False
        match row.subject:
            case "topic":
                return row.topic == self.topic
            case "controller" if self.is_controller:
                return True
            case "broker" | "controller":  # either may have moved the partition
                return tp is not None or (self.broker is not None and row.broker == self.broker)
        return False

    def explain(self, picture: Picture, *, decommission: bool = False) -> Explanation | None:
        """Explain the first reading that exists, if any."""
        if self.is_controller:
            return explain_controller(picture)
        if self.group is not None:
            return explain_group(picture, self.group)
        if self.broker is not None:
            found = is_known(picture.context, self.broker)
            return explain_broker(picture, self.broker, decommission=decommission) if found else None
        if self.partition is not None and picture.partition(self.partition) is not None:
            return explain_partition(picture, self.partition)
        if self.topic is not None and has_leftovers(picture, self.topic):
            return explain_deleted_topic(picture, self.topic)
        if self.topic is not None and is_unloadable(picture, self.topic):
            return explain_unloadable_topic(picture, self.topic)
        if self.topic is not None and picture.topic(self.topic) is not None:
            return explain_topic(picture, self.topic)
        if self.partition is not None and is_unloadable(picture, self.partition.topic):
            return explain_unloadable_topic(picture, self.partition.topic)
        return None

    def similar(self, picture: Picture) -> list[str]:
        """Return existing topics and partitions with a similar name, the nearest first."""
        if self.group is not None:
            return near(self.group, picture.clients.known.groups)
        names = [name for name, topic in picture.context.topics if topic.exists]
        if self.partition is not None:
            number = self.partition.partition
            in_topics = near(self.partition.topic, names)
            if found := [f"{name}-{number}" for name in in_topics if picture.partition(TopicPartition(name, number))]:
                return found
        return near(self.topic or "", names)


class Explain(Question, frozen=True):
    """Explain the state of a partition, topic, broker, consumer group or the controller, with the steps to it."""

    answer = Explanation
    tool = "explain"
    asks_clients = True

    subject: Annotated[
        str, meaning("TOPIC-PARTITION such as orders-7, TOPIC, 'broker 3', 'group NAME', or 'controller'.")
    ]
    is_topic: Annotated[bool, meaning("The subject is a topic, even if its name looks like a partition's.")] = False
    decommission: Annotated[bool, meaning("Show the steps to remove the broker for good.")] = False

    def __post_init__(self) -> None:
        """Raise ValueError for words that name no subject."""
        self._read()

    def _read(self) -> Subject:
        kind, _, name = self.subject.strip().partition(" ")  # a group's name may have blanks
        return read_subject([kind, name.strip()] if name else [kind], is_topic=self.is_topic)

    def scope(self) -> Scope:
        """Return the topics that the subject needs, and the past rows with its causes."""
        subject = self._read()
        return Scope(subject.topics, past=True, keeps=subject.keeps, past_outputs=("transitions", "metadata"))

    def ask(self, picture: Picture) -> Explanation:
        """Explain the first reading of the words that exists. Raise NotFoundError."""
        explanation = self._read().explain(picture, decommission=self.decommission)
        if explanation is None:
            seen = "what Kontrast may read of " if picture.forbidden else ""
            raise NotFoundError(f"there is no {self.subject} in {seen}cluster {picture.header.cluster}")
        return explanation

    def similar(self, picture: Picture) -> list[str]:
        """Return existing topics, partitions and groups with a similar name."""
        return self._read().similar(picture)


def read_partition(word: str) -> TopicPartition:
    """Return the partition that a word like orders-7 names. Raise ValueError."""
    found = _PARTITION.fullmatch(word)
    if found is None:
        raise ValueError(f"{word!r} is no partition. Write TOPIC-PARTITION, like orders-7")
    return TopicPartition(found["topic"], PartitionId(int(found["number"])))


def read_subject(words: Sequence[str], *, is_topic: bool = False) -> Subject:
    """Return the subject of the words. A word that fits a partition and a topic is both. Raise ValueError."""
    said = " ".join(words)
    if is_topic and len(words) == 1:
        return Subject(said, topic=said)
    match list(words):
        case ["controller"]:
            return Subject(said, is_controller=True)
        case ["broker", number] if NUMBER.fullmatch(number):
            return Subject(said, broker=BrokerId(int(number)))
        case ["group", *parts] if parts:  # Kafka takes any character in the name of a group
            return Subject(said, group=" ".join(parts))
        case [name] if _PARTITION.fullmatch(name):
            return Subject(said, partition=read_partition(name), topic=name)
        case [name] if name != "broker":
            return Subject(said, topic=name)
    raise ValueError(f"{said!r} is no subject. Write TOPIC-PARTITION, TOPIC, broker N, group NAME or controller")
