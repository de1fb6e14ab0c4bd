"""Topics whose znode lost its content or its id, and topics with another id than their replicas have on disk."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypeVar

import msgspec

_Value = TypeVar("_Value")


class ChangedId(msgspec.Struct, frozen=True, array_like=True):
    """A topic's former id, which its replicas have on disk, and the id in its znode."""

    former: str
    present: str
    since_ms: int


class DamagedTopics(msgspec.Struct, array_like=True):
    """Damage to topics' znodes that the next controller cannot load, or that makes brokers refuse a topic."""

    unloadable: dict[str, int] = {}  # since when, topics whose znode ends every controller that loads it
    lost_ids: dict[str, str] = {}  # the former ids of topics whose znode has no id any more
    changed_ids: dict[str, ChangedId] = {}

    def note_unloadable(self, topic: str, time_ms: int) -> None:
        """Note a topic's znode that ends every controller."""
        self.unloadable = {**self.unloadable, topic: self.unloadable.get(topic, time_ms)}

    def load(self, topic: str) -> None:
        """Note that a topic's znode can be loaded."""
        self.unloadable = _without(self.unloadable, topic)

    def note_id(self, topic: str, before: str | None, now: str | None, time_ms: int) -> None:
        """Note a lost or changed topic id. After an earlier loss or change, the original id replaces `before`."""
        changed = self.changed_ids.get(topic)
        former = changed.former if changed is not None else self.lost_ids.get(topic, before)
        if former is None or former == now:
            self.lost_ids = _without(self.lost_ids, topic)
            self.changed_ids = _without(self.changed_ids, topic)
        elif now is None:
            self.lost_ids = {**self.lost_ids, topic: former}
        elif changed is None or changed.present != now:
            self.lost_ids = _without(self.lost_ids, topic)
            self.changed_ids = {**self.changed_ids, topic: ChangedId(former, now, time_ms)}

    def forget(self, topic: str) -> None:
        """Forget the damage to a topic that is gone."""
        self.load(topic)
        self.lost_ids = _without(self.lost_ids, topic)
        self.changed_ids = _without(self.changed_ids, topic)

    def keep_ids(self, topics: frozenset[str]) -> None:
        """Forget the ids of topics that are not among these."""
        self.lost_ids = {name: lost for name, lost in self.lost_ids.items() if name in topics}
        self.changed_ids = {name: changed for name, changed in self.changed_ids.items() if name in topics}

    def begin_read(self) -> None:
        """Forget unloadable znodes, because a complete read names those that are left."""
        self.unloadable = {}


def _without(values: Mapping[str, _Value], topic: str) -> dict[str, _Value]:
    return {name: value for name, value in values.items() if name != topic}
