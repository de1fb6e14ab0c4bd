"""Apply a cluster's records by `controller.step` inside Spark, with state in Spark's state store.

State is a small header and chunks. Only the touched chunks are read and written. Few records that touch many chunks are
stored themselves, until a heartbeat leaves time for the chunks. This module neither interprets nor repairs records.
"""

from __future__ import annotations

import logging
import traceback
from array import array
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from operator import attrgetter, itemgetter
from pathlib import Path
from typing import NamedTuple

from pyspark.sql import Row
from pyspark.sql.streaming.stateful_processor import MapState, StatefulProcessor, StatefulProcessorHandle, TimerValues
from pyspark.sql.types import BinaryType, IntegerType, LongType, StructField, StructType

from controller.contract.effect_rows import RefusedRow
from controller.contract.ids import UNKNOWN_ZXID
from controller.contract.records import (
    NOWHERE,
    BadRecordError,
    Position,
    Record,
    RecordKind,
    data_fields,
    decode_record,
    encode_record,
)
from controller.contract.row import Row as OutputRow
from controller.restore.altered_context import quarantine, quarantines_with
from controller.restore.stored_context import (
    StateVersionError,
    changed_chunks,
    encode_header,
    new_context,
    reconfigured,
    restore_context,
    restore_header,
)
from controller.step import steps
from controller.view.types import Context
from streaming.checkpoint.directory import REBUILD
from streaming.config import StreamConfig
from streaming.errors import StreamError
from streaming.published import Published, PublishedLine, pack, unpack
from streaming.python_memory import leave_pandas_out, without_collector
from streaming.separation import StreamBroker, refuse_watched_cluster
from transport.address import JournalAddress

_LOG = logging.getLogger("kontrast.streaming.replica")

# A checkpoint outlives the release that wrote it. Fields may be added (nullable), but never removed or retyped.
_HEADER_SCHEMA = StructType(
    [
        StructField("generation", LongType()),
        StructField("seq", LongType()),
        StructField("applied", LongType()),
        StructField("body", BinaryType()),
        StructField("kept", BinaryType()),
    ]
)
_CHUNK_KEY_SCHEMA = StructType([StructField("chunk", IntegerType())])
_CHUNK_SCHEMA = StructType([StructField("body", BinaryType())])

# A broker's loss with 6,000 of 200,000 partitions touches all 64 chunks, 7.6 MB that take 0.15 s. A restart applies the
# kept records again, a loss in 0.3 s and other records in 0.03 ms each.
_CHUNKS_AT_ONCE = 8
_KEPT_RECORDS = 4096
_RECORDS_TOGETHER = 16_384  # all 204,000 of a complete read would leave 46 MB of holes between what stays
_FAILURE_CHARACTERS = 500
_UNKNOWN_TIME_MS = 0  # a line that is no record has no time of its own
_NO_GENERATION = -1


class StoredHeader(NamedTuple):
    """A stored header. The position and count of its records identify the state.

    `body` and the chunks precede the `kept` records, which are packed lines.
    """

    generation: int
    seq: int
    applied: int
    body: bytes
    kept: bytes = b""


_NO_HEADER = StoredHeader(_NO_GENERATION, -1, 0, b"")


class _StateStoreError(Exception):
    """Spark does not return the stored state."""


class Chunks:
    """The stored chunks of the current batch.

    A context keeps its loader beyond its batch, but Spark's handle of the state is valid for one batch. So
    each batch gives the loader a new handle.
    """

    def __init__(self, state: MapState) -> None:
        self.state = state

    def load(self, chunk: int) -> bytes | None:
        """Return the stored chunk, if there is one."""
        try:
            found = self.state.getValue((chunk,))
        except Exception as error:
            raise _StateStoreError(f"chunk {chunk} cannot be read") from error
        return None if found is None else bytes(found[0])


@dataclass(frozen=True, slots=True)
class _DecodedContext:
    """A cluster's decoded context, and the header that proves it to be the state now stored.

    The kept records lead from the context whose chunks are `stored` to `context`.
    """

    header: StoredHeader
    context: Context
    chunks: Chunks
    stored: Context
    kept: tuple[Record, ...] = ()


# Contexts live as long as this Python process. Spark may use another process for the next batch, or repeat a batch. The
# stored header then differs from the remembered header, and the context is restored from the state.
_remembered: dict[tuple[str, str], _DecodedContext] = {}


class ReplicaProcessor(StatefulProcessor):
    """Apply a cluster's records in the order of their positions. `run` names the run of the query.

    `stream_brokers` are the brokers of the job's own Kafka, which may not belong to a watched cluster.
    """

    def __init__(self, *, run: str, config: StreamConfig, stream_brokers: Sequence[StreamBroker] = ()) -> None:
        self._run = run
        self._config = config
        self._stream_brokers = tuple(stream_brokers)

    def init(self, handle: StatefulProcessorHandle) -> None:
        """Declare the state."""
        leave_pandas_out()
        self._header_state = handle.getValueState("header", _HEADER_SCHEMA)
        self._chunk_state = handle.getMapState("chunks", _CHUNK_KEY_SCHEMA, _CHUNK_SCHEMA)

    def handleInputRows(  # noqa: N802 (Spark's name)
        self,
        key: tuple[str],
        rows: Iterator[Row],
        timerValues: TimerValues,  # noqa: N803 (Spark's name)
    ) -> Iterator[Row]:
        """Yield the output rows of one cluster's records of a batch, refused lines first."""
        (cluster,) = key
        with without_collector():
            return self._published(cluster, rows).to_spark()

    def close(self) -> None:
        """Ignore the end, because no resource is open."""

    def _published(self, cluster: str, rows: Iterator[Row]) -> Published:
        records, refused = self._decode(cluster, rows)
        published = Published(refused, packed=isinstance(self._config.sink, JournalAddress))
        context = None
        if records:
            try:
                context = self._apply(cluster, records, published)
            except StateVersionError as error:
                raise StreamError(f"{error}. Run the Kontrast that wrote it, or {REBUILD}") from error
            except (MemoryError, _StateStoreError, StreamError):
                raise  # the records are not the cause, so they are applied again
            except Exception as error:
                context = self._quarantine(cluster, records, error, published)
        published.applied(cluster, records, len(refused), context)
        return published

    def _decode(self, cluster: str, rows: Iterable[Row]) -> tuple[list[Record], list[OutputRow]]:
        records: list[tuple[int, int, Record]] = []
        refused: list[OutputRow] = []
        for partition, offset, line in _lines_of(rows):
            try:
                record = decode_record(line)
                if not cluster or record.cluster != cluster:
                    raise BadRecordError("not a record, because it names no cluster, or two")
                records.append((partition, offset, record))
            except BadRecordError as error:
                refused.append(self._refuse(cluster, partition, offset, line, str(error)))
        return _in_order(records), refused

    def _refuse(self, cluster: str, partition: int, offset: int, line: bytes, reason: str) -> RefusedRow:  # noqa: PLR0913 (one call)
        fields = data_fields(line)
        return RefusedRow(
            cluster=cluster,
            generation=_NO_GENERATION,
            seq=offset,
            ordinal=partition,
            zxid=UNKNOWN_ZXID,
            time_ms=_UNKNOWN_TIME_MS,
            path=f"{self._config.source}@{partition}:{offset}",
            reason=reason,
            data=fields.get("data"),
            data_base64=fields.get("data_base64"),
        )

    def _apply(self, cluster: str, records: list[Record], published: Published) -> Context:
        header = self._stored_header()
        recalled = self._recall(cluster, header)
        known = recalled or self._restore(cluster, header)
        context, lines = known.context, list[PublishedLine]()
        for first in range(0, len(records), _RECORDS_TOGETHER):
            outcome = steps(context, records[first : first + _RECORDS_TOGETHER])
            context = outcome.context
            lines += published.encoded(outcome.effects)
        refuse_watched_cluster(context.header, self._stream_brokers)
        # Settings may differ since the kept records were applied, so a restored context is stored as it is.
        if recalled is None or not self._keep(cluster, recalled, context, records):
            self._store(cluster, known, context, records)
        if not known.header.applied:
            published.begin(cluster, records[0])
        published.add(lines)
        return context

    def _quarantine(self, cluster: str, records: list[Record], error: Exception, published: Published) -> Context:
        """Drop the knowledge of a cluster whose records failed and would fail at each restart.

        Other clusters continue.
        """
        last = records[-1]
        failure = " ".join(f"{type(error).__name__}: {error}".split())[:_FAILURE_CHARACTERS]
        why = f"records up to number {last.seq} of generation {last.generation} could not be applied ({failure})"
        _LOG.error("%s is in quarantine until the next complete read, because %s", cluster, why, exc_info=error)
        stored = self._stored_header()
        unknown = self._unknown(cluster)
        known = unknown.header if stored is None else restore_header(cluster, stored.body)
        before = known.feed.quarantines
        quarantines = quarantines_with(before, len(records), last, _place_of(error))
        outcome = quarantine(unknown, quarantines, last, why)
        self._chunk_state.clear()
        none = _DecodedContext(stored or _NO_HEADER, unknown, Chunks(self._chunk_state), unknown)
        self._store(cluster, none, outcome.context, records)
        published.begin(cluster, last)
        if quarantines.unkept <= before.unkept:
            published.add(published.encoded(_refuse_record(record, why) for record in records))
        published.add(published.encoded(outcome.effects))
        return outcome.context

    def _unknown(self, cluster: str) -> Context:
        return new_context(cluster, *self._config.brokers_of(cluster).read(), chunk_count=self._config.chunk_count)

    def _stored_header(self) -> StoredHeader | None:
        stored = self._header_state.get()
        if stored is None:
            return None
        generation, seq, applied, body, kept = stored[:5]  # a newer Kontrast may have added fields
        return StoredHeader(generation, seq, applied, bytes(body), bytes(kept or b""))

    def _recall(self, cluster: str, header: StoredHeader | None) -> _DecodedContext | None:
        """Return this process's memory of the cluster, if it equals the stored state."""
        known = _remembered.get((self._run, cluster))
        if known is None or known.header != header:
            return None
        known.chunks.state = self._chunk_state
        return known

    def _restore(self, cluster: str, header: StoredHeader | None) -> _DecodedContext:
        chunks = Chunks(self._chunk_state)
        if header is None:
            unknown = self._unknown(cluster)
            return _DecodedContext(_NO_HEADER, unknown, chunks, unknown)
        stored = restore_context(cluster, header.body, chunks.load)
        kept = [decode_record(line) for line in unpack(header.kept).split(b"\n")] if header.kept else []
        context = reconfigured(steps(stored, kept).context, *self._config.brokers_of(cluster).read())
        return _DecodedContext(header, context, chunks, stored)

    def _keep(self, cluster: str, known: _DecodedContext, after: Context, records: Sequence[Record]) -> bool:
        """Store the records in place of changed chunks, if the records are much smaller. Return whether they are."""
        kept = (*known.kept, *records)
        changed = after.topics.changed_since(known.stored.topics)
        rests = all(record.kind is RecordKind.HEARTBEAT for record in records)
        if rests or len(changed) <= _CHUNKS_AT_ONCE or len(kept) > _KEPT_RECORDS:
            return False
        lines = pack(b"\n".join(map(encode_record, kept)))
        header = _header_after(known, records, known.header.body, lines)
        self._put(cluster, _DecodedContext(header, after, known.chunks, known.stored, kept))
        return True

    def _store(self, cluster: str, known: _DecodedContext, after: Context, records: Sequence[Record]) -> None:
        # Encode everything before the first store. A failure then leaves the state unchanged.
        header = _header_after(known, records, encode_header(after))
        for chunk, body in changed_chunks(known.stored, after).items():
            self._chunk_state.updateValue((chunk,), (body,))
        self._put(cluster, _DecodedContext(header, after, known.chunks, after))

    def _put(self, cluster: str, known: _DecodedContext) -> None:
        self._header_state.update(tuple(known.header))
        for other in [key for key in _remembered if key[0] != self._run]:
            del _remembered[other]
        _remembered[self._run, cluster] = known


def _header_after(known: _DecodedContext, records: Sequence[Record], body: bytes, kept: bytes = b"") -> StoredHeader:
    """Return the header after these records."""
    position = records[-1].position
    return StoredHeader(position.generation, position.seq, known.header.applied + len(records), body, kept)


def _place_of(error: BaseException) -> str:
    """Return the kind of the failure and the function that raised it, equal for equal defects."""
    frames = traceback.extract_tb(error.__traceback__)
    where = f" in {Path(frames[-1].filename).name}, {frames[-1].name}" if frames else ""
    return f"{type(error).__name__}{where}"


def _in_order(arrived: list[tuple[int, int, Record]]) -> list[Record]:
    """Return records, each with its partition and offset, by their positions. A shuffle keeps no order inside a group.

    What a deposed forwarder still sent after its successor began comes after the successor's record, so that the core
    drops it as in a later batch.
    """
    if len({record.generation for _, _, record in arrived}) <= 1:
        return sorted((record for _, _, record in arrived), key=attrgetter("position"))
    successors: dict[int, Position] = {}  # by partition
    placed: list[tuple[Position, Position, Record]] = []
    for partition, _, record in sorted(arrived, key=itemgetter(0, 1)):
        successor = successors.get(partition, NOWHERE)
        if record.generation < successor.generation:
            placed.append((successor, record.position, record))
            continue
        if record.generation > successor.generation:
            successors[partition] = record.position
        placed.append((record.position, NOWHERE, record))
    return [record for _, _, record in sorted(placed, key=itemgetter(0, 1))]


def _lines_of(rows: Iterable[Row]) -> Iterator[tuple[int, int, bytes]]:
    """Yield partition, offset and bytes of each line or message."""
    for row in rows:
        if row.offsets is None:
            yield row.partition, row.offset, bytes(row.value)
            continue
        offsets = array("q")
        offsets.frombytes(row.offsets)
        for offset, line in zip(offsets, unpack(bytes(row.value)).split(b"\n"), strict=True):
            yield row.partition, offset, line


def _refuse_record(record: Record, reason: str) -> RefusedRow:
    """Return a row for a whole record that was read and could not be applied."""
    return RefusedRow(
        cluster=record.cluster,
        generation=record.generation,
        seq=record.seq,
        ordinal=0,
        zxid=record.zxid,
        time_ms=record.observed_ms,
        path=record.path,
        reason=reason,
        data=encode_record(record).decode(),
    )
