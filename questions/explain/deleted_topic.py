"""A topic whose deletion stopped half-way: the remaining znodes, and the commands that remove them.

The controller deletes `/brokers/topics/T`, its children first, then `/config/topics/T`, and last
`/admin/delete_topics/T` (TopicDeletionManager.completeDeleteTopic). The remaining znodes show its progress.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final, NamedTuple

from controller.contract.remedies.remedy import Remedy
from controller.contract.remedies.topics import DELETE_DELETION_ENTRY, DELETE_PARTITION_ZNODES, DELETE_SETTINGS
from questions.explain.causes import last_writes
from questions.explain.explanation import Certainty, Explanation, Statement, explanation_of, findings_about
from questions.explain.unloadable_topic import has_leaders, is_deletion_requested, is_unloadable
from questions.picture import Picture


class _Leftover(NamedTuple):
    """A znode that a deletion removes, with its parent, the end of its sentence, and the remedy that removes it."""

    about: str
    parent: str
    effect: str
    remedy: Remedy


TOPICS: Final = "/brokers/topics"
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
    of that name.
    """
    if f"{TOPICS}/{name}" in (picture.records or {}):
        deleted = is_deletion_requested(picture, name) and not has_leaders(picture, name)
        if not deleted or not _lacks_assignment(picture, name):
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
        ends = each.parent == TOPICS and is_unloadable(picture, name)
        effect = f"{each.effect}, which ends every controller" if ends else each.effect
        yield Statement(each.about, f"{each.parent}/{name} is left over{effect}")
    about = "do, in this order"
    for each in left:
        remedy = each.remedy.met.filled(TOPIC=name)
        if remedy.loses:
            yield Statement(about, f"the next command loses {remedy.loses}", Certainty.EXPECTED)
            about = ""
        for command in remedy.way(picture.header.profile.release).commands:
            yield Statement(about, command, Certainty.EXPECTED)
            about = ""
