"""Asking `kontrast watch` for a complete read, where the source has lost what came before.

Here belongs when and how it is asked. That something is missing is found by `controller.step`, in the records' numbers.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Collection

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


class Asking:
    """Asks the source's writers for a complete read, and again while none has come."""

    def __init__(self, session: SparkSession, source: Address) -> None:
        self._session = session
        self._source = source
        self._asked_at = float("-inf")

    def look(self, lacking: Collection[str]) -> None:
        """Ask if there are clusters of which records are missing, unless it was asked a short while ago."""
        if not lacking or time.monotonic() - self._asked_at < _ASK_AGAIN_SECONDS:
            return
        self._asked_at = time.monotonic()
        _LOG.warning(
            "%s lacks records of %s: a complete read is asked for, until then nothing is said of it",
            self._source,
            ", ".join(sorted(lacking)),
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
