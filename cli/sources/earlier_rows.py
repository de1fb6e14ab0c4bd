"""A cluster at an earlier time: its metadata by all rows of the output `metadata`, or a moment among kept rows."""

from __future__ import annotations

import threading
from dataclasses import dataclass, field

from cli.followed_outputs import Where, chunks_until_now
from cli.running import StoppedError
from cli.sources.source import moment_named
from controller.contract.metadata_rows import BeginningRow, ControllerRow, MetadataRow, PartitionRow
from controller.contract.newest_rows import NewestRows
from controller.contract.outputs import BadRowError, NewerRowError, decode_row
from controller.contract.row import Row
from ingest.files.data_directory import Until
from questions.diff.side import Side, of_rows
from questions.memory import Memory
from questions.question import NotFoundError
from transport.address import Address
from wording.times import exact_moment


@dataclass(slots=True)
class EarlierRows:
    """The rows of one cluster that were true at the moment `until`."""

    cluster: str
    until: Until
    is_readable: bool = True  # False if a newer Kontrast wrote rows
    _standing: NewestRows[str, MetadataRow] = field(default_factory=NewestRows)
    _newest: Row | None = None  # the newest row up to the moment
    _read: Row | None = None  # the newest row that was read, even after the moment
    _known_from: Row | None = None  # rows before this one are missing

    def take(self, row: Row) -> None:
        """Take the next row of the output."""
        self._read = row
        self._known_from = self._known_from or row
        if isinstance(row, MetadataRow) and not self.until.is_passed(row.zxid, row.time_ms):
            is_news = self._standing.apply(row.subject_key(), row, removes=row.ends_subject)
            self._newest = row if is_news else self._newest

    def lacks_rows(self) -> None:
        """Note that some rows before the one that was read last are missing."""
        self._known_from = self._read

    def side(self, address: Address) -> Side:
        """Return the cluster as one side of a comparison. Raise NotFoundError if its state at the moment is unknown."""
        if not self.is_readable:
            raise NotFoundError(f"a newer Kontrast wrote the rows of cluster {self.cluster}. Upgrade this one")
        first = self._known_from
        if first is not None and self.until.is_passed(first.zxid, first.time_ms):
            begins = moment_named(first.zxid, first.time_ms)
            raise NotFoundError(f"what {address} keeps of cluster {self.cluster} begins after that moment, at {begins}")
        standing = tuple(self._standing.rows.values())
        if self._newest is None or not any(isinstance(row, ControllerRow) for row in standing):
            raise NotFoundError(f"{address} has no complete read of cluster {self.cluster} before that moment")
        return Side(moment_named(self._newest.zxid, self._newest.time_ms), dict(of_rows(standing)))


def moment_in(memory: Memory, cluster: str, until: Until | None, address: Address) -> int | None:
    """Return the moment of `until` in kept rows, None for the present. Raise NotFoundError if it is not kept."""
    if until is None:
        return None
    if until.time_ms is None:
        raise NotFoundError(f"{address} holds outputs, which are kept by time. Give a time in place of a zxid")
    span = memory.kept(cluster)
    if span is not None and until.time_ms >= span.newest_ms:
        return None
    if span is None or until.time_ms < span.since_ms:
        begins = "" if span is None else f", at {exact_moment(span.since_ms)}"
        raise NotFoundError(f"what {address} keeps of cluster {cluster} begins after that moment{begins}")
    then = memory.cluster(cluster, until.time_ms)
    if then is None or not then.ready:
        raise NotFoundError(f"{address} has no complete read of cluster {cluster} before that moment")
    return until.time_ms


def earlier_rows(where: Where, until: Until, stop: threading.Event) -> dict[str, EarlierRows]:
    """Return the rows of each cluster at the moment. Raise StoppedError or ServeError."""
    found: dict[str, EarlierRows] = {}
    for chunk in chunks_until_now(where, PartitionRow.output, stop):
        if chunk.begins_anew:
            found.clear()
        for line in chunk.lines:
            _take_line(found, line, until)
        if chunk.thinned or chunk.after_gap:
            for rows in found.values():
                rows.lacks_rows()
    if stop.is_set():
        raise StoppedError
    return found


def _take_line(found: dict[str, EarlierRows], line: bytes, until: Until) -> None:
    try:
        row = decode_row(line)
    except NewerRowError as error:
        if error.cluster is not None:
            found.setdefault(error.cluster, EarlierRows(error.cluster, until)).is_readable = False
        return
    except BadRowError:
        return
    if isinstance(row, BeginningRow):  # it makes all earlier rows void
        found.pop(row.cluster, None)
    elif isinstance(row, Row):
        found.setdefault(row.cluster, EarlierRows(row.cluster, until)).take(row)
