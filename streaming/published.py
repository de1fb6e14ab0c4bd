"""Encoded rows of a batch by output, many in one row of Spark.

This module defines their form inside Spark. The core makes their content.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

import msgspec
import pyarrow as pa
from pyspark.sql import Row
from pyspark.sql.types import BinaryType, IntegerType, StringType, StructField, StructType

from controller.contract.ids import NO_BROKER
from controller.contract.metadata_rows import BeginningRow
from controller.contract.outputs import STANDING_OUTPUTS, encode_row
from controller.contract.records import Record
from controller.contract.row import Row as OutputRow
from controller.view.gauges import gauges_row
from controller.view.types import BOOTSTRAPPING, FOLLOWING, Context, Header
from streaming.python_memory import return_free_memory
from wording.sentences import counted

# Stands for an output in rows with a batch's work for a cluster, which serve only the job's own measurements.
APPLIED = "applied"
# Many output rows travel as one row of Spark, because a row of Spark costs more than an output row. Newlines join the
# keys and the values, because neither contains one. For a journal there are no keys, and the values are packed.
OUTPUT_SCHEMA = StructType(
    [
        StructField("output", StringType(), nullable=False),
        StructField("keys", BinaryType(), nullable=False),
        StructField("values", BinaryType(), nullable=False),
        StructField("count", IntegerType(), nullable=False),
    ]
)
_ROWS_TOGETHER = 4096


class Observed(msgspec.Struct, frozen=True):
    """Moment of a record's observation, by both clocks of its forwarder. The steady clock is -1 if unknown."""

    generation: int
    wall_ms: int
    steady_ms: int


class Applied(msgspec.Struct, frozen=True, kw_only=True):
    """The work of a batch for one cluster, with the moments of its first and last records (0 without records)."""

    cluster: str
    records: int
    refused: int  # lines that were no record
    first: Observed
    last: Observed
    lacks_records: bool  # output is paused until a complete read arrives
    picture: str = ""  # a sentence about the cluster, once its state comes from a complete read
    failures: int = 0  # how often in a row its records could not be applied
    forgotten: bool = False  # the cluster is forgotten until it is watched again


def _observed(records: Sequence[Record]) -> Observed:
    """Return the moment of the first of these records, or zeros without a record."""
    for record in records:
        return Observed(record.generation, record.observed_ms, record.steady_ms)
    return Observed(0, 0, -1)


def _picture(header: Header) -> str:
    """Return the cluster in a sentence."""
    position = header.position
    row = gauges_row(header, (header.cluster, position.generation, position.seq, 0, header.zxid, header.time_ms))
    partitions, topics = counted(sum(row.partitions_by_state.values()), "partition"), counted(row.topics, "topic")
    who = f"broker {row.controller} is controller" if row.controller != NO_BROKER else "nobody is controller"
    offline = counted(row.leaderless_partitions, "partition") + " cannot be used"
    return f"{partitions} of {topics} on {counted(row.active_brokers, 'broker')}, {who}, {offline}"


class PublishedLine(NamedTuple):
    """A row as it is written."""

    output: str
    key: str
    value: bytes


class Published:
    """The rows of a batch, by output."""

    def __init__(self, refused: Iterable[OutputRow], *, packed: bool) -> None:
        self._packed = packed
        self._lines: dict[str, list[PublishedLine]] = {}
        self._applied: Row | None = None
        self.add(self.encoded(refused))

    def encoded(self, rows: Iterable[OutputRow]) -> list[PublishedLine]:
        """Return all encoded rows, or raise. A journal needs no keys, which cost as much as the values."""
        return [
            # A topic that was made in ZooKeeper by hand may have any name.
            PublishedLine(output, "" if self._packed else row.subject_key().replace("\n", "\\n"), encode_row(row))
            for row in rows
            for output in (STANDING_OUTPUTS if isinstance(row, BeginningRow) else (row.output,))
        ]

    def add(self, lines: Iterable[PublishedLine]) -> None:
        """Add rows behind the earlier rows of the same output."""
        for line in lines:
            self._lines.setdefault(line.output, []).append(line)

    def begin(self, cluster: str, record: Record) -> None:
        """Add the rows that void all rows before this record."""
        position, ordinal = record.position, -1
        stamp = (cluster, position.generation, position.seq, ordinal, record.zxid, record.observed_ms)
        self.add(self.encoded([BeginningRow(*stamp)]))

    def applied(self, cluster: str, records: Sequence[Record], refused: int, after: Context | None) -> None:
        """Note the batch's work for its cluster, and the context after it if there is one."""
        forgotten = after is not None and after.header.feed.forgotten
        did = Applied(
            cluster=cluster,
            records=len(records),
            refused=refused,
            first=_observed(records[:1]),
            last=_observed(records[-1:]),
            lacks_records=after is not None and after.header.phase is BOOTSTRAPPING and not forgotten,
            picture=_picture(after.header) if after is not None and after.header.phase is FOLLOWING else "",
            failures=0 if after is None else after.header.feed.quarantines.times,
            forgotten=forgotten,
        )
        self._applied = Row(output=APPLIED, keys=b"", values=msgspec.json.encode(did), count=0)

    def to_spark(self) -> Iterator[Row]:
        """Return the rows as Spark's, many in one, and the batch's work last."""
        count = sum(map(len, self._lines.values()))
        while self._lines:
            output = next(iter(self._lines))
            lines = self._lines.pop(output)
            for first in range(0, len(lines), _ROWS_TOGETHER):
                together = lines[first : first + _ROWS_TOGETHER]
                values = b"\n".join([line.value for line in together])
                # Spark itself splits rows for Kafka.
                keys = b"" if self._packed else "\n".join([line.key for line in together]).encode()
                values = pack(values) if self._packed else values
                yield Row(output=output, keys=keys, values=values, count=len(together))
            del lines, together
        return_free_memory(count)
        if self._applied is not None:
            yield self._applied


_CODEC = "zstd"
_LEVEL = 1  # a gigabyte a second
_SIZE_BYTES = 8


def pack(content: bytes) -> bytes:
    """Compress the content and put its size in front."""
    packed: bytes = pa.Codec(_CODEC, compression_level=_LEVEL).compress(content, asbytes=True)
    return len(content).to_bytes(_SIZE_BYTES, "big") + packed


def unpack(packed: bytes) -> bytes:
    """Return the content that was packed."""
    size = int.from_bytes(packed[:_SIZE_BYTES], "big")
    content: bytes = pa.decompress(packed[_SIZE_BYTES:], decompressed_size=size, codec=_CODEC, asbytes=True)
    return content
