"""State of a consumer group: its coordinator by ZooKeeper, its members and partitions by the brokers' last answers."""

from __future__ import annotations

from collections.abc import Iterator

from controller.contract.ids import NO_LEADER, TopicPartition
from questions.explain.explanation import Explanation, Statement, as_of, explanation_of
from questions.groups import Effect, effects_on, sizes_in, troubled_in_context
from questions.known_groups import CONSUMER_OFFSETS, Group, coordinator_of
from questions.picture import Picture
from wording.sentences import counted, joined

_NOT_ASKED = "not known. Set groups = true in [serve.probe], so that `kontrast serve` asks the brokers"


def explain_group(picture: Picture, name: str) -> Explanation | None:
    """Return the explanation of a group, None for one that the brokers do not know.

    Without their answers, only its coordinator is known.
    """
    clients = picture.clients
    group = clients.known.groups.get(name)
    if group is None and clients.known.asked_ms:
        return None
    troubled = troubled_in_context(picture.context)
    effects, lost = effects_on(group or Group(name, "", 0), troubled)
    since = [since_ms for each in _partitions(picture, group) if (since_ms := _since_ms(picture, each)) is not None]
    return explanation_of(
        picture,
        f"group {name}",
        _headline(group, effects, lost),
        is_well=not effects,
        since=picture.since(min(since)) if effects and since else None,
        statements=_statements(picture, name, group),
        causes=(),
        findings=(),
    )


def _headline(group: Group | None, effects: tuple[Effect, ...], lost: tuple[str, ...]) -> str:
    said = [f"cannot read {joined(lost)}" if each is Effect.CANNOT_READ else each.value for each in effects]
    if said:
        return ", and ".join(said)
    if group is None:
        return "its coordinator can be reached"
    return "reads all its partitions, and can commit" if group.is_running else "nobody reads in its name"


def _partitions(picture: Picture, group: Group | None) -> Iterator[TopicPartition]:
    """Yield the coordinator's partition, and those that the group reads."""
    if group is not None:
        coordinator = coordinator_of(CONSUMER_OFFSETS, group.group, sizes_in(picture.context))
        yield from [TopicPartition(*coordinator)] if coordinator else []
        yield from (TopicPartition(topic, each) for topic, numbers in group.reads.items() for each in numbers)


def _since_ms(picture: Picture, tp: TopicPartition) -> int | None:
    partition = picture.partition(tp)
    return None if partition is None or partition.problem is None else partition.problem_since_ms


def _statements(picture: Picture, name: str, group: Group | None) -> Iterator[Statement]:
    team = picture.clients.teams.team_of(name)
    if team is not None:
        yield Statement("team", str(team))
    yield Statement("coordinator", _coordinator(picture, name))
    if group is None:
        yield Statement("members", _NOT_ASKED)
        return
    members = "with members" if group.has_members else "without members"
    yield Statement("state", f"{group.state}, {members}, {as_of(picture, group.seen_ms)}")
    if group.subscribes:
        yield Statement("subscribes", joined(group.subscribes))
    reads = [f"{counted(len(numbers), 'partition')} of {topic}" for topic, numbers in group.reads.items()]
    if reads:
        yield Statement("reads", joined(reads))
    lost = [each for each in _partitions(picture, group) if _since_ms(picture, each) is not None]
    for tp in lost[:10]:
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
