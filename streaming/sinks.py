"""Where the output rows go: one journal or one Kafka topic an output.

Here belongs the writing of a batch that may come twice. A journal skips a batch that it has; in Kafka a repeated batch
writes the same rows with the same keys once more.
"""

from __future__ import annotations

from typing import Protocol

from pyspark.sql import DataFrame
from pyspark.sql import functions as sql

from controller.outputs import OUTPUTS
from streaming.errors import StreamError
from transport.address import Address, JournalAddress, KafkaAddress
from transport.journal import JournalError, JournalWriter


class Sink(Protocol):
    """What takes the batches of a job."""

    @property
    def next_batch(self) -> int:
        """The smallest number that a new checkpoint may give to its first batch."""
        ...

    def write(self, rows: DataFrame, batch: int) -> None:
        """Write the rows in their order; a batch that was written before may come again."""
        ...

    def close(self) -> None:
        """Let go of what is held."""
        ...


class JournalSink:
    """One journal an output below a directory; raises StreamError where one cannot be written."""

    def __init__(self, address: JournalAddress) -> None:
        self._writers: dict[str, JournalWriter] = {}
        try:
            for output in OUTPUTS:
                self._writers[output] = JournalWriter(address.directory / output, batches=True)
        except JournalError as error:
            self.close()
            raise StreamError(str(error)) from error

    @property
    def next_batch(self) -> int:
        """Behind every batch that an earlier checkpoint left here, or its first batches would be skipped."""
        return 1 + max(writer.last_batch_id for writer in self._writers.values())

    def write(self, rows: DataFrame, batch: int) -> None:
        """Append to each output's journal what the batch has for it."""
        lines: dict[str, list[bytes]] = {}
        # A cluster is one group of one task, and rows are collected task by task, each in its order.
        for output, value in rows.select("output", "value").collect():
            lines.setdefault(output, []).append(value.encode())
        for output in OUTPUTS:  # a fixed order, so that a metadata row is not long behind its transition
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

    def write(self, rows: DataFrame, batch: int) -> None:  # noqa: ARG002 (a repeated batch writes the same keys)
        """Produce the rows; Spark returns when every one is acknowledged."""
        topic = sql.concat(sql.lit(f"{self._address.topic}."), sql.col("output"))
        (
            rows.select(topic.alias("topic"), "key", "value")
            .write.format("kafka")
            .option("kafka.bootstrap.servers", self._address.bootstrap_servers)
            .save()
        )

    def close(self) -> None:
        """Spark owns the producer."""


def open_sink(address: Address) -> Sink:
    """The sink at this address."""
    return JournalSink(address) if isinstance(address, JournalAddress) else KafkaSink(address)
