"""The journal as a source of Spark: whole lines, a cluster's together, each with the offset at which it stands.

Here belongs what Spark must know to read a journal; how a journal lies on disk is `transport.journal`'s business.
This code runs in a Python process of Spark's, not in the one that started the job.
"""

from __future__ import annotations

import re
from array import array
from collections.abc import Iterator, Sequence
from pathlib import Path

import msgspec
import pyarrow as pa
from pyspark.sql.datasource import DataSource, SimpleDataSourceStreamReader
from pyspark.sql.streaming.datasource import SupportsTriggerAvailableNow
from pyspark.sql.types import BinaryType, StringType, StructField, StructType

from controller.decoding import JsonDecoder, UndecodableError
from streaming.packed import pack
from transport.journal import OffsetGoneError, earliest_offset, end_offset, read_journal

Offset = dict[str, int]
Batches = Iterator[pa.RecordBatch]

# A row of Spark costs as much as a thousand bytes: lines travel in blocks of about this size.
BLOCK_BYTES = 1024**2
# As `encode_record` begins a line. One that begins in another way is parsed for its cluster.
_CLUSTER = re.compile(rb'\{"v":[0-9]+,"cluster":"([^"\\]*)"')


class _Routed(msgspec.Struct):
    cluster: str


_ROUTED = JsonDecoder(_Routed)


class JournalDataSource(DataSource):
    """`format("journal")`, options `directory`, `max_batch_bytes` and, to begin behind the oldest line, `begin`."""

    @classmethod
    def name(cls) -> str:
        """The name to give to `format`."""
        return "journal"

    def schema(self) -> StructType:
        """Blocks of one cluster's lines, joined by newlines and packed; `offsets` are their places, 8 bytes each."""
        # As a sentence of SQL it would be parsed: a quarter of a second at each start.
        types = {"cluster": StringType(), "offsets": BinaryType(), "value": BinaryType()}
        return StructType([StructField(name, its_type) for name, its_type in types.items()])

    def simpleStreamReader(self, schema: StructType) -> JournalReader:  # noqa: N802 (Spark's name)
        """The reader, created once a query."""
        begin = self.options.get("begin")
        return JournalReader(
            Path(self.options["directory"]),
            int(self.options["max_batch_bytes"]),
            begin=None if begin is None else int(begin),
        )


class JournalReader(SimpleDataSourceStreamReader, SupportsTriggerAvailableNow):
    """Reads from an offset on, or from the oldest line that is left: the hole shows in the records' numbers."""

    def __init__(self, directory: Path, max_batch_bytes: int, begin: int | None = None) -> None:
        self._begin = begin
        self._directory = directory
        self._max_batch_bytes = max_batch_bytes
        self._last_offset: int | None = None  # where an available-now query ends

    def initialOffset(self) -> Offset:  # noqa: N802 (Spark's name)
        """Where a query without a checkpoint begins: where it is told, else the oldest line that is left."""
        return {"offset": earliest_offset(self._directory) if self._begin is None else self._begin}

    def prepareForTriggerAvailableNow(self) -> None:  # noqa: N802 (Spark's name)
        """Fix the end of an available-now query."""
        self._last_offset = end_offset(self._directory)

    def read(self, start: Offset) -> tuple[Batches, Offset]:
        """The next lines, and the offset behind them."""
        offset = start["offset"]
        if self._last_offset is not None and offset >= self._last_offset:
            return iter(()), start
        begin, lines, end = self._lines(offset, self._max_batch_bytes)
        return _as_arrow(begin, lines), {"offset": end}

    def readBetweenOffsets(self, start: Offset, end: Offset) -> Batches:  # noqa: N802 (Spark's name)
        """The same lines once more, after a restart."""
        # A batch that runs again may have lost its beginning meanwhile, or all of it.
        offset = max(start["offset"], earliest_offset(self._directory))
        begin, lines = offset, []
        while offset < end["offset"]:
            _, more, offset = self._lines(offset, end["offset"] - offset)
            lines.extend(more)
        return _as_arrow(begin, lines)

    def _lines(self, offset: int, max_bytes: int) -> tuple[int, list[bytes], int]:
        try:
            batch = read_journal(self._directory, offset, max_bytes)
        except OffsetGoneError as error:
            offset = error.earliest
            batch = read_journal(self._directory, offset, max_bytes)
        return offset, list(batch.lines), batch.next_offset


def _as_arrow(offset: int, lines: Sequence[bytes]) -> Batches:
    blocks = _Blocks()
    for line in lines:
        blocks.add(cluster_of(line), offset, line)
        offset += len(line) + 1
    return blocks.finished()


def cluster_of(line: bytes) -> str:
    """The cluster that a line names; one that names none goes to the cluster "", whose replica refuses it."""
    match = _CLUSTER.match(line)
    try:
        return match[1].decode() if match else _ROUTED.decode(line).cluster
    except (UndecodableError, UnicodeDecodeError):
        return ""


class _Blocks:
    """Lines on their way into blocks, by cluster."""

    def __init__(self) -> None:
        self._open: dict[str, tuple[array[int], list[bytes]]] = {}
        self._bytes: dict[str, int] = {}
        self._full: list[tuple[str, bytes, bytes]] = []

    def add(self, cluster: str, offset: int, line: bytes) -> None:
        offsets, lines = self._open.setdefault(cluster, (array("q"), []))
        offsets.append(offset)
        lines.append(line)
        size = self._bytes[cluster] = self._bytes.get(cluster, 0) + len(line)
        if size >= BLOCK_BYTES:
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
        offsets, lines = self._open.pop(cluster)
        self._bytes[cluster] = 0
        self._full.append((cluster, offsets.tobytes(), pack(b"\n".join(lines))))
