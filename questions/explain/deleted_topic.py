"""A topic whose deletion stopped half-way: the remaining znodes, and the commands that remove them.

The controller deletes `/brokers/topics/T`, then `/config/topics/T`, and `/admin/delete_topics/T` last
(TopicDeletionManager.completeDeleteTopic). The remaining znodes show its progress.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final, NamedTuple

from questions.explain.causes import last_writes
from questions.explain.explanation import Certainty, Explanation, Statement, findings_about
from questions.picture import Picture


class _Leftover(NamedTuple):
    """A znode that a deletion removes, with its parent and the effect of a leftover."""

    about: str
    parent: str
    effect: str


# In the order that is safe for a person. Kafka would delete a topic that is created while its entry exists.
_LEFTOVERS: Final = (
    _Leftover("entry", "/admin/delete_topics", "the next controller deletes a new topic with this name"),
    _Leftover("settings", "/config/topics", "a new topic with this name begins with these settings"),
)


def has_leftovers(picture: Picture, name: str) -> bool:
    """Return whether a topic is gone and some of its znodes remain. Return False if the picture has no znodes."""
    return picture.topic(name) is None and any(_left(picture, name))


def explain_deleted_topic(picture: Picture, name: str) -> Explanation:
    """Explain how far the deletion came, and how to finish it."""
    left = list(_left(picture, name))
    is_asked = left[0] is _LEFTOVERS[0]
    return Explanation(
        subject=f"topic {name}",
        headline="its deletion stopped half-way" if is_asked else "it does not exist, but its settings are left over",
        is_well=False,
        since=None,
        statements=tuple(_statements(name, left)),
        causes=last_writes(picture, [(f"{each.parent}/{name}", f"its {each.about}") for each in left]),
        findings=findings_about(picture, names=(name,)),
        as_of_ms=picture.as_of_ms,
    )


def _left(picture: Picture, name: str) -> Iterator[_Leftover]:
    records = picture.records or {}
    return (each for each in _LEFTOVERS if f"{each.parent}/{name}" in records)


def _statements(name: str, left: list[_Leftover]) -> Iterator[Statement]:
    yield Statement("topic", f"/brokers/topics/{name} does not exist, because the controller deletes it first")
    for each in left:
        yield Statement(each.about, f"{each.parent}/{name} is left over, and {each.effect}")
    for place, each in enumerate(left):
        about = "do, in this order" if place == 0 else ""
        yield Statement(about, f"zookeeper-shell.sh ZOOKEEPER delete {each.parent}/{name}", Certainty.EXPECTED)
