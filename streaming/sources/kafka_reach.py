"""Log an outage or silence of an address's Kafka, or a deleted source topic, because Spark retries silently.

`wait_for_kafka` waits at the start. This module checks during the query.
"""

from __future__ import annotations

import logging
import socket
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from types import MappingProxyType
from typing import NamedTuple

from transport.address import Address, KafkaAddress

logger = logging.getLogger("kontrast.streaming")

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
