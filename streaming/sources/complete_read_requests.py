"""Asking `kontrast watch` for a complete read, where the source has lost what came before.

Here belongs when and how it is asked. That something is missing is found by `controller.step`, in the records' numbers.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Mapping

from py4j.protocol import Py4JJavaError
from pyspark.errors.exceptions.base import PySparkException
from pyspark.sql import SparkSession
from pyspark.sql import functions as sql

from transport.address import Address, JournalAddress
from transport.journal import JournalError
from transport.wanted import want_snapshot, wanted_topic

_LOG = logging.getLogger("kontrast.streaming")

_ASK_AGAIN_SECONDS = 30.0
_LONGEST_WAIT_MS = 5000

# For a cluster that fails over every complete read it is asked less and less often: each read is one of all clusters of
# the stream. What made it fail may be gone from ZooKeeper at any time, so it is never given up.
_LONGEST_WAIT_SECONDS = 3_600.0


def wait_seconds(failures: int) -> float:
    """How long after it was asked for one the next complete read is, of a cluster that failed so often in a row."""
    return min(_ASK_AGAIN_SECONDS * 2.0 ** min(max(0, failures - 1), 32), _LONGEST_WAIT_SECONDS)


class Asking:
    """Asks the source's writers for a complete read, and again while none has come."""

    def __init__(self, session: SparkSession, source: Address) -> None:
        self._session = session
        self._source = source
        self._asked_at: dict[str, float] = {}  # for each cluster

    def look(self, lacking: Mapping[str, int]) -> None:
        """Ask if there are clusters of which records are missing, unless it was asked a short while ago.

        Their failures in a row say how long that is.
        """
        now = time.monotonic()
        due = [
            cluster
            for cluster, failures in lacking.items()
            if now - self._asked_at.get(cluster, float("-inf")) >= wait_seconds(failures)
        ]
        if not due:
            return
        self._asked_at.update(dict.fromkeys(due, now))
        _LOG.warning(
            "%s lacks records of %s: a complete read is asked for, until then nothing is said of it",
            self._source,
            ", ".join(sorted(due)),
        )
        try:
            self._ask()
        except (JournalError, PySparkException, Py4JJavaError) as error:
            _LOG.warning("a complete read could not be asked for, restart `kontrast watch` instead: %s", error)

    def _ask(self) -> None:
        if isinstance(self._source, JournalAddress):
            want_snapshot(self._source.directory)
            return
        message = self._session.range(0, 1, 1, 1).select(sql.lit("a complete read, please").alias("value"))
        servers = self._source.bootstrap_servers
        writer = message.write.format("kafka").option("kafka.bootstrap.servers", servers)
        # Kafka's producer waits a minute for a topic that is not there, and the job with it.
        writer.option("kafka.max.block.ms", _LONGEST_WAIT_MS).option("topic", wanted_topic(self._source)).save()
