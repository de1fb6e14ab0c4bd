"""The batch job, which makes an account for each cluster and subject, and adds them up to a report for each cluster.

Only reports return to the driver. More executors handle more clusters, and more subjects of a cluster, at a time.
"""

from __future__ import annotations

import contextlib
import logging
import threading
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import msgspec
from py4j.protocol import Py4JError, Py4JJavaError
from pyspark.errors.exceptions.base import PySparkException
from pyspark.sql import DataFrame, SparkSession, functions as sql

from controller.contract.outputs import BadRowError, decode_row
from controller.contract.records import LATEST_MS
from controller.contract.row import Row
from outputs import CHANGES, OutputsError, SourceDownError, open_changes, open_outputs
from questions.report.cluster_report import ClusterReport
from streaming.errors import StreamError
from streaming.java.artifacts import SPARK_KAFKA_CONNECTOR, jars
from streaming.kafka_options import spark_options
from streaming.report.accounts import PARTS_SCHEMA, PartsOfFiles, PartsOfLines, ReportsOfParts
from streaming.report.config import ReportConfig, ZooKeeperFiles
from streaming.report.routed import OUTPUTS, SCHEMA, JournalPart, RouteOfJournals, RouteOfTopics
from streaming.sources.records import wait_for_kafka
from streaming.spark.failure import stream_error
from streaming.spark.session import spark_session
from streaming.spark.submitted import submitted
from transport.address import Address, JournalAddress, KafkaAddress
from transport.journal import JournalError, end_offset, read_journal
from transport.segments import list_segments
from transport.topics import output_topic

logger = logging.getLogger("kontrast.reports")

_PARTS_A_CORE: Final = 3  # so that an executor with less work takes over work of a busy executor
_ORDER: Final = ("cluster", "subject", "generation", "seq", "ordinal", "place")
_FIRST_LINES_BYTES: Final = 64 * 1024


@dataclass(frozen=True, slots=True)
class SparkResources:
    """Spark's resources for a batch job. It writes no checkpoint, so a fast file system is unnecessary."""

    master: str
    driver_memory: str
    shuffle_partitions: int = 1
    file_system: str = "hadoop"
    library_parents: tuple[Path, ...] = ()  # without state it needs no RocksDB


def run(config: ReportConfig, stop: threading.Event) -> tuple[ClusterReport, ...]:
    """Return the reports in the order of clusters' names, "" for lines without a cluster. Raise StreamError."""
    kafka = isinstance(config.source, KafkaAddress)
    if isinstance(config.source, KafkaAddress):
        wait_for_kafka(config.source, config.resources.connect_timeout_seconds, stop)
    connector = jars(SPARK_KAFKA_CONNECTOR, report=logger.info) if kafka and not submitted() else ()
    resources = SparkResources(config.resources.master, config.resources.driver_memory)
    with spark_session(resources, stop, jars=connector) as session:
        return reports_of(session, config, stop)


def reports_of(session: SparkSession, config: ReportConfig, stop: threading.Event) -> tuple[ClusterReport, ...]:
    """Return the reports, computed in an existing session."""
    at_once = _PARTS_A_CORE * session.sparkContext.defaultParallelism
    with _cancelled_by(stop, session):
        try:
            parts = _parts(session, config, at_once)
            by_cluster = parts.repartition(at_once, "cluster").sortWithinPartitions("cluster")
            found = by_cluster.mapInArrow(ReportsOfParts(config), PARTS_SCHEMA).collect()
        except (PySparkException, Py4JJavaError, JournalError) as error:
            raise stream_error(error, "the report") from error
    decoder = msgspec.msgpack.Decoder(ClusterReport)
    reports = (decoder.decode(bytes(row["content"])) for row in found)
    return tuple(sorted(reports, key=lambda report: report.cluster))


def _parts(session: SparkSession, config: ReportConfig, at_once: int) -> DataFrame:
    source = config.source
    if isinstance(source, ZooKeeperFiles):
        count = len(source.directories)
        return session.range(0, count, 1, count).mapInArrow(PartsOfFiles(config), PARTS_SCHEMA)
    lines, complete_from_ms = _lines(session, source)
    if config.clusters:
        lines = lines.where(sql.col("cluster").isin("", *config.clusters))
    ordered = lines.repartition(at_once, "cluster", "subject").sortWithinPartitions(*_ORDER)
    return ordered.mapInArrow(PartsOfLines(config, complete_from_ms), PARTS_SCHEMA)


def _lines(session: SparkSession, source: Address) -> tuple[DataFrame, int]:
    """Return the lines of the source, and the time from which on they are complete."""
    if isinstance(source, JournalAddress):
        return _of_journals(session, source)
    topics = _topics(source)
    read = session.read.format("kafka").options(**spark_options(source))
    messages = read.option("subscribe", ",".join(topics)).option("startingOffsets", "earliest").load()
    lines = messages.select("topic", "offset", "value").mapInArrow(RouteOfTopics(topics), SCHEMA)
    return lines, 0 if "" in topics.values() else _behind_compaction(lines)


def _topics(address: KafkaAddress) -> dict[str, str]:
    """Return the topics to read with their outputs. The stream of changes has an empty output."""
    outputs = {output_topic(address, output): output for output in OUTPUTS}
    for reader, topics in ((open_changes(address), {address.topic: ""}), (open_outputs(address, OUTPUTS), outputs)):
        try:
            reader.poll()
        except (SourceDownError, OutputsError) as error:
            raise StreamError(str(error)) from error
        finally:
            reader.close()
        present = {topic: output for topic, output in topics.items() if (output or CHANGES) not in reader.missing}
        if present:
            return present
    raise _nothing_there(address)


def _nothing_there(address: Address) -> StreamError:
    return StreamError(f"{address} holds no rows of Kontrast. Check the address")


def _behind_compaction(lines: DataFrame) -> int:
    """Return the time after which no output has lost rows. Compaction leaves holes in a topic's offsets."""
    newest = lines.where("output != ''").groupBy("output").agg(sql.max(sql.struct("piece", -sql.col("time_ms"))))
    firsts = [row[1] for row in newest.collect()]
    return max((-first[1] for first in firsts if first[0]), default=0)


def _of_journals(session: SparkSession, source: JournalAddress) -> tuple[DataFrame, int]:
    directory = source.directory.absolute()
    outputs = {output: directory / output for output in OUTPUTS if (directory / output).exists()}
    parts: list[JournalPart] = []
    complete_from_ms = 0
    for output, journal in (outputs or {"": directory}).items():
        segments = list_segments(journal)
        if not segments:
            continue
        ends = [segment.start for segment in segments[1:]] + [end_offset(journal)]
        of_journal = [
            JournalPart(str(journal), output, segment.start, end) for segment, end in zip(segments, ends, strict=True)
        ]
        parts += of_journal
        if output and (segments[0].compacted or segments[0].start):
            behind = of_journal[1:] if segments[0].compacted else of_journal
            complete_from_ms = max(complete_from_ms, _complete_from_ms(behind))
    if not parts:
        raise _nothing_there(source)
    return session.range(0, len(parts), 1, len(parts)).mapInArrow(
        RouteOfJournals(tuple(parts)), SCHEMA
    ), complete_from_ms


def _complete_from_ms(parts: list[JournalPart]) -> int:
    """Return the time from which on these parts of a journal have all rows, just after the first row's moment.

    Other rows of that moment may be missing. Without a row the journal is incomplete.
    """
    for part in parts:
        for line in read_journal(Path(part.directory), part.begin, _FIRST_LINES_BYTES).lines:
            with contextlib.suppress(BadRowError):
                row = decode_row(line)
                if isinstance(row, Row):
                    return row.time_ms + 1
    return LATEST_MS


@contextlib.contextmanager
def _cancelled_by(stop: threading.Event, session: SparkSession) -> Iterator[None]:
    """Cancel the running work when `stop` is set."""
    done = threading.Event()

    def wait() -> None:
        while not done.is_set():
            if stop.wait(0.1):
                with contextlib.suppress(Py4JError, ConnectionError):
                    session.sparkContext.cancelAllJobs()
                return

    waiting = threading.Thread(target=wait, name="report-stop", daemon=True)
    waiting.start()
    try:
        yield
    finally:
        done.set()
        waiting.join()
