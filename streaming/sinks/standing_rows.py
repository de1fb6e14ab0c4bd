"""Select the rows that compaction keeps, the newest of each subject since its beginning."""

from __future__ import annotations

from collections.abc import Sequence

from controller.contract.job_row import JobRow
from controller.contract.metadata_rows import BeginningRow
from controller.contract.outputs import BadRowError, decode_row

_Place = tuple[int, int, int]


class StandingRows:
    """The current ones of the added rows, in order. A cluster's beginning stays before its rows.

    Rows can repeat or arrive late, and their place gives the order. Unreadable rows stay, because a newer Kontrast may
    have written them.
    """

    def __init__(self) -> None:
        self._clusters: dict[str, dict[str, tuple[_Place, bytes | None]]] = {}

    def add(self, line: bytes) -> None:
        """Take the next row in."""
        try:
            row = decode_row(line)
        except BadRowError:
            self._clusters.setdefault("", {})[line.decode("utf-8", "replace")] = ((0, 0, 0), line)
            return
        if isinstance(row, JobRow):
            self._clusters.setdefault("", {})[row.subject_key()] = ((0, 0, 0), line)
            return
        place = (row.generation, row.seq, row.ordinal)
        if isinstance(row, BeginningRow):
            self._clusters[row.cluster] = {}
        known = self._clusters.setdefault(row.cluster, {})
        key = row.subject_key()
        if key not in known or known[key][0] < place:
            known.pop(key, None)  # the newest stands last
            known[key] = (place, None if row.ends_subject else line)

    def lines(self) -> Sequence[bytes]:
        """Return the rows that hold."""
        return [line for known in self._clusters.values() for _, line in known.values() if line is not None]
