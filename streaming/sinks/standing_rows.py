"""Select the rows that compaction keeps, the newest of each subject since its beginning."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from controller.contract.job_row import JobRow
from controller.contract.metadata_rows import BeginningRow
from controller.contract.newest_rows import NewestRows
from controller.contract.outputs import BadRowError, decode_row


class _Line(NamedTuple):
    generation: int
    seq: int
    ordinal: int
    line: bytes


class StandingRows:
    """The rows that still hold among the added rows, in order. A cluster's beginning stays before its rows.

    Unreadable rows stay, because a newer Kontrast may have written them.
    """

    def __init__(self) -> None:
        self._added = 0
        self._clusters: dict[str, NewestRows[str, _Line]] = {}

    def add(self, line: bytes) -> None:
        """Take the next row into account."""
        self._added += 1
        try:
            row = decode_row(line)
        except BadRowError:
            self._keep("", line.decode("utf-8", "replace"), _Line(0, self._added, 0, line))
            return
        if isinstance(row, JobRow):
            self._keep("", row.subject_key(), _Line(0, self._added, 0, line))
            return
        if isinstance(row, BeginningRow):
            self._clusters[row.cluster] = NewestRows()
        placed = _Line(row.generation, row.seq, row.ordinal, line)
        self._keep(row.cluster, row.subject_key(), placed, ends=row.ends_subject)

    def _keep(self, cluster: str, key: str, placed: _Line, *, ends: bool = False) -> None:
        self._clusters.setdefault(cluster, NewestRows()).apply(key, placed, removes=ends)

    def lines(self) -> Sequence[bytes]:
        """Return the rows that hold."""
        return [placed.line for known in self._clusters.values() for placed in sorted(known.rows.values())]
