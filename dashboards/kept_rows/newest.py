"""The newest row of each subject of one kind, and rows that are kept in an order."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from operator import itemgetter
from typing import Generic, TypeVar

from controller.contract.row import Row

# Parts of a cluster's partitions, by topic. After a change, only its part is rendered again.
PARTITION_SEGMENTS = 64

_REMEMBERED_REMOVALS = 100_000  # of one kind in one cluster, as a guard against repeated rows

_Key = TypeVar("_Key", bound=Hashable)
_Row = TypeVar("_Row", bound=Row)
_Place = tuple[int, int, int]


def segment_of(topic: str) -> int:
    """Return the segment of this topic's partitions, the same as long as the process lives."""
    return hash(topic) % PARTITION_SEGMENTS


def _place(row: Row) -> _Place:
    return (row.generation, row.seq, row.ordinal)


class Newest(Generic[_Key, _Row]):
    """The newest row of each subject of one kind. Rows can repeat or arrive late."""

    def __init__(self) -> None:
        self.rows: dict[_Key, _Row] = {}
        self._removed: dict[_Key, _Place] = {}

    def apply(self, key: _Key, row: _Row, *, removes: bool = False) -> bool:
        """Apply a row. Return False if a newer one of its subject is known."""
        known = self.rows.get(key)
        newest = self._removed.get(key) if known is None else _place(known)
        if newest is not None and _place(row) <= newest:
            return False
        self._removed.pop(key, None)
        if removes:
            self.rows.pop(key, None)
            self._removed[key] = _place(row)
            if len(self._removed) > _REMEMBERED_REMOVALS:
                del self._removed[next(iter(self._removed))]
        else:
            self.rows[key] = row
        return True


class OldestFirst(Generic[_Key, _Row]):
    """Rows of one kind, sorted when they are asked for and kept sorted until one changes."""

    def __init__(self, order: Callable[[_Row], tuple[object, ...]]) -> None:
        self._order = order
        self._rows: dict[_Key, tuple[tuple[object, ...], _Row]] = {}
        self._in_order: tuple[_Row, ...] | None = ()

    def put(self, key: _Key, row: _Row) -> None:
        """Add a row, or replace the one of its key."""
        self._rows[key] = (self._order(row), row)  # a row's place is worked out once, not at each sorting
        self._in_order = None

    def drop(self, key: _Key) -> None:
        """Remove the row of the key, if there is one."""
        if self._rows.pop(key, None) is not None:
            self._in_order = None

    def in_order(self) -> tuple[_Row, ...]:
        """Return all rows in their order."""
        if self._in_order is None:
            self._in_order = tuple(row for _, row in sorted(self._rows.values(), key=itemgetter(0)))
        return self._in_order
