"""A cluster at an earlier time: its metadata by all rows of the output `metadata`, or a moment among kept rows."""

from __future__ import annotations

import threading
from collections.abc import Collection
from dataclasses import dataclass

from cli.followed_outputs import Where, chunks_until_now
from cli.running import StoppedError
from cli.sources.source import moment_named
from controller.contract.metadata_rows import BeginningRow, MetadataRow, PartitionRow
from controller.contract.outputs import BadRowError, NewerRowError, decode_row
from controller.contract.row import Row
from ingest.files.data_directory import Until
from questions.diff.side import Side, of_rows
from questions.memory import Memory
from questions.question import NotFoundError
from transport.address import Address
from wording.times import exact_moment


@dataclass(slots=True)
class _Span:
    """The rows of one cluster that were read."""

    known_from: Row  # rows before this one are missing
    read: Row  # the newest one
    newest: Row | None = None  # the last one that is not after the moment


class EarlierRows:
    """The output `metadata` as it was at the moment `until`."""

    def __init__(self, until: Until) -> None:
        self._until = until
        self._memory = Memory(past_rows=1)
        self._spans: dict[str, _Span] = {}
        self._newer: set[str] = set()  # clusters with rows of a newer Kontrast

    @property
    def clusters(self) -> Collection[str]:
        """Return the names of all clusters, even of those that are unknown at the moment."""
        return self._spans.keys() | self._newer

    def take(self, line: bytes) -> None:
        """Take the next line of the output."""
        try:
            row = decode_row(line)
        except NewerRowError as error:
            if error.cluster is not None:
                self._newer.add(error.cluster)
            return
        except BadRowError:
            return
        if isinstance(row, BeginningRow):  # it makes all earlier rows void
            self._memory.forget(row.output, row.cluster)
            self._spans.pop(row.cluster, None)
            self._newer.discard(row.cluster)
        elif isinstance(row, MetadataRow):
            span = self._spans.setdefault(row.cluster, _Span(row, row))
            span.read = row
            if not self._until.is_passed(row.zxid, row.time_ms) and self._memory.apply(row):
                span.newest = row

    def lacks_rows(self) -> None:
        """Note that some rows before the one that was read last are missing."""
        for span in self._spans.values():
            span.known_from = span.read

    def side(self, cluster: str, address: Address) -> Side:
        """Return the cluster as one side of a comparison. Raise NotFoundError if its state at the moment is unknown."""
        if cluster in self._newer:
            raise NotFoundError(f"a newer Kontrast wrote the rows of cluster {cluster}. Upgrade this one")
        span, found = self._spans[cluster], self._memory.cluster(cluster, topics=None)
        if self._until.is_passed(span.known_from.zxid, span.known_from.time_ms):
            begins = moment_named(span.known_from.zxid, span.known_from.time_ms)
            raise NotFoundError(f"what {address} keeps of cluster {cluster} begins after that moment, at {begins}")
        if span.newest is None or found is None or found.controller is None:
            raise NotFoundError(f"{address} has no complete read of cluster {cluster} before that moment")
        return Side(moment_named(span.newest.zxid, span.newest.time_ms), dict(of_rows(found.metadata)))


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


def earlier_rows(where: Where, until: Until, stop: threading.Event) -> EarlierRows:
    """Return the rows of each cluster at the moment. Raise StoppedError or ServeError."""
    rows = EarlierRows(until)
    for chunk in chunks_until_now(where, PartitionRow.output, stop):
        if chunk.begins_anew:
            rows = EarlierRows(until)
        for line in chunk.lines:
            rows.take(line)
        if chunk.thinned or chunk.after_gap:
            rows.lacks_rows()
    if stop.is_set():
        raise StoppedError
    return rows
