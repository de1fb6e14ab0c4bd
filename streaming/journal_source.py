"""The journal as a source of Spark: whole lines, each with the offset at which it stands.

Here belongs what Spark must know to read a journal; how a journal lies on disk is `transport.journal`'s business.
This code runs in a Python process of Spark's, not in the one that started the job.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
from pyspark.sql.datasource import DataSource, SimpleDataSourceStreamReader
from pyspark.sql.streaming.datasource import SupportsTriggerAvailableNow
from pyspark.sql.types import StructType

from streaming.errors import StreamError
from transport.journal import OffsetGoneError, earliest_offset, end_offset, read_journal

Offset = dict[str, int]
Batches = Iterator[pa.RecordBatch]


class JournalDataSource(DataSource):
    """`format("journal")` with the options `directory` and `max_batch_bytes`."""

    @classmethod
    def name(cls) -> str:
        """The name to give to `format`."""
        return "journal"

    def schema(self) -> str:
        """The columns of a Kafka source that the job uses; a journal is one partition."""
        return "partition int, offset bigint, value binary"

    def simpleStreamReader(self, schema: StructType) -> JournalReader:  # noqa: N802 (Spark's name)
        """The reader, created once a query."""
        return JournalReader(Path(self.options["directory"]), int(self.options["max_batch_bytes"]))


class JournalReader(SimpleDataSourceStreamReader, SupportsTriggerAvailableNow):
    """Reads from an offset on; an offset that is gone fails the query with what to do, nothing is skipped."""

    def __init__(self, directory: Path, max_batch_bytes: int) -> None:
        self._directory = directory
        self._max_batch_bytes = max_batch_bytes
        self._last_offset: int | None = None  # where an available-now query ends

    def initialOffset(self) -> Offset:  # noqa: N802 (Spark's name)
        """Where a query without a checkpoint begins: the oldest line that is left."""
        return {"offset": earliest_offset(self._directory)}

    def prepareForTriggerAvailableNow(self) -> None:  # noqa: N802 (Spark's name)
        """Fix the end of an available-now query."""
        self._last_offset = end_offset(self._directory)

    def read(self, start: Offset) -> tuple[Batches, Offset]:
        """The next lines, and the offset behind them."""
        offset = start["offset"]
        if self._last_offset is not None and offset >= self._last_offset:
            return iter(()), start
        lines, end = self._lines(offset, self._max_batch_bytes)
        return _as_arrow(offset, lines), {"offset": end}

    def readBetweenOffsets(self, start: Offset, end: Offset) -> Batches:  # noqa: N802 (Spark's name)
        """The same lines once more, after a restart."""
        offset, lines = start["offset"], []
        while offset < end["offset"]:
            more, offset = self._lines(offset, end["offset"] - offset)
            lines.extend(more)
        return _as_arrow(start["offset"], lines)

    def _lines(self, offset: int, max_bytes: int) -> tuple[list[bytes], int]:
        try:
            batch = read_journal(self._directory, offset, max_bytes)
        except OffsetGoneError as error:
            raise StreamError(
                f"{error}; records are lost: start with an empty --checkpoint directory, "
                "and restart `kontrast watch` so that it writes a new snapshot"
            ) from error
        return list(batch.lines), batch.next_offset


def _as_arrow(offset: int, lines: list[bytes]) -> Batches:
    if not lines:
        return iter(())
    offsets = []
    for line in lines:
        offsets.append(offset)
        offset += len(line) + 1
    columns = [
        pa.array([0] * len(lines), pa.int32()),
        pa.array(offsets, pa.int64()),
        pa.array(lines, pa.binary()),
    ]
    return iter([pa.RecordBatch.from_arrays(columns, names=["partition", "offset", "value"])])
