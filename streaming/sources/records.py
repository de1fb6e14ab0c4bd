"""Records from a journal or a Kafka topic as one table of Spark, each line with its cluster.

`wait_for_kafka` waits at the start. `KafkaReach` logs an outage or silence of an address's Kafka, or a deleted source
topic, during the query, because Spark retries silently.
"""

from __future__ import annotations

import contextlib
import logging
import re
import socket
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from types import MappingProxyType
from typing import Any, NamedTuple

from pyspark.sql import DataFrame, DataFrameReader, SparkSession, functions as sql
from pyspark.sql.streaming import DataStreamReader

from streaming.config import StreamConfig
from streaming.errors import StreamError
from streaming.kafka_options import spark_options
from streaming.sources.journal_source import JournalDataSource
from transport.address import Address, JournalAddress, KafkaAddress
from transport.journal_reading import end_offset
from transport.segments import JournalError

_LOOK_SECONDS = 2.0
_CONNECT_SECONDS = 2.0
_LOG_AGAIN_SECONDS = 60.0


class _Trouble(NamedTuple):
    since: float
    logged_at: float


def failed_connections(bootstrap_servers: str, timeout_seconds: float) -> list[str]:
    """Return the reason of each unreachable server, empty if one accepts connections."""
    failures = []
    for server in bootstrap_servers.split(","):
        host, _, port = server.rpartition(":")
        try:
            socket.create_connection((host.strip("[]"), int(port)), timeout=timeout_seconds).close()
        except (OSError, OverflowError) as error:
            failures.append(f"{server}: {error}")
        else:
            return []
    return failures


class KafkaReach:
    """Outages of each Kafka of the job, and of the source's topic.

    The log reports an outage at its beginning, once a minute, and at its end. `source_exists` returns whether the topic
    of `source` exists, if known. `answers` has a question by bootstrap servers, which only an answering broker affirms.
    """

    def __init__(
        self,
        addresses: Iterable[Address],
        source: str = "",
        source_exists: Callable[[], bool | None] = lambda: None,
        answers: Mapping[str, Callable[[], bool]] = MappingProxyType({}),
    ) -> None:
        kafkas = (address for address in addresses if isinstance(address, KafkaAddress))
        self._servers = sorted({address.bootstrap_servers for address in kafkas})
        self._source = source
        self._source_exists = source_exists
        self._answers = answers
        self._troubles: dict[str, _Trouble] = {}

    def is_away(self) -> bool:
        """Return whether a Kafka was out of reach at the last look."""
        return any(servers in self._troubles for servers in self._servers)

    def look(self) -> None:
        """Connect to each Kafka once, and ask it for an answer."""
        for servers in self._servers:
            self._note(servers, f"Kafka at {servers}", self._outage(servers), "is reached again")
        if (exists := None if self.is_away() else self._source_exists()) is not None:
            gone = (
                "does not exist, and no record arrives until `kontrast watch` creates it again. Find out who deleted it"
            )
            self._note(self._source, f"the topic of {self._source}", "" if exists else gone, "exists again")

    def _outage(self, servers: str) -> str:
        """Return the trouble with these servers, if there is any."""
        if failures := failed_connections(servers, _CONNECT_SECONDS):
            return f"is not reached ({'; '.join(failures)}), and no batch is done until it is back"
        if servers in self._answers and not self._answers[servers]():
            return "does not answer, though it accepts connections, and no batch is done until it answers"
        return ""

    @contextmanager
    def watched(self) -> Iterator[None]:
        """Look every other second while the body runs."""
        ended = threading.Event()
        thread = threading.Thread(target=self._look_until, args=(ended,), name="kafka-reach", daemon=True)
        if self._servers:
            thread.start()
        try:
            yield
        finally:
            ended.set()

    def _look_until(self, ended: threading.Event) -> None:
        while not ended.wait(_LOOK_SECONDS):
            self.look()

    def _note(self, key: str, subject: str, trouble: str, over: str) -> None:
        """Log a change of the subject's trouble. An empty text means that it is over."""
        now, known = time.monotonic(), self._troubles.get(key)
        if trouble and (known is None or now - known.logged_at >= _LOG_AGAIN_SECONDS):
            self._troubles[key] = _Trouble(known.since if known else now, now)
            logger.warning("%s %s", subject, trouble)
        elif not trouble and known is not None:
            del self._troubles[key]
            logger.warning("%s %s, after %.0f seconds", subject, over, now - known.since)


logger = logging.getLogger("kontrast.streaming")

_FIRST_PAUSE_SECONDS = 0.25
_LONGEST_PAUSE_SECONDS = 4.0
_DAEMON = "spark.python.use.daemon"


def read_records(session: SparkSession, config: StreamConfig, starts: Mapping[int, int]) -> DataFrame:
    """Return the source's records with the columns cluster, partition, offset, offsets and value.

    With null `offsets`, a value is one message at its offset. Otherwise it is many lines with these offsets. Each line
    goes to its cluster, or to the cluster "", whose replica rejects it. Lines before their partition's entry in
    `starts` are omitted.
    """
    if isinstance(config.source, JournalAddress):
        lines = _read_journal(session, config.source, config.max_batch_bytes, starts.get(0))
        return lines.select(
            "cluster", sql.lit(0).alias("partition"), sql.lit(-1).cast("bigint").alias("offset"), "offsets", "value"
        )
    reader = session.readStream.option("maxOffsetsPerTrigger", config.max_batch_records)
    # Numbers of records show a loss in Kafka.
    messages = kafka_messages(reader.option("failOnDataLoss", "false"), config)
    for partition, offset in starts.items():
        messages = messages.where((sql.col("partition") != partition) | (sql.col("offset") >= offset))
    cluster = sql.get_json_object(sql.col("value").cast("string"), "$.cluster")
    value = sql.coalesce("value", sql.lit(b""))  # Kafka has messages without a value
    offsets = sql.lit(None).cast("binary")
    return messages.select(
        sql.coalesce(cluster, sql.lit("")).alias("cluster"),
        "partition",
        "offset",
        offsets.alias("offsets"),
        value.alias("value"),
    )


def check_journal(address: JournalAddress) -> None:
    """Reject an unreadable journal. The query waits for a missing journal."""
    try:
        end_offset(address.directory)
    except JournalError as error:
        raise StreamError(str(error)) from error
    if not address.directory.exists():
        logger.info("%s does not exist yet. Waiting for `kontrast watch` to write it", address)


def wait_for_kafka(address: KafkaAddress, timeout_seconds: float, stop: threading.Event) -> None:
    """Wait until one of the servers accepts a connection or `stop` is set. Raise StreamError after the timeout."""
    deadline = time.monotonic() + timeout_seconds
    pause_seconds = _FIRST_PAUSE_SECONDS
    is_told = False
    while not stop.is_set():
        left_seconds = max(0.1, min(_LONGEST_PAUSE_SECONDS, deadline - time.monotonic()))
        failures = failed_connections(address.bootstrap_servers, left_seconds)
        if not failures:
            return
        if time.monotonic() >= deadline:
            raise StreamError(
                f"Kafka at {address.bootstrap_servers} was not reached in {timeout_seconds:g} seconds "
                f"({'; '.join(failures)}). Check the address and that the brokers run"
            )
        logger.log(
            logging.DEBUG if is_told else logging.WARNING,
            "Kafka at %s is not reached (%s), trying again for %g seconds",
            address.bootstrap_servers,
            "; ".join(failures),
            timeout_seconds,
        )
        is_told = True
        stop.wait(min(pause_seconds, max(0.0, deadline - time.monotonic())))
        pause_seconds = min(2 * pause_seconds, _LONGEST_PAUSE_SECONDS)


def kafka_messages(reader: DataStreamReader | DataFrameReader, config: StreamConfig) -> DataFrame:
    """Return the source's topic, from its beginning."""
    assert isinstance(config.source, KafkaAddress)
    return (
        reader.format("kafka")
        .options(**spark_options(config.source))
        # A pattern accepts topics that do not exist yet. It covers the whole name, because Spark searches for it
        # anywhere in a topic's name.
        .option("subscribePattern", f"^{re.escape(config.source.topic)}$")
        .option("startingOffsets", "earliest")
        .load()
    )


@contextlib.contextmanager
def _without_daemon(session: SparkSession) -> Iterator[None]:
    """Let Spark's Python processes end with their only task, instead of waiting with a parent for another task."""
    java: Any = session._jvm
    settings = java.org.apache.spark.SparkEnv.get().conf()
    before = settings.get(_DAEMON, "true")
    settings.set(_DAEMON, "false")
    try:
        yield
    finally:
        settings.set(_DAEMON, before)


def _read_journal(session: SparkSession, address: JournalAddress, max_batch_bytes: int, begin: int | None) -> DataFrame:
    session.dataSource.register(JournalDataSource)
    reader = session.readStream.format(JournalDataSource.name())
    if begin is not None:
        reader = reader.option("begin", begin)
    reader = reader.option("directory", str(address.directory.absolute())).option("max_batch_bytes", max_batch_bytes)
    with _without_daemon(session):
        return reader.load()
