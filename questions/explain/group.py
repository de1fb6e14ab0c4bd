"""State of a consumer group: its coordinator by ZooKeeper, its members and partitions by the brokers' last answers."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from controller.contract.ids import NO_LEADER, TopicPartition
from questions.clients.groups import answered_ago, effects_in_words, effects_on, sizes_in, troubled_in_context
from questions.clients.known_groups import CONSUMER_OFFSETS, Group, coordinator_of
from questions.explain.explanation import Explanation, Statement, explanation_of
from questions.picture import Picture
from wording.sentences import counted, joined

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
