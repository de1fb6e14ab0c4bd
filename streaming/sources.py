"""Where the records come from: a journal or a Kafka topic, as one table of Spark.

Here belong the reading ends, the wait until they can be reached, and the routing of a line to its cluster.
"""

from __future__ import annotations

import logging
import re
import socket
import threading
import time

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as sql

from streaming.config import StreamConfig
from streaming.errors import StreamError
from streaming.journal_source import JournalDataSource
from transport.address import JournalAddress, KafkaAddress
from transport.journal import JournalError, end_offset

logger = logging.getLogger("kontrast.streaming")

_FIRST_PAUSE_SECONDS = 0.25
_LONGEST_PAUSE_SECONDS = 4.0


def read_records(session: SparkSession, config: StreamConfig) -> DataFrame:
    """The lines of the source with the columns cluster, partition, offset and value.

    A line goes to the cluster that it names; one that names none goes to the cluster "", whose replica refuses it.
    """
    if isinstance(config.source, JournalAddress):
        lines = _read_journal(session, config.source, config.max_batch_bytes)
    else:
        lines = _read_kafka(session, config.source, config.max_batch_records)
    cluster = sql.get_json_object(sql.col("value").cast("string"), "$.cluster")
    value = sql.coalesce("value", sql.lit(b""))  # Kafka has messages without a value
    return lines.select(
        sql.coalesce(cluster, sql.lit("")).alias("cluster"), "partition", "offset", value.alias("value")
    )


def check_journal(address: JournalAddress) -> None:
    """Refuse a journal that cannot be read; one that is not there yet is waited for by the query."""
    try:
        end_offset(address.directory)
    except JournalError as error:
        raise StreamError(str(error)) from error
    if not address.directory.exists():
        logger.info("%s does not exist yet: waiting for `kontrast watch` to write it", address)


def wait_for_kafka(address: KafkaAddress, timeout_seconds: float, stop: threading.Event) -> None:
    """Return when one of the servers accepts a connection or `stop` is set; raises StreamError after the timeout."""
    deadline = time.monotonic() + timeout_seconds
    pause_seconds = _FIRST_PAUSE_SECONDS
    while not stop.is_set():
        failures = []
        for server in address.bootstrap_servers.split(","):
            host, _, port = server.rpartition(":")
            left_seconds = max(0.1, min(_LONGEST_PAUSE_SECONDS, deadline - time.monotonic()))
            try:
                socket.create_connection((host.strip("[]"), int(port)), timeout=left_seconds).close()
                return
            except (OSError, OverflowError) as error:
                failures.append(f"{server}: {error}")
        if time.monotonic() >= deadline:
            raise StreamError(
                f"Kafka at {address.bootstrap_servers} was not reached in {timeout_seconds:g} seconds "
                f"({'; '.join(failures)}): check the address and that the brokers run"
            )
        logger.warning("Kafka at %s is not reached (%s), trying again", address.bootstrap_servers, "; ".join(failures))
        stop.wait(min(pause_seconds, max(0.0, deadline - time.monotonic())))
        pause_seconds = min(2 * pause_seconds, _LONGEST_PAUSE_SECONDS)


def _read_journal(session: SparkSession, address: JournalAddress, max_batch_bytes: int) -> DataFrame:
    session.dataSource.register(JournalDataSource)
    return (
        session.readStream.format(JournalDataSource.name())
        .option("directory", str(address.directory.absolute()))
        .option("max_batch_bytes", max_batch_bytes)
        .load()
    )


def _read_kafka(session: SparkSession, address: KafkaAddress, max_batch_records: int) -> DataFrame:
    return (
        session.readStream.format("kafka")
        .option("kafka.bootstrap.servers", address.bootstrap_servers)
        # A pattern, because a topic that does not exist yet is no error for it.
        .option("subscribePattern", re.escape(address.topic))
        .option("startingOffsets", "earliest")
        .option("failOnDataLoss", "true")
        .option("maxOffsetsPerTrigger", max_batch_records)
        .load()
    )
