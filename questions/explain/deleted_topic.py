"""Topics that no controller has: one whose deletion stopped half-way, and one whose znode ends every controller.

The first names the remaining znodes and the commands that remove them. The controller deletes `/brokers/topics/T`, its
children first, then `/config/topics/T`, and last `/admin/delete_topics/T` (TopicDeletionManager.completeDeleteTopic).
The remaining znodes show its progress. The second has what ZooKeeper still has, and the content to write back.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Final, NamedTuple

from controller.contract.ids import NO_LEADER, PartitionId
from controller.contract.znode_table import locate
from controller.contract.znodes import Brokers, StateZnode, ZnodeError, decode
from controller.says.remedies.remedy import Remedy
from controller.says.remedies.topics import (
    DELETE_DELETION_ENTRY,
    DELETE_PARTITION_ZNODES,
    DELETE_SETTINGS,
    WRITE_TOPIC_BACK,
)
from controller.view.flawed_znodes import flawed_znodes
from questions.explain.causes import last_writes
from questions.explain.explanation import Certainty, Explanation, Statement, explanation_of, findings_about
from questions.picture import Picture
from wording.facts import replicas_in_words

TOPICS: Final = "/brokers/topics"
_MAY_HAVE_IDS: Final = (2, 7)
_UNKNOWN_ID: Final = "ID"  # placeholder for the id, which brokers have in partition.metadata


def is_unloadable(picture: Picture, name: str) -> bool:
    """Return whether the topic's znode is there and cannot be read as a topic."""
    return name in picture.header.damaged.unloadable or (_fault(picture, name) != "" and picture.topic(name) is None)


def _fault(picture: Picture, name: str) -> str:
    path = f"{TOPICS}/{name}"
    return next((each.sentence for each in flawed_znodes(picture.header) if each.path == path), "")


def is_deletion_requested(picture: Picture, name: str) -> bool:
    """Return whether /admin/delete_topics has an entry of the topic."""
    return f"{_ENTRIES}/{name}" in (picture.records or {})


def explain_unloadable_topic(picture: Picture, name: str) -> Explanation:
    """Explain the loss of the znode's content, with the content to write back."""
    path = f"{TOPICS}/{name}"
    return explanation_of(
        picture,
        f"topic {name}",
        _fault(picture, name) or f"{path} is empty or no JSON object, so every controller fails that loads it",
        statements=_statements_of_unloadable(picture, name),
        causes=last_writes(picture, [(path, "its content")]),
        findings=findings_about(picture, names=(name,)),
    )


def _statements_of_unloadable(picture: Picture, name: str) -> Iterator[Statement]:
    if is_deletion_requested(picture, name):
        yield Statement("deletion", "requested, and continues once a controller can load the topic", Certainty.EXPECTED)
    else:
        yield Statement("deletion", f"nobody asked for it, because {_ENTRIES}/{name} does not exist")
    states = dict(sorted(_states(picture, name)))
    for number, state in states.items():
        leader = "none" if state.leader == NO_LEADER else f"broker {state.leader}"
        yield Statement(f"partition {number}", f"leader {leader}, {replicas_in_words(state.isr)}")
    topic = picture.topic(name)
    if topic is not None:
        assignment = {number: partition.replicas for number, partition in sorted(topic.partitions.items())}
        topic_id = topic.topic_id or _UNKNOWN_ID
    else:
        assignment = {
            number: tuple(sorted(state.isr, key=lambda broker: broker != state.leader))
            for number, state in states.items()
        }
        topic_id = _UNKNOWN_ID
    if not assignment:
        yield Statement("do", "look for its log directories on the brokers, which have its partitions and its id")
        return
    content = topic_content(picture, assignment, topic_id)
    way = WRITE_TOPIC_BACK.met.filled(TOPIC=name, CONTENT=content).way(picture.header.profile.release)
    yield Statement("do", way.says)
    for command in way.commands:
        yield Statement("", command)
    if topic is None:
        yield Statement("", "add replicas that are not in sync, as brokers' log directories show")


def _states(picture: Picture, name: str) -> Iterator[tuple[PartitionId, StateZnode]]:
    below = f"{TOPICS}/{name}/partitions/"
    for path, record in (picture.records or {}).items():
        if path.startswith(below) and path.endswith("/state"):
            try:
                yield locate(path).partition, decode(record.content, StateZnode)
            except ZnodeError:
                continue


def topic_content(picture: Picture, assignment: dict[PartitionId, Brokers], topic_id: str) -> str:
    """Return the content of a topic's znode as the cluster's release writes it (`TopicZNode.encode`).

    From 2.7 on the content has an id, because Kontrast cannot tell 2.8 from 2.7 if it can read no topic, and the
    controller would replace a missing id by another one.
    """
    profile = picture.header.profile
    content: dict[str, object] = {"version": 1, "partitions": {str(at): each for at, each in assignment.items()}}
    if profile.reassigns_in_topic_znode:
        content |= {"version": 2, "adding_replicas": {}, "removing_replicas": {}}
    if profile.release >= _MAY_HAVE_IDS:
        content |= {"version": 3, "topic_id": topic_id}
    return json.dumps(content, separators=(",", ":"))


class _Leftover(NamedTuple):
    """A znode that a deletion removes, with its parent, the end of its sentence, and the remedy that removes it."""

    about: str
    parent: str
    effect: str
    remedy: Remedy


_ENTRIES: Final = "/admin/delete_topics"

# In the order that is safe for a person, the entry first, because Kafka would also apply it to a new topic.
_LEFTOVERS: Final = (
    _Leftover("entry", _ENTRIES, ", and the next controller deletes a new topic with this name", DELETE_DELETION_ENTRY),
    _Leftover("partitions", TOPICS, " without an assignment", DELETE_PARTITION_ZNODES),
    _Leftover(
        "settings", "/config/topics", ", and a new topic with this name begins with these settings", DELETE_SETTINGS
    ),
)

_SETTINGS: Final = _LEFTOVERS[-1]
_ONLY_SETTINGS: Final = "it does not exist, but its settings are left over"


def has_leftovers(picture: Picture, name: str) -> bool:
    """Return whether a topic is gone and some of its znodes remain. Return False if the picture has no znodes.

    A topic's znode without content is left over only if an entry shows that a deletion was requested, and no state
    names a leader, so the deletion reached the replicas. Otherwise brokers still have replicas, and refuse a new topic
    of that name. A topic that an ACL hides is not gone.
    """
    if any(f"{path}/".startswith(f"{TOPICS}/{name}/") for path in picture.forbidden):
        return False
    if f"{TOPICS}/{name}" in (picture.records or {}):
        is_led = any(state.leader >= 0 for _, state in _states(picture, name))
        if is_led or not is_deletion_requested(picture, name) or not _lacks_assignment(picture, name):
            return False
    return picture.topic(name) is None and any(_left(picture, name))


def explain_deleted_topic(picture: Picture, name: str) -> Explanation:
    """Explain how far the deletion came, and how to finish it."""
    left = list(_left(picture, name))
    return explanation_of(
        picture,
        f"topic {name}",
        "its deletion stopped half-way" if left != [_SETTINGS] else _ONLY_SETTINGS,
        statements=_statements(picture, name, left),
        causes=last_writes(picture, [(f"{each.parent}/{name}", f"its {each.about}") for each in left]),
        findings=findings_about(picture, names=(name,)),
    )


def _left(picture: Picture, name: str) -> Iterator[_Leftover]:
    records = picture.records or {}
    for each in _LEFTOVERS:
        record = records.get(f"{each.parent}/{name}")
        if record is not None and (each.parent != TOPICS or _lacks_assignment(picture, name)):
            yield each


def _lacks_assignment(picture: Picture, name: str) -> bool:
    """Return whether a topic's znode is there without content. Old releases take it for a topic without partitions."""
    record = (picture.records or {}).get(f"{TOPICS}/{name}")
    return is_unloadable(picture, name) or (record is not None and not record.content)


def _statements(picture: Picture, name: str, left: list[_Leftover]) -> Iterator[Statement]:
    if all(each.parent != TOPICS for each in left):
        yield Statement("topic", f"{TOPICS}/{name} does not exist, because the controller deletes it first")
    for each in left:
        ends = each.parent == TOPICS and name in picture.header.damaged.unloadable
        effect = f"{each.effect}, which ends every controller" if ends else each.effect
        yield Statement(each.about, f"{each.parent}/{name} is left over{effect}")
    about = "do, in this order"
    for each in left:
        remedy = each.remedy.met.filled(TOPIC=name)
        if remedy.loses:
            yield Statement(about, f"the next command loses {remedy.loses}")
            about = ""
        for command in remedy.way(picture.header.profile.release).commands:
            yield Statement(about, command)
            about = ""
