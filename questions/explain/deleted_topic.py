"""A topic whose deletion stopped half-way: the remaining znodes, and the commands that remove them.

The controller deletes `/brokers/topics/T`, its children first, then `/config/topics/T`, and last
`/admin/delete_topics/T` (TopicDeletionManager.completeDeleteTopic). The remaining znodes show its progress.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final, NamedTuple

from questions.explain.causes import last_writes
from questions.explain.explanation import Certainty, Explanation, Statement, findings_about
from questions.picture import Picture


class _Leftover(NamedTuple):
    """A znode that a deletion removes, with its parent, the end of its sentence, and the command of its removal."""

    about: str
    parent: str
    effect: str
    command: str = "delete"


TOPICS: Final = "/brokers/topics"

# In the order that is safe for a person. Kafka would delete a topic that is created while its entry exists.
_LEFTOVERS: Final = (
    _Leftover("entry", "/admin/delete_topics", ", and the next controller deletes a new topic with this name"),
    _Leftover("partitions", TOPICS, " without an assignment, and no topic with this name can be created", "deleteall"),
    _Leftover("settings", "/config/topics", ", and a new topic with this name begins with these settings"),
)

_SETTINGS: Final = _LEFTOVERS[-1]
_ONLY_SETTINGS: Final = "it does not exist, but its settings are left over"


def has_leftovers(picture: Picture, name: str) -> bool:
    """Return whether a topic is gone and some of its znodes remain. Return False if the picture has no znodes."""
    return picture.topic(name) is None and any(_left(picture, name))


def explain_deleted_topic(picture: Picture, name: str) -> Explanation:
    """Explain how far the deletion came, and how to finish it."""
    left = list(_left(picture, name))
    return Explanation(
        subject=f"topic {name}",
        headline="its deletion stopped half-way" if left != [_SETTINGS] else _ONLY_SETTINGS,
        is_well=False,
        since=None,
        statements=tuple(_statements(name, left)),
        causes=last_writes(picture, [(f"{each.parent}/{name}", f"its {each.about}") for each in left]),
        findings=findings_about(picture, names=(name,)),
        as_of_ms=picture.as_of_ms,
    )


def _left(picture: Picture, name: str) -> Iterator[_Leftover]:
    records = picture.records or {}
    for each in _LEFTOVERS:
        record = records.get(f"{each.parent}/{name}")
        # A topic's znode with content that cannot be read is no leftover.
        if record is not None and not (each.parent == TOPICS and record.content):
            yield each


def _statements(name: str, left: list[_Leftover]) -> Iterator[Statement]:
    if all(each.parent != TOPICS for each in left):
        yield Statement("topic", f"{TOPICS}/{name} does not exist, because the controller deletes it first")
    for each in left:
        yield Statement(each.about, f"{each.parent}/{name} is left over{each.effect}")
    for place, each in enumerate(left):
        about = "do, in this order" if place == 0 else ""
        yield Statement(about, f"zookeeper-shell.sh ZOOKEEPER {each.command} {each.parent}/{name}", Certainty.EXPECTED)
