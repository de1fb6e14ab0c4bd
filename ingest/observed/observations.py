"""Vocabulary of the ingest, with events and values from ZooKeeper, and the order of the observations made from these.

A published observation becomes a `controller.contract.records.Record` with its cluster and its place in the order. A
window of watch events, and the values read after them, are ordered as the controller sees them, without IO.

Three rules apply. A creation or deletion is an observation even without a value. Changes of one transaction stay
together. Causes come before effects. A value takes the place of its znode's first change in the window, because a
topic's znode may have been written again after the state that it caused. A partition's state takes the place of its
last change.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum
from typing import NamedTuple

import msgspec

from controller.contract.ids import UNKNOWN_ZXID, Zxid
from controller.contract.records import LATEST_MS, RecordKind
from ingest.observed.paths import TOPICS, Rank, is_partition_state, rank


class ZnodeEventKind(Enum):
    """The kinds of events, in ZooKeeper's numbers."""

    CREATED = 1
    DELETED = 2
    CHANGED = 3
    CHILDREN = 4  # a child was created or deleted, reported by one-shot watches only


@dataclass(frozen=True, slots=True)
class ZnodeEvent:
    """Event of a watch. Servers before 3.9 do not send the zxid of the change."""

    kind: ZnodeEventKind
    path: str
    zxid: Zxid = UNKNOWN_ZXID
    received_at: float = field(default=0.0, compare=False)  # by the monotonic clock, in seconds


class Value(msgspec.Struct, frozen=True, gc=False):
    """A znode as it was read."""

    data: bytes | None
    czxid: Zxid
    mzxid: Zxid
    version: int
    ephemeral_owner: int
    mtime_ms: int = 0  # time of the last write by ZooKeeper's clock, 0 if not requested
    ctime_ms: int = 0  # time of the creation by ZooKeeper's clock

    @property
    def registered_ms(self) -> int:
        """Return the creation time of an ephemeral znode as records have it, 0 for other znodes."""
        return min(max(0, self.ctime_ms), LATEST_MS) if self.ephemeral_owner else 0


Values = Mapping[str, Value | None]
"""Values by path. None means that a read found no znode. A missing path was not read, or may not be read."""


class Known(NamedTuple):
    """The last published state of a znode. mzxid and version are -1 if only its existence was published."""

    czxid: Zxid
    mzxid: Zxid
    version: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Observation:
    """A record that has no place in the order yet."""

    kind: RecordKind
    path: str
    value: Value | None = None
    zxid: Zxid = UNKNOWN_ZXID
    resync: bool = False


_Indexed = tuple[int, ZnodeEvent]


def observe_window(events: Sequence[ZnodeEvent], values: Values, known: Mapping[str, Known]) -> list[Observation]:
    """Return the observations that events and values add to the known znodes, in order.

    The values must have been read after the events. Before 3.9 servers send no zxids, and rank alone orders the window.
    This keeps the `/controller` and the broker of a closing session together, in that order.
    """
    known = _without_early(events, values, known)
    by_path: dict[str, list[_Indexed]] = {}
    for index, event in enumerate(events):
        if not _is_old(event, values.get(event.path), known.get(event.path)):
            by_path.setdefault(event.path, []).append((index, event))
    found = [
        (index, observation)
        for path, path_events in by_path.items()
        for index, observation in _observe_path(path_events, values.get(path), known.get(path), was_read=path in values)
    ]
    at_once = _at_once(events)

    def order(item: tuple[int, Observation]) -> tuple[int, int, int]:
        index, observation = item
        return (at_once[index], rank(observation.path), index)

    return [observation for _, observation in sorted(found, key=order)]


def _without_early(events: Sequence[ZnodeEvent], values: Values, known: Mapping[str, Known]) -> Mapping[str, Known]:
    """Return the known znodes without states of a topic whose creation is still to be published.

    A complete read showed the former topic of that name before its removal, and then the states of the new one. The
    removal takes these states away again, so they are published once more.
    """
    again = {
        path: value.czxid
        for path, value in values.items()
        if value is not None and path.startswith(f"{TOPICS}/") and path in known and known[path].czxid < value.czxid
    }
    paths = {event.path for event in events if event.path in known} if again else set[str]()
    early = {path for path in paths if known[path].czxid > again.get(path.split("/partitions/")[0], known[path].czxid)}
    return {path: each for path, each in known.items() if path not in early} if early else known


def _at_once(events: Sequence[ZnodeEvent]) -> list[int]:
    """Return for each event the number of its change.

    Events come in the order of the changes, and events of one change follow each other. If the server sends no zxids,
    only a closing session's `/controller` and broker are joined.
    """
    numbers: list[int] = []
    for index, event in enumerate(events):
        before = events[index - 1] if index else None
        joined = before is not None and (
            event.zxid == before.zxid if event.zxid > 0 else _may_be_closing(before) and _may_be_closing(event)
        )
        numbers.append(numbers[-1] if joined else index)
    return numbers


def _may_be_closing(event: ZnodeEvent) -> bool:
    return event.kind is ZnodeEventKind.DELETED and rank(event.path) <= Rank.BROKER


def _observe_path(
    events: Sequence[_Indexed], value: Value | None, known: Known | None, *, was_read: bool
) -> Iterator[tuple[int, Observation]]:
    """Observe the lives of one znode in the window. Only the last life can have a value.

    A one-shot watch reports one change. The read shows whether another change followed.
    """
    exists = known is not None
    created: _Indexed | None = None
    changes: list[_Indexed] = []
    for index, event in events:
        if event.kind is ZnodeEventKind.DELETED:
            if created:
                yield _existence(RecordKind.CREATED, created)
            if exists:  # otherwise the znode was never published
                yield _existence(RecordKind.DELETED, (index, event))
            exists, created, changes = False, None, [(index, event)] if event.zxid == UNKNOWN_ZXID else []
        else:
            if event.kind is ZnodeEventKind.CREATED and not exists:
                exists, created = True, (index, event)
            changes.append((index, event))
    if value is None and created:
        yield _existence(RecordKind.CREATED, created)
    if value is None and was_read and exists and events[-1][1].zxid == UNKNOWN_ZXID:
        yield _existence(RecordKind.DELETED, events[-1])
    elif value is not None and changes and known != (value.czxid, value.mzxid, value.version):
        yield _value(changes, value)


def _is_old(event: ZnodeEvent, value: Value | None, known: Known | None) -> bool:
    """Return whether a complete read after the event has already shown its change."""
    if known is None:
        return False
    if event.zxid > 0:
        return event.zxid <= (known.mzxid if event.kind is ZnodeEventKind.CHANGED else known.czxid)
    return event.kind is ZnodeEventKind.DELETED and value is not None and value.czxid == known.czxid


def _existence(kind: RecordKind, indexed: _Indexed) -> tuple[int, Observation]:
    index, event = indexed
    return index, Observation(kind=kind, path=event.path, zxid=event.zxid)


def _value(changes: Sequence[_Indexed], value: Value) -> tuple[int, Observation]:
    index, event = changes[-1 if is_partition_state(changes[0][1].path) else 0]
    zxid = value.mzxid if event.zxid == UNKNOWN_ZXID else event.zxid
    return index, Observation(kind=RecordKind.NODE, path=event.path, value=value, zxid=zxid)
