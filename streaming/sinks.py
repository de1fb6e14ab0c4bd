"""Where the output rows go: one journal or one Kafka topic an output.

Here belongs the writing of a batch that may come twice. A journal skips a batch that it has; in Kafka a repeated batch
writes the same rows with the same keys once more.
"""

from __future__ import annotations

from typing import Protocol

from pyspark.sql import DataFrame
from pyspark.sql import functions as sql

from controller.outputs import OUTPUTS, STANDING_OUTPUTS, JobRow, encode_row
from streaming.errors import StreamError
from streaming.packed import unpack
from transport.address import Address, JournalAddress, KafkaAddress
from transport.journal import JournalError, JournalWriter
from transport.topics import Topic, output_topic

_WRITTEN = (*OUTPUTS, JobRow.output)
_COMPACTED = (*STANDING_OUTPUTS, JobRow.output)  # their rows hold until a newer one of the same key


class Sink(Protocol):
    """What takes the batches of a job."""

    @property
    def next_batch(self) -> int:
        """The smallest number that a new checkpoint may give to its first batch."""
        ...

    def write(self, rows: DataFrame, batch: int, job: JobRow | None) -> None:
        """Write the rows in their order, and the job's own if there is one; a batch may come again."""
        ...

    def close(self) -> None:
        """Let go of what is held."""
        ...


class JournalSink:
    """One journal an output below a directory; raises StreamError where one cannot be written."""

    def __init__(self, address: JournalAddress) -> None:
        self._writers: dict[str, JournalWriter] = {}
        try:
            for output in _WRITTEN:
                self._writers[output] = JournalWriter(address.directory / output, batches=True)
        except JournalError as error:
            self.close()
            raise StreamError(str(error)) from error

    @property
    def next_batch(self) -> int:
        """Behind every batch that an earlier checkpoint left here, or its first batches would be skipped."""
        return 1 + max(writer.last_batch_id for writer in self._writers.values())

    def write(self, rows: DataFrame, batch: int, job: JobRow | None) -> None:
        """Append to each output's journal what the batch has for it."""
        lines: dict[str, list[bytes]] = {}
        # A cluster is one group of one task, and rows are collected task by task, each in its order.
        for output, values in rows.select("output", "values").collect():
            lines.setdefault(output, []).extend(unpack(bytes(values)).split(b"\n"))
        if job is not None:
            lines[JobRow.output] = [encode_row(job)]
        for output in _WRITTEN:  # a fixed order, so that a metadata row is not long behind its transition
            if output in lines:
                self._writers[output].append_batch(batch, lines[output])

    def close(self) -> None:
        """Force what was written to disk."""
        for writer in self._writers.values():
            writer.close()


class KafkaSink:
    """One topic an output, `PREFIX.<output>`, keyed by what a row is about."""

    next_batch = 0

    def __init__(self, address: KafkaAddress) -> None:
        self._address = address

    def write(self, rows: DataFrame, batch: int, job: JobRow | None) -> None:  # noqa: ARG002 (the same keys again)
        """Produce the rows; Spark returns when every one is acknowledged."""
        topic = sql.concat(sql.lit(f"{self._address.topic}."), sql.col("output")).alias("topic")
        keys, values = (sql.split(sql.col(name).cast("string"), "\n") for name in ("keys", "values"))
        together = rows.select(
            topic, sql.explode(sql.arrays_zip(keys.alias("key"), values.alias("value"))).alias("row")
        )
        messages = together.select("topic", "row.key", "row.value")
        if job is not None:
            one = rows.sparkSession.range(0, 1, 1, 1)
            topic, key, value = output_topic(self._address, job.output), job.subject_key(), encode_row(job).decode()
            messages = messages.union(one.select(sql.lit(topic), sql.lit(key), sql.lit(value)))
        (messages.write.format("kafka").option("kafka.bootstrap.servers", self._address.bootstrap_servers).save())

    def close(self) -> None:
        """Spark owns the producer."""


def output_topics(address: KafkaAddress) -> tuple[Topic, ...]:
    """The topics that the job writes."""
    return tuple(Topic(output_topic(address, output), compacted=output in _COMPACTED) for output in _WRITTEN)


def open_sink(address: Address) -> Sink:
    """The sink at this address."""
    return JournalSink(address) if isinstance(address, JournalAddress) else KafkaSink(address)
