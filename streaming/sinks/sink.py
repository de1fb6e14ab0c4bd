"""Sink for the output rows of a repeatable batch, with one journal or one Kafka topic per output.

A journal skips its newest batch. Otherwise, and always in Kafka, a repeated batch writes its rows again under equal
keys and places. By the ends of its journal each output proves that it has all rows before the next batch. Compaction
keeps the newest row of each subject since its beginning.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor, wait
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import msgspec
from pyspark.sql import DataFrame, SparkSession, functions as sql

from controller.contract.job_row import JobRow, OutputEnd
from controller.contract.metadata_rows import BeginningRow
from controller.contract.newest_rows import NewestRows
from controller.contract.outputs import OUTPUTS, STANDING_OUTPUTS, BadRowError, decode_row, encode_row
from streaming.checkpoint.directory import REBUILD, Fence
from streaming.config import Retention, StreamConfig
from streaming.errors import StreamError
from streaming.kafka_options import spark_options
from streaming.published import unpack
from streaming.python_memory import return_free_memory
from transport.address import JournalAddress, KafkaAddress
from transport.disk import Fsync, make_private
from transport.journal import JournalWriter
from transport.segments import JournalError, newest_lines
from transport.topics import RequiredTopic, output_topic


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


def stored_ends(directory: Path) -> dict[str, OutputEnd]:
    """Return the ends in the newest row of the job. An older Kontrast stored no ends."""
    for line in newest_lines(directory / JobRow.output, b"{"):
        try:
            row = decode_row(line)
        except BadRowError:
            continue
        if isinstance(row, JobRow):
            return row.ends
    return {}


def require_rows(
    directory: Path, writers: Mapping[str, JournalWriter], stored: Mapping[str, OutputEnd], batch: int
) -> None:
    """Raise StreamError if an output lacks rows of a batch before this one, which the checkpoint counts as done."""
    # The job's journal has a mark of every batch. The other journals have no mark of a batch without their rows.
    lacking = [JobRow.output] if writers[JobRow.output].last_batch_id < batch - 1 else []
    for output, end in stored.items():
        writer = writers.get(output)
        if writer is not None and (writer.identity != end.identity or writer.end_offset < end.offset):
            lacking.append(output)
    if lacking:
        named = ", ".join(str(directory / output) for output in lacking)
        raise StreamError(
            f"{named} lost rows of batches before {batch}, with which the checkpoint continues. To continue, {REBUILD}"
        )


logger = logging.getLogger("kontrast.streaming")

_WRITTEN = (*OUTPUTS, JobRow.output)
# Alerts precede the thousands of rows of a broker's loss. Gauges follow, so no heartbeat overtakes its rows.
_FIRST, _LAST = "alerts", "gauges"
_IN_TURN = ((_FIRST,), tuple(output for output in OUTPUTS if output not in (_FIRST, _LAST)), (_LAST,))
_COMPACTED = (*STANDING_OUTPUTS, JobRow.output)  # outputs in which only the newest row of a key holds
_LONGEST_WAIT_MS = 5_000  # for Kafka, of a row between batches


@dataclass(frozen=True, slots=True)
class MicroBatch:
    """A batch of the job with its number for the sink, its part of the source, and the job's own row.

    If the checkpoint `has_earlier` batches, their rows must be in the outputs. `secure` forces the required part of the
    checkpoint to disk. The fence stops a zombie driver.
    """

    number: int
    source: bytes
    has_earlier: bool
    job: JobRow
    secure: Callable[[], None]
    fence: Fence


class RowJournals:
    """One journal per output below a directory. Raise StreamError if a journal is not writable.

    The journal of the job's rows has a mark of every batch and the ends of the other journals, written after these are
    on disk. Rows of a batch without a mark may be missing.
    """

    def __init__(self, address: JournalAddress, retention: Mapping[str, Retention]) -> None:
        self._address = address
        self._writers: dict[str, JournalWriter] = {}
        self._job_row = threading.Lock()
        self._threads = ThreadPoolExecutor(len(OUTPUTS), "output")
        try:
            make_private(address.directory)
            for output in _WRITTEN:
                self._writers[output] = JournalWriter(
                    address.directory / output,
                    batches=True,
                    fsync=Fsync.ALWAYS,
                    retain_bytes=retention[output].bytes,
                    retain_seconds=retention[output].seconds,
                    standing=StandingRows if output in _COMPACTED else None,
                )
            self._ends = stored_ends(address.directory)
        except JournalError as error:
            self.close()
            raise StreamError(str(error)) from error
        except OSError as error:
            raise StreamError(f"the outputs cannot be in {address.directory}: {error.strerror}") from error

    @property
    def next_batch(self) -> int:
        """Return the number for the first batch of a new checkpoint. A journal would skip lower numbers."""
        return 1 + max(writer.last_batch_id for writer in self._writers.values())

    def write(self, rows: DataFrame, batch: MicroBatch) -> None:
        """Append the batch's rows to each output's journal. Raise StreamError if earlier rows are lost."""
        if batch.has_earlier:
            require_rows(self._address.directory, self._writers, self._ends, batch.number)
        packed: dict[str, list[bytes]] = {}
        # A cluster is one group of one task, and rows are collected task by task, each in its order.
        for output, values in rows.select("output", "values").collect():
            packed.setdefault(output, []).append(bytes(values))
        batch.secure()
        newest = self.next_batch - 1

        def append(output: str) -> int:
            lines = [line for values in packed[output] for line in unpack(values).split(b"\n")]
            batch.fence.require()
            self._writers[output].append_batch(batch.number, lines, batch.source)
            return len(lines)

        count = 0
        for outputs in _IN_TURN:
            # Appends wait for the disk and for checksums, so together they take little longer than the longest.
            appends = [self._threads.submit(append, output) for output in outputs if output in packed]
            wait(appends)  # for all, because a failed batch repeats
            count += sum(done.result() for done in appends)
        batch.fence.require()
        with self._job_row:
            # Without `job`, because its row contains these ends.
            ends = {output: self._writers[output] for output in OUTPUTS}
            self._ends = {name: OutputEnd(identity=at.identity, offset=at.end_offset) for name, at in ends.items()}
            self._writers[JobRow.output].append_batch(batch.number, [self._job_line(batch.job)], batch.source)
        return_free_memory(count)
        if batch.number < newest:
            logger.warning(
                "the checkpoint is behind the outputs in %s, which have batch %d. Batch %d is written once more",
                self._address.directory,
                newest,
                batch.number,
            )

    def write_idle(self, row: JobRow, session: SparkSession) -> None:  # noqa: ARG002 (Kafka's sink needs it)
        """Add the row to the journal of the job's rows."""
        with self._job_row:
            if self._writers[JobRow.output].last_batch_id >= 0:
                self._writers[JobRow.output].add_to_last_batch([self._job_line(row)])

    def _job_line(self, row: JobRow) -> bytes:
        return encode_row(msgspec.structs.replace(row, ends=self._ends))

    def close(self) -> None:
        """Force the written rows to disk."""
        self._threads.shutdown()
        for writer in self._writers.values():
            writer.close()


class RowTopics:
    """One topic per output, `PREFIX.<output>`, keyed by the row's subject."""

    next_batch = 0

    def __init__(self, address: KafkaAddress) -> None:
        self._address = address

    def write(self, rows: DataFrame, batch: MicroBatch) -> None:
        """Produce the rows. Spark returns after every acknowledgement."""
        topic = sql.concat(sql.lit(f"{self._address.topic}."), sql.col("output")).alias("topic")
        keys, values = (sql.split(sql.col(name).cast("string"), "\n") for name in ("keys", "values"))
        together = rows.select(
            topic, sql.explode(sql.arrays_zip(keys.alias("key"), values.alias("value"))).alias("row")
        )
        messages = together.select("topic", "row.key", "row.value")
        messages = messages.union(self._message(batch.job, rows.sparkSession))
        # Rows repeat their field names, so they compress to a fifth. kafka-python reads gzip without another library.
        writer = messages.write.format("kafka").options(**spark_options(self._address))
        writer.option("kafka.compression.type", "gzip").save()
        batch.secure()  # the state is written with the rows

    def write_idle(self, row: JobRow, session: SparkSession) -> None:
        """Produce the row, and return when Kafka has acknowledged it."""
        writer = self._message(row, session).write.format("kafka").options(**spark_options(self._address))
        for limit in ("max.block", "request.timeout", "delivery.timeout"):
            writer.option(f"kafka.{limit}.ms", _LONGEST_WAIT_MS)
        writer.save()

    def _message(self, row: JobRow, session: SparkSession) -> DataFrame:
        topic, key = output_topic(self._address, row.output), row.subject_key()
        values = {"topic": topic, "key": key, "value": encode_row(row).decode()}
        return session.range(0, 1, 1, 1).select(*(sql.lit(value).alias(name) for name, value in values.items()))

    def close(self) -> None:
        """Spark owns the producer."""


def output_topics(address: KafkaAddress) -> tuple[RequiredTopic, ...]:
    """Return the topics that the job writes."""
    return tuple(
        RequiredTopic(
            output_topic(address, output), compacted=output in _COMPACTED, unique_keys=output not in _COMPACTED
        )
        for output in _WRITTEN
    )


Sink = RowJournals | RowTopics
"""A sink takes the batches of a job, of which any may repeat. Any thread may call `write_idle`, even during a batch."""


def open_sink(config: StreamConfig) -> Sink:
    """Open the sink of the job. Raise StreamError."""
    if isinstance(config.sink, JournalAddress):
        return RowJournals(config.sink, config.retention)
    return RowTopics(config.sink)
