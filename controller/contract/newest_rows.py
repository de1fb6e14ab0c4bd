"""The rule by which a reader of an output keeps the newest row of each subject."""

from __future__ import annotations

from collections.abc import Hashable, MutableMapping
from typing import Final, Generic, Protocol, TypeVar

REMEMBERED_REMOVALS: Final = 100_000  # as a guard against repeated rows

_Key = TypeVar("_Key", bound=Hashable)


class Placed(Protocol):
    """A row, or the part of a row that a reader keeps, with its place among the rows of its cluster."""

    @property
    def generation(self) -> int:
        """Return the generation of the record that caused the row."""

    @property
    def seq(self) -> int:
        """Return the number of that record in its generation."""

    @property
    def ordinal(self) -> int:
        """Return the row's number among the rows of that record."""


_Row = TypeVar("_Row", bound=Placed)


class NewestRows(Generic[_Key, _Row]):
    """The newest row of each subject. Rows can repeat or arrive late, so their places decide."""

    def __init__(self, rows: MutableMapping[_Key, _Row] | None = None) -> None:
        self.rows: MutableMapping[_Key, _Row] = {} if rows is None else rows
        self._removed: dict[_Key, tuple[int, int, int]] = {}

    def apply(self, key: _Key, row: _Row, *, removes: bool = False) -> bool:
        """Apply a row. Return False if this row or a newer row of its subject is known."""
        known, place = self.rows.get(key), (row.generation, row.seq, row.ordinal)
        newest = self._removed.get(key) if known is None else (known.generation, known.seq, known.ordinal)
        if newest is not None and place <= newest:
            return False
        self._removed.pop(key, None)
        if removes:
            self.rows.pop(key, None)
            self._removed[key] = place
            if len(self._removed) > REMEMBERED_REMOVALS:
                del self._removed[next(iter(self._removed))]
        else:
            self.rows[key] = row
        return True

    def clear(self) -> None:
        """Forget every row, because all of them are void."""
        self.rows.clear()
        self._removed.clear()
