"""Requests through Kafka's admin API, sent without waiting for their answers.

The client and its threads belong here. `actions` decides on the requests.
"""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

from kafka.admin import KafkaAdminClient

from lab.record.broker import RecordedBroker
from lab.record.steps import Steps

_TIMEOUT_MS = 10_000


class Admin:
    """An operator with several terminals, whose requests overlap, each over its own connection."""

    def __init__(self, brokers: list[RecordedBroker], steps: Steps) -> None:
        self._brokers = brokers
        self._steps = steps
        self._threads = ThreadPoolExecutor(4)

    def ask(self, step: str, request: Callable[[KafkaAdminClient], object], avoid: set[int]) -> None:
        """Send it through the running brokers, except those to avoid. The answer becomes a step."""
        addresses = [each.address for each in self._brokers if each.running and each.broker_id not in avoid]
        self._threads.submit(self._ask, step, request, addresses)

    def close(self) -> None:
        """Wait for all answers."""
        self._threads.shutdown()

    def _ask(self, step: str, request: Callable[[KafkaAdminClient], object], addresses: list[str]) -> None:
        try:
            client = KafkaAdminClient(
                bootstrap_servers=addresses, request_timeout_ms=_TIMEOUT_MS, bootstrap_timeout_ms=_TIMEOUT_MS
            )
            try:
                self._steps.note(f"{step}: sent")
                request(client)
                self._steps.note(f"{step}: done")
            finally:
                client.close()
        except Exception as error:  # a refusal is part of the recording, whatever the client makes from it
            self._steps.note(f"{step}: {type(error).__name__}", error=str(error)[:200])
