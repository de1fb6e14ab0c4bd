"""State of a topic's partitions, its settings, and changes of the whole topic."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

import msgspec

from controller.contract.ids import PartitionId, TopicPartition
from controller.contract.problem import UNUSABLE
from controller.rules.states import ReplicaState
from controller.says.alert_kinds import kinds
from controller.says.remedies.topics import PUT_ID_BACK
from controller.view.flawed_znodes import topics_without_id
from controller.view.health import absence
from controller.view.held_back import DELETING_MS, deletion_off
from controller.view.types import Partition, Topic
from controller.view.unparsable import Unparsable, unparsable_at_start
from questions.clients.groups import (
    Effect,
    effects_in_words,
    effects_on,
    readers_as_of,
    readers_by_topic,
    troubled_in_context,
)
from questions.explain.causes import causes_of, last_writes
from questions.explain.explanation import Certainty, Explanation, Statement, explanation_of, findings_about
from questions.picture import Origin, Picture
from wording.facts import Fact
from wording.sentences import all_of, counted, joined, listed

_NAMED: Final = 20


def explain_topic(picture: Picture, name: str) -> Explanation:
    """Return the explanation of an existing topic."""
    topic = picture.topic(name)
    assert topic is not None, f"there is no topic {name}"
    found = [(number, partition) for number, partition in topic.partitions.items() if partition.problem is not None]
    unwell = sorted(found, key=lambda item: (item[1].problem not in UNUSABLE, item[0]))  # the unusable first
    since_ms = min((partition.problem_since_ms for _, partition in unwell), default=None)
    paths = [(f"/brokers/topics/{name}", "its assignment"), (f"/config/topics/{name}", "its settings")]
    is_look = picture.origin is Origin.LOOK
    return explanation_of(
        picture,
        f"topic {name}",
        _headline(topic, unwell),
        is_well=not unwell and not topic.queued_for_deletion and not list(_unparsable(picture, name)),
        since=None if since_ms is None else picture.since(since_ms),
        statements=_statements(picture, name, topic, unwell),
        causes=last_writes(picture, paths) if is_look else causes_of(picture.story),
        findings=findings_about(picture, names=(name, *(f"{name}-{number}" for number in topic.partitions))),
    )


def _clients(picture: Picture, name: str) -> Iterator[Statement]:
    """Yield the owner, the consumer groups that read the topic, and the groups that cannot read a partition."""
    clients = picture.clients
    owner = clients.teams.team_of(name)
    if owner is not None:
        yield Statement("team", str(owner))
    readers = readers_by_topic(clients.known, {name})[name]
    if readers:
        yield Statement("read by", readers_as_of(readers, clients, picture.now_ms))
    troubled = troubled_in_context(picture.context)
    for group in readers:
        lost = [tp for tp in effects_on(clients.known.groups[group], troubled)[1] if tp.topic == name]
        if lost:
            yield Statement("", f"group {group} {effects_in_words([Effect.CANNOT_READ], lost)}")


def _headline(topic: Topic, unwell: list[tuple[PartitionId, Partition]]) -> str:
    if topic.queued_for_deletion:
        return "being deleted"
    if not unwell:
        count = len(topic.partitions)
        return f"{all_of(count, 'partition', 'is')} led and in sync" if count else "it has no partitions"
    unusable = sum(partition.problem in UNUSABLE for _, partition in unwell)
    rejecting = sum(partition.in_sync_lacking > 0 for _, partition in unwell)
    lacking = len(unwell) - unusable - rejecting
    counts = ((Fact.WITHOUT_LEADER, unusable), (Fact.REJECTS_ACKS_ALL, rejecting), (Fact.UNDER_REPLICATED, lacking))
    (first, count), *rest = [(fact, count) for fact, count in counts if count]
    if count == len(topic.partitions):
        return all_of(count, "partition", first.singular)
    of = f"{count:,} of {counted(len(topic.partitions), 'partition')} {first.predicate(count)}"
    return ", ".join([of, *(f"{more:,} {fact.predicate(more)}" for fact, more in rest)])


def _statements(
    picture: Picture, name: str, topic: Topic, unwell: list[tuple[PartitionId, Partition]]
) -> Iterator[Statement]:
    if topic.topic_id:
        yield Statement("id", topic.topic_id)
    elif name in picture.header.damaged.lost_ids or topics_without_id(picture.header):
        yield from _missing_id(picture, name)
    factors = sorted({len(partition.replicas) for partition in topic.partitions.values()})
    factor = f", replication factor {joined(list(map(str, factors)), 'or')}" if factors else ""
    yield Statement("size", f"{counted(len(topic.partitions), 'partition')}{factor}")
    yield from _clients(picture, name)
    yield from _settings(picture, topic)
    for each in _unparsable(picture, name):
        says = f"{each.setting}={each.value}, but Kafka expects {each.expected}. Every broker fails at its next start"
        yield Statement("setting", says)
    if topic.queued_for_deletion:
        yield from _deletion(picture, name, topic)
    moving = [number for number, partition in topic.partitions.items() if partition.reassigning]
    if moving:
        named = joined(list(map(str, sorted(moving))))
        yield Statement("reassignment", f"of {counted(len(moving), 'partition')}: {named}")
    for at, (number, _) in enumerate(unwell[:_NAMED]):
        reason = picture.reason(TopicPartition(name, number))
        yield Statement("partitions" if at == 0 else "", f"{name}-{number}: {reason}")
    if len(unwell) > _NAMED:
        yield Statement("", f"and {len(unwell) - _NAMED:,} more")


def _missing_id(picture: Picture, name: str) -> Iterator[Statement]:
    yield Statement("id", f"none. {kinds.MISSING_TOPIC_ID.action}")
    record = (picture.records or {}).get(f"/brokers/topics/{name}")
    former = picture.header.damaged.lost_ids.get(name, "ID")
    if record is not None and record.content:
        content = msgspec.json.decode(record.content) | {"version": 3, "topic_id": former}
        put_back = PUT_ID_BACK.filled(TOPIC=name, CONTENT=msgspec.json.encode(content).decode())
        for command in put_back.way().commands:
            yield Statement("", command)


def _settings(picture: Picture, topic: Topic) -> Iterator[Statement]:
    header, needed, unclean = picture.header, topic.min_insync_replicas, topic.unclean_election
    default = header.counting_rules.least_in_sync
    yield Statement(
        "min.insync.replicas",
        str(needed) if needed is not None else f"{default}, the brokers' own",
        Certainty.SEEN if needed is not None else Certainty.ASSUMED,
    )
    allowed = header.allows_unclean_election_of(topic)
    yield Statement(
        "unclean.leader.election.enable",
        str(allowed).lower() + (", the brokers' own" if unclean is None else ""),
        Certainty.ASSUMED if unclean is None else Certainty.SEEN,
    )


def _unparsable(picture: Picture, name: str) -> Iterator[Unparsable]:
    found = unparsable_at_start(picture.header, lambda topic: topic == name)
    return (each for each in found if each.topic == name)


def _deletion(picture: Picture, name: str, topic: Topic) -> Iterator[Statement]:
    away = sorted({at for partition in topic.partitions.values() for at in picture.unregistered(partition.replicas)})
    waits = f"waits until {listed(away, 'returns')}" if away else "its brokers are asked to delete their replicas"
    yield Statement("deletion", waits, Certainty.EXPECTED)
    asked_ms = picture.written_ms.get(f"/admin/delete_topics/{name}", picture.as_of_ms)
    if away:
        yield Statement("", absence(away, picture.header))
    elif picture.as_of_ms - asked_ms >= DELETING_MS and (why := deletion_off(picture.header)):
        yield Statement("do", why)
    states = [state for partition in topic.partitions.values() for state in partition.all_replica_states.values()]
    deleted = states.count(ReplicaState.DELETION_SUCCESSFUL)
    yield Statement("", f"{deleted} of {counted(len(states), 'replica')} deleted on their brokers", Certainty.INFERRED)
    left = sum(partition.zk_state is not None for partition in topic.partitions.values())
    yield Statement("", f"{left} of {counted(len(topic.partitions), 'partition state')} left in ZooKeeper")
