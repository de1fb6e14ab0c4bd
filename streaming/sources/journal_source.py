"""Spark source of a journal, which returns whole lines, joined by cluster, with the offset of each.

This code runs in a Python process of Spark, not in the starting process.
"""

from __future__ import annotations

import re
import time
from array import array
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import msgspec
import pyarrow as pa
from pyspark.sql.datasource import DataSource, SimpleDataSourceStreamReader
from pyspark.sql.streaming.datasource import SupportsTriggerAvailableNow
from pyspark.sql.types import BinaryType, StringType, StructField, StructType

from controller.contract.decoding import JsonDecoder, UndecodableError
from streaming.published import pack
from streaming.python_memory import leave_pandas_out
from transport.journal_reading import JournalBatch, earliest_offset, end_offset, journal_identity, read_journal
from transport.segments import ForeignOffsetError, OffsetGoneError

Offset = dict[str, Any]  # "offset", and "journal", the identity of the journal that gave it, if it has one
Batches = Iterator[pa.RecordBatch]

# A row of Spark costs as much as a thousand bytes, so lines travel in blocks of about this size.
BLOCK_BYTES = 1024**2
# The beginning of a line by `encode_record`. A line with another beginning is parsed for its cluster.
_CLUSTER = re.compile(rb'\{"v":[0-9]+,"cluster":"([^"\\]*)"')


# `kontrast watch` looks once a second whether its journal was removed, and continues in a new one at the same offset.
BEGUN_AGAIN_SECONDS = 5.0


class _Routed(msgspec.Struct):
    cluster: str


_ROUTED = JsonDecoder(_Routed)


class JournalDataSource(DataSource):
    """`format("journal")`, options `directory`, `max_batch_bytes` and, to begin behind the oldest line, `begin`."""

    @classmethod
    def name(cls) -> str:
        """Return the name to give to `format`."""
        return "journal"

    def schema(self) -> StructType:
        """Return the schema of packed blocks of one cluster's lines, joined by newlines. `offsets` has 8 bytes each."""
        # Parsing it from SQL would cost a quarter of a second at each start.
        types = {"cluster": StringType(), "offsets": BinaryType(), "value": BinaryType()}
        return StructType([StructField(name, its_type) for name, its_type in types.items()])

    def simpleStreamReader(self, schema: StructType) -> JournalReader:  # noqa: N802 (Spark's name)
        """Return the reader, created once a query."""
        leave_pandas_out()
        begin = self.options.get("begin")
        return JournalReader(
            Path(self.options["directory"]),
            int(self.options["max_batch_bytes"]),
            begin=None if begin is None else int(begin),
        )


class JournalReader(SimpleDataSourceStreamReader, SupportsTriggerAvailableNow):
    """Reader from an offset, or from the oldest remaining line. Numbers of records show a loss."""

    def __init__(self, directory: Path, max_batch_bytes: int, begin: int | None = None) -> None:
        self._begin = begin
        self._directory = directory
        self._max_batch_bytes = max_batch_bytes
        self._last_offset: int | None = None  # where an available-now query ends
        self._short_since: float | None = None  # start of the time in which the journal ended before the read offset

    def initialOffset(self) -> Offset:  # noqa: N802 (Spark's name)
        """Return the beginning of a query without a checkpoint, the given offset or the oldest remaining line."""
        return self._offset(earliest_offset(self._directory) if self._begin is None else self._begin)

    def prepareForTriggerAvailableNow(self) -> None:  # noqa: N802 (Spark's name)
        """Fix the end of an available-now query."""
        self._last_offset = end_offset(self._directory)

    def read(self, start: Offset) -> tuple[Batches, Offset]:
        """Return the next lines, and the offset after them."""
        offset = self._own(start)
        if self._last_offset is not None and offset >= self._last_offset:
            return iter(()), start
        if self._may_be_begun_again(offset):
            return iter(()), start
        batch = self._batch(offset, self._max_batch_bytes)
        if batch.next_offset == offset:
            return iter(()), start
        return _as_arrow([batch]), self._offset(batch.next_offset)

    def readBetweenOffsets(self, start: Offset, end: Offset) -> Batches:  # noqa: N802 (Spark's name)
        """Return the same lines once more, after a restart."""
        # A repeated batch may have lost its beginning, or all its lines, meanwhile.
        offset = max(self._own(start), earliest_offset(self._directory))
        batches = []
        while offset < end["offset"]:
            batches.append(self._batch(offset, end["offset"] - offset))
            offset = batches[-1].next_offset
        return _as_arrow(batches)

    def _may_be_begun_again(self, offset: int) -> bool:
        """Return whether the journal was removed too recently for its writer to have noticed."""
        if end_offset(self._directory) >= offset:
            self._short_since = None
            return False
        now = time.monotonic()
        self._short_since = self._short_since or now
        return now - self._short_since < BEGUN_AGAIN_SECONDS

    def _batch(self, offset: int, max_bytes: int) -> JournalBatch:
        try:
            return read_journal(self._directory, offset, max_bytes)
        except OffsetGoneError as error:
            return read_journal(self._directory, error.earliest, max_bytes)

    def _offset(self, offset: int) -> Offset:
        identity = journal_identity(self._directory)
        return {"offset": offset, "journal": identity} if identity else {"offset": offset}

    def _own(self, offset: Offset) -> int:
        """Return the byte position of an offset. Raise ForeignOffsetError if another journal gave the offset."""
        given_by, place = offset.get("journal", ""), int(offset["offset"])
        if given_by and given_by != (journal_identity(self._directory) or given_by):
            raise ForeignOffsetError(self._directory, place, end_offset(self._directory))
        return place


def _as_arrow(batches: Sequence[JournalBatch]) -> Batches:
    blocks = _Blocks()
    for batch in batches:
        if batch.hole is not None:
            # A hole goes to the cluster "", whose replica rejects it and reports it with other bad input.
            blocks.add("", batch.hole.begin, str(batch.hole).encode())
        beginning, cluster = b"", ""  # of the line before, because most lines continue its cluster
        for offset, line in batch.placed():
            if not (beginning and line.startswith(beginning)):
                match = _CLUSTER.match(line)
                beginning, cluster = match[0] if match else b"", cluster_of(line)
            blocks.add(cluster, offset, line)
    return blocks.finished()


def cluster_of(line: bytes) -> str:
    """Return the cluster that a line names, or "", whose replica rejects the line."""
    match = _CLUSTER.match(line)
    try:
        return match[1].decode() if match else _ROUTED.decode(line).cluster
    except (UndecodableError, UnicodeDecodeError):
        return ""


class _Block:
    """Lines of one cluster, with the offset of each."""

    __slots__ = ("lines", "offsets", "size_bytes")

    def __init__(self) -> None:
        self.offsets = array("q")
        self.lines: list[bytes] = []
        self.size_bytes = 0


class _Blocks:
    """Lines on their way into blocks, by cluster."""

    def __init__(self) -> None:
        self._open: dict[str, _Block] = {}
        self._full: list[tuple[str, bytes, bytes]] = []

    def add(self, cluster: str, offset: int, line: bytes) -> None:
        block = self._open.get(cluster)
        if block is None:
            block = self._open[cluster] = _Block()
        block.offsets.append(offset)
        block.lines.append(line)
        block.size_bytes += len(line)
        if block.size_bytes >= BLOCK_BYTES:
            self._close(cluster)

    def finished(self) -> Batches:
        for cluster in list(self._open):
            self._close(cluster)
        if not self._full:
            return iter(())
        clusters, offsets, values = zip(*self._full, strict=True)
        columns = [pa.array(clusters, pa.string()), pa.array(offsets, pa.binary()), pa.array(values, pa.binary())]
        return iter([pa.RecordBatch.from_arrays(columns, names=["cluster", "offsets", "value"])])

    def _close(self, cluster: str) -> None:
        block = self._open.pop(cluster)
        self._full.append((cluster, block.offsets.tobytes(), pack(b"\n".join(block.lines))))
