"""Log an outage of an address's Kafka and its end, because Spark retries silently.

`wait_for_kafka` waits at the start. This module checks during the query.
"""

from __future__ import annotations

import logging
import socket
import threading
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager

from transport.address import Address, KafkaAddress

logger = logging.getLogger("kontrast.streaming")

_LOOK_SECONDS = 2.0
_CONNECT_SECONDS = 2.0


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
    """Outages of each Kafka of the job. One line is logged at the beginning, and one at the end."""

    def __init__(self, addresses: Iterable[Address]) -> None:
        kafkas = (address for address in addresses if isinstance(address, KafkaAddress))
        self._servers = sorted({address.bootstrap_servers for address in kafkas})
        self._away_since: dict[str, float] = {}

    def look(self) -> None:
        """Connect to each once."""
        for servers in self._servers:
            failures = failed_connections(servers, _CONNECT_SECONDS)
            if failures and servers not in self._away_since:
                self._away_since[servers] = time.monotonic()
                logger.warning(
                    "Kafka at %s is not reached any more (%s): no batch is done until it is back",
                    servers,
                    "; ".join(failures),
                )
            elif not failures and servers in self._away_since:
                away_seconds = time.monotonic() - self._away_since.pop(servers)
                logger.warning("Kafka at %s is reached again, after %.0f seconds", servers, away_seconds)

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
