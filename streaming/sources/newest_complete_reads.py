"""The newest complete read of a cluster in the source, to which a rebuild returns, and the request for another one.

Later records are read as usual. `controller.step` finds by the records'
numbers that something is missing, and then `kontrast watch` is asked to read everything.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from functools import reduce
from operator import or_
from pathlib import Path
from typing import NamedTuple

import msgspec
from py4j.protocol import Py4JJavaError
from pyspark.errors.exceptions.base import PySparkException
from pyspark.sql import DataFrame, SparkSession, functions as sql

from controller.contract import records
from controller.contract.decoding import JsonDecoder
from controller.contract.records import BadRecordError, Record, decode_record
from streaming.config import StreamConfig
from streaming.errors import StreamError
from streaming.kafka_options import spark_options
from streaming.sources.journal_source import cluster_of
from streaming.sources.records import kafka_messages
from transport.address import Address, JournalAddress
from transport.journal_reading import earliest_offset, read_journal
from transport.segments import JournalError
from transport.topics import request_complete_read, request_topic

logger = logging.getLogger("kontrast.streaming")

_READ_BYTES = 8 * 1024**2
_MARKS = (b'"kind":"snapshot-', b'"kind":"forgotten"')

Starts = Mapping[int, int]  # partition of the source → offset


class SourcePlace(NamedTuple):
    """A line of the source."""

    partition: int
    offset: int


def newest_complete_reads(session: SparkSession, config: StreamConfig) -> Starts:
    """Return the start of each partition of the source that does not start at its beginning. Raise StreamError.

    A cluster without a complete read has no output until one arrives.
    """
    lines, clusters = _journal(config.source) if isinstance(config.source, JournalAddress) else _kafka(session, config)
    complete = records.newest_complete_reads(_records(lines))
    for cluster in sorted(clusters - complete.keys() - {""}):
        logger.warning("%s holds no complete read of cluster %s", config.source, cluster)
    starts: dict[int, int] = {}
    for partition, offset in filter(None, complete.values()):
        starts[partition] = min(offset, starts.get(partition, offset))
    return starts


def _records(lines: Iterable[tuple[SourcePlace, bytes]]) -> Iterator[tuple[SourcePlace, Record]]:
    for place, line in lines:
        with suppress(BadRecordError):
            yield place, decode_record(line)


def as_text(starts: Starts) -> str:
    """Return the starts as the checkpoint's settings keep them."""
    return msgspec.json.encode(dict(starts)).decode()


def from_text(text: str) -> Starts:
    """Read the text of `as_text`. Raise UndecodableError."""
    return JsonDecoder(dict[int, int]).decode(text)


def _journal(address: JournalAddress) -> tuple[list[tuple[SourcePlace, bytes]], set[str]]:
    clusters: set[str] = set()
    found = []
    try:
        for offset, line in _all_lines(address.directory):
            clusters.add(cluster_of(line))
            if any(mark in line for mark in _MARKS):
                found.append((SourcePlace(0, offset), line))
    except JournalError as error:
        raise StreamError(str(error)) from error
    return found, clusters


def _all_lines(directory: Path) -> Iterator[tuple[int, bytes]]:
    offset = earliest_offset(directory)
    while True:
        batch = read_journal(directory, offset, _READ_BYTES)
        if batch.next_offset == offset:
            return
        yield from batch.placed()
        offset = batch.next_offset


def _kafka(session: SparkSession, config: StreamConfig) -> tuple[list[tuple[SourcePlace, bytes]], set[str]]:
    messages: DataFrame = kafka_messages(session.read, config)
    text = sql.col("value").cast("string")
    is_mark = reduce(or_, (text.contains(mark.decode()) for mark in _MARKS))
    marked = messages.where(is_mark).orderBy("partition", "offset")
    found = [
        (SourcePlace(row.partition, row.offset), bytes(row.value))
        for row in marked.select("partition", "offset", "value").collect()
    ]
    named = messages.select(sql.get_json_object(text, "$.cluster").alias("cluster")).distinct().collect()
    return found, {row.cluster for row in named if row.cluster}


_REQUEST_AGAIN_SECONDS = 30.0
_LONGEST_WAIT_MS = 5000

# For a cluster that fails over every complete read, requests become rarer, because a read covers all clusters of the
# stream. They never end, because the cause may disappear from ZooKeeper at any time.
_LONGEST_WAIT_SECONDS = 3_600.0


def wait_seconds(failures: int) -> float:
    """Return the time between two requests for a cluster that failed `failures` times in a row."""
    return min(_REQUEST_AGAIN_SECONDS * 2.0 ** min(max(0, failures - 1), 32), _LONGEST_WAIT_SECONDS)


class CompleteReadRequests:
    """Requests to the source's writers for a complete read, repeated until one arrives."""

    def __init__(self, session: SparkSession, source: Address) -> None:
        self._session = session
        self._source = source
        self._requested_at: dict[str, float] = {}  # for each cluster

    def look(self, lacking: Mapping[str, int]) -> None:
        """Request a complete read if records of clusters are missing, unless the last request was a short while ago.

        `lacking` has the number of failures in a row by cluster. The wait between two requests grows with it.
        """
        now = time.monotonic()
        due = [
            cluster
            for cluster, failures in lacking.items()
            if now - self._requested_at.get(cluster, float("-inf")) >= wait_seconds(failures)
        ]
        if not due:
            return
        self._requested_at.update(dict.fromkeys(due, now))
        logger.warning(
            "%s: records of %s were lost. Output is paused until a complete read arrives (requested)",
            self._source,
            ", ".join(sorted(due)),
        )
        try:
            self._request()
        except (JournalError, PySparkException, Py4JJavaError) as error:
            logger.warning("a complete read could not be requested, restart `kontrast watch` instead: %s", error)

    def _request(self) -> None:
        if isinstance(self._source, JournalAddress):
            request_complete_read(self._source.directory)
            return
        message = self._session.range(0, 1, 1, 1).select(sql.lit("a complete read, please").alias("value"))
        writer = message.write.format("kafka").options(**spark_options(self._source))
        # By default Kafka's producer waits a minute for a missing topic, and the job would wait with it.
        writer.option("kafka.max.block.ms", _LONGEST_WAIT_MS).option("topic", request_topic(self._source)).save()
