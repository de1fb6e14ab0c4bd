"""Lines of Kontrast on their way to an account, in Spark's executors.

A line goes to its cluster, and a row also to its subject. Topics of a large cluster are spread over enough parts to
keep several executors busy. All other subjects of a cluster share a part.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final, NamedTuple

import msgspec
import pyarrow as pa

from controller.contract.decoding import JsonDecoder, UndecodableError
from transport.journal import read_journal

Batches = Iterator[pa.RecordBatch]

OUTPUTS: Final = ("metadata", "alerts", "gauges")
UNROUTED: Final = ""  # the cluster of lines that name no cluster
SCHEMA: Final = (
    "cluster string, subject string, generation bigint, seq bigint, ordinal bigint, place bigint, "
    "output string, piece bigint, time_ms bigint, value binary"
)
_TYPES: Final = {"string": pa.string(), "bigint": pa.int64(), "binary": pa.binary()}
_ARROW: Final = pa.schema([(name, _TYPES[kind]) for name, kind in (column.split() for column in SCHEMA.split(", "))])
_TOPIC_PARTS: Final = 16  # a part of 200,000 partitions has 12,500, which one process counts in a second or two
_LINES_AT_ONCE: Final = 2_000
_READ_BYTES: Final = 4 * 1024**2


class JournalPart(NamedTuple):
    """Lines of a journal between two offsets. `output` is empty for changes."""

    directory: str
    output: str
    begin: int
    end: int


class Routed(NamedTuple):
    """A line with its destination. `place` is its position in its journal or topic, `piece` the holes before it."""

    cluster: str
    subject: str
    generation: int
    seq: int
    ordinal: int
    place: int
    output: str
    piece: int
    time_ms: int
    value: bytes


class _Envelope(msgspec.Struct):
    cluster: str = UNROUTED
    kind: str = ""
    generation: int = -1
    seq: int = -1
    ordinal: int = 0
    time_ms: int = 0
    topic: str | None = None


_ENVELOPE: Final = JsonDecoder(_Envelope)


@dataclass(frozen=True, slots=True)
class RouteOfJournals:
    """Function that returns the lines of the numbered parts of journals."""

    parts: tuple[JournalPart, ...]

    def __call__(self, batches: Batches) -> Batches:
        """Return the lines, in Spark's form."""
        numbers = (number for batch in batches for number in batch.column("id").to_pylist())
        return _as_arrow(routed for number in numbers for routed in _of_journal(self.parts[number]))


@dataclass(frozen=True, slots=True)
class RouteOfTopics:
    """Function that returns the lines of topics. `outputs` has the output of each topic, empty for changes."""

    outputs: dict[str, str]

    def __call__(self, batches: Batches) -> Batches:
        """Return the lines, in Spark's form."""
        return _as_arrow(self._routed(batches))

    def _routed(self, batches: Batches) -> Iterator[Routed]:
        piece, before = 0, None
        for batch in batches:
            columns = (batch.column(name).to_pylist() for name in ("topic", "offset", "value"))
            for topic, offset, value in zip(*columns, strict=True):
                # A partition is read by one task, in order. Compaction leaves holes in its offsets.
                piece += before is not None and before + 1 != offset
                before = offset
                if value is not None:  # otherwise a tombstone, whose removal an earlier row has announced
                    yield from _routed(value, self.outputs[topic], offset, piece)


def _of_journal(part: JournalPart) -> Iterator[Routed]:
    offset = part.begin
    while offset < part.end:
        batch = read_journal(Path(part.directory), offset, min(_READ_BYTES, part.end - offset))
        if batch.hole is not None:
            yield _unrouted(str(batch.hole).encode(), batch.hole.begin)
        for place, line in batch.placed():
            if place < part.end:
                yield from _routed(line, part.output, place, 0)
        if batch.next_offset <= offset:
            return
        offset = batch.next_offset


def _routed(line: bytes, output: str, place: int, piece: int) -> Iterator[Routed]:
    try:
        found = _ENVELOPE.decode(line)
    except UndecodableError:
        yield _unrouted(b"", place)
        return
    if found.cluster == UNROUTED:
        yield _unrouted(b"", place)
        return
    if not output:  # keep the order of arrival, because `step` ignores late and repeated changes
        yield Routed(found.cluster, "", 0, 0, 0, place, output, piece, 0, line)
        return
    for subject in _subjects(found, output):
        order = found.generation, found.seq, found.ordinal
        yield Routed(found.cluster, subject, *order, place, output, piece, found.time_ms, line)


def _subjects(found: _Envelope, output: str) -> Iterable[str]:
    if found.kind == "partition" and found.topic is not None:
        return (_part_of(zlib.crc32(found.topic.encode()) % _TOPIC_PARTS),)
    if found.kind == "beginning" and output == "metadata":
        return ("", *map(_part_of, range(_TOPIC_PARTS)))
    return ("",)


def _part_of(number: int) -> str:
    return f"topics {number}"


def _unrouted(said: bytes, place: int) -> Routed:
    return Routed(UNROUTED, "", 0, 0, 0, place, "", 0, 0, said)


def _as_arrow(lines: Iterable[Routed]) -> Batches:
    return in_batches(lines, _ARROW)


def in_batches(rows: Iterable[tuple[object, ...]], schema: pa.Schema) -> Batches:
    """Yield rows in Spark's form, many in a batch."""
    waiting: list[tuple[object, ...]] = []
    for row in rows:
        waiting.append(row)
        if len(waiting) == _LINES_AT_ONCE:
            yield _batch(waiting, schema)
            waiting = []
    if waiting:
        yield _batch(waiting, schema)


def _batch(rows: list[tuple[object, ...]], schema: pa.Schema) -> pa.RecordBatch:
    columns = [pa.array(column, field.type) for column, field in zip(zip(*rows, strict=True), schema, strict=True)]
    return pa.RecordBatch.from_arrays(columns, schema=schema)
