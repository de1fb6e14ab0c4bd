"""Request a complete read from `kontrast watch`, where the source has lost records.

`controller.step` finds by the records' numbers that something is missing.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Mapping

from py4j.protocol import Py4JJavaError
from pyspark.errors.exceptions.base import PySparkException
from pyspark.sql import SparkSession, functions as sql

from streaming.kafka_options import spark_options
from transport.address import Address, JournalAddress
from transport.journal import JournalError
from transport.topics import request_complete_read, request_topic

_LOG = logging.getLogger("kontrast.streaming")

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
        _LOG.warning(
            "%s: records of %s were lost. Output is paused until a complete read arrives (requested)",
            self._source,
            ", ".join(sorted(due)),
        )
        try:
            self._request()
        except (JournalError, PySparkException, Py4JJavaError) as error:
            _LOG.warning("a complete read could not be requested, restart `kontrast watch` instead: %s", error)

    def _request(self) -> None:
        if isinstance(self._source, JournalAddress):
            request_complete_read(self._source.directory)
            return
        message = self._session.range(0, 1, 1, 1).select(sql.lit("a complete read, please").alias("value"))
        writer = message.write.format("kafka").options(**spark_options(self._source))
        # By default Kafka's producer waits a minute for a missing topic, and the job would wait with it.
        writer.option("kafka.max.block.ms", _LONGEST_WAIT_MS).option("topic", request_topic(self._source)).save()
