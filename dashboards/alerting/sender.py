"""Sender of the registry's messages to one Alertmanager, which repeats, retries and counts them.

Each Alertmanager has a sender and a thread of its own, so that a dead Alertmanager does not delay the others.
"""

from __future__ import annotations

import logging
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from enum import Enum
from types import MappingProxyType

from dashboards.alerting.alertmanager import Alertmanager, NoAlertmanagerError, RefusedError
from dashboards.alerting.config import AlertmanagerConfig
from dashboards.alerting.message import Labels, Message
from dashboards.alerting.registry import AlertRegistry
from dashboards.catalogue import pipeline_metrics
from dashboards.catalogue.families import Sample, TableCollector, value_of
from dashboards.catalogue.metric import Metric

_LOOK_SECONDS = 0.1
# While a broker returns, its alert changes several times within milliseconds. One message suffices.
_SETTLE_SECONDS = 1.0
_FIRST_RETRY_SECONDS = 0.5
_LONGEST_RETRY_SECONDS = 15.0
_ALERTS_A_REQUEST = 200

_logger = logging.getLogger("kontrast.dashboards")


class Result(Enum):
    """Result of sending an alert."""

    ACCEPTED = "accepted"
    REFUSED = "refused"  # the Alertmanager rejects them
    FAILED = "failed"  # no answer, so the sender retries


class Sender:
    """Delivery to one Alertmanager. Any thread may read the counts."""

    def __init__(self, alertmanager: Alertmanager, config: AlertmanagerConfig, registry: AlertRegistry) -> None:
        self.url = alertmanager.url
        self.results: Counter[Result] = Counter(dict.fromkeys(Result, 0))
        self.is_up: bool | None = None  # None before the first attempt
        self.delivered_ms = 0  # when the Alertmanager last accepted a message, since 1970, or 0
        self._alertmanager = alertmanager
        self._config = config
        self._registry = registry
        self._sent: dict[Labels, tuple[Message, float]] = {}  # with the time, by the steady clock
        self._known: set[Labels] = set()  # alerts that this sender sent, or found in the Alertmanager
        self._found: frozenset[Labels] = frozenset()  # alerts in the Alertmanager at the start
        self._changed_at: dict[Labels, float] = {}  # when a message began to differ from the sent one
        self._done: tuple[Message, ...] | None = None  # the registry's messages, if all of them were sent
        self._resend_at = 0.0  # when the oldest message must be repeated
        self._asked = False  # whether the Alertmanager was asked for alerts of an earlier process
        self._check_at = 0.0  # when to check again that an Alertmanager answers
        self._failing_since: float | None = None
        self._retry_seconds = _FIRST_RETRY_SECONDS

    def run(self, stop: threading.Event) -> None:
        """Send until `stop`. Active alerts are not resolved then, but end by the Alertmanager's time-out."""
        while not stop.is_set():
            wait_seconds = _LOOK_SECONDS
            try:
                self._work()
            except (NoAlertmanagerError, RefusedError) as error:
                self._complain(error)
                wait_seconds = self._retry_seconds
                self._retry_seconds = min(2 * self._retry_seconds, _LONGEST_RETRY_SECONDS)
            stop.wait(wait_seconds)

    def _work(self) -> None:
        messages = self._registry.messages()
        if messages is None:
            return
        if not self._asked:
            # Alerts in the Alertmanager may have ended while no exporter ran.
            found = self._alertmanager.alerts()
            self._registry.adopt(found)
            self._found = frozenset(message.labels for message in found)
            self._known.update(self._found)
            self._asked = True
            self._answered_as_alertmanager()
        if messages is self._done and time.monotonic() < self._resend_at:
            return
        due = self._due([message for message in messages if self._is_told(message)])
        if time.monotonic() >= self._check_at:
            # The answer to sent alerts is empty, so only this check shows that an Alertmanager answers.
            with self._counting_failures(due):
                self._alertmanager.check()
            self._answered_as_alertmanager()
        for start in range(0, len(due), _ALERTS_A_REQUEST):
            self._send(due[start : start + _ALERTS_A_REQUEST])
        known = {message.labels for message in messages}
        self._known &= known | self._found
        self._sent = {labels: sent for labels, sent in self._sent.items() if labels in known}
        self._changed_at = {labels: at for labels, at in self._changed_at.items() if labels in known}
        self._done = None if self._changed_at else messages
        oldest = min((sent_at for _, sent_at in self._sent.values()), default=time.monotonic())
        self._resend_at = oldest + self._config.resend_interval_seconds

    def _answered_as_alertmanager(self) -> None:
        self._check_at = time.monotonic() + self._config.resend_interval_seconds
        self._recover()

    def _is_told(self, message: Message) -> bool:
        """Return whether the message may be sent. The end of an alert that was never sent would be news to people."""
        return message.ended_ms is None or message.labels in self._known

    def _due(self, messages: Sequence[Message]) -> list[Message]:
        now = time.monotonic()
        # A broker that joins an incident is a new message, so the alert's new sentence need not wait.
        opens = any(message.labels not in self._sent for message in messages)
        due = []
        for message in messages:
            sent, sent_at = self._sent.get(message.labels, (None, 0.0))
            is_news = sent is not message and sent != message
            if is_news and not opens and sent is not None and message.ended_ms is None and sent.ended_ms is None:
                changed_at = self._changed_at.setdefault(message.labels, now)
                is_news = now - changed_at >= _SETTLE_SECONDS
            if is_news or now - sent_at >= self._config.resend_interval_seconds:
                due.append(message)
            elif sent == message:
                self._changed_at.pop(message.labels, None)
        return due

    def _send(self, messages: Sequence[Message]) -> None:
        result = Result.ACCEPTED
        try:
            with self._counting_failures(messages):
                self._alertmanager.send(messages, time.time_ns() // 1_000_000)
        except RefusedError as error:
            if not error.in_part:
                raise
            _logger.warning("Alertmanager rejected some alerts: %s", error)
            result = Result.REFUSED
        sent_at = time.monotonic()
        self._sent.update({message.labels: (message, sent_at) for message in messages})
        self._known.update(message.labels for message in messages)
        for message in messages:
            self._changed_at.pop(message.labels, None)
        if result is Result.ACCEPTED:
            self.results[result] += len(messages)
        self.delivered_ms = time.time_ns() // 1_000_000
        self._recover()

    @contextmanager
    def _counting_failures(self, messages: Sequence[Message]) -> Iterator[None]:
        try:
            yield
        except RefusedError:
            self.results[Result.REFUSED] += len(messages)
            raise
        except NoAlertmanagerError:
            self.results[Result.FAILED] += len(messages)
            raise

    def _complain(self, error: Exception) -> None:
        self.is_up = False
        # The Alertmanager may have restarted and lost all alerts, so send everything again.
        self._sent.clear()
        self._changed_at.clear()
        self._done = None
        self._check_at = 0.0
        if self._failing_since is None:
            self._failing_since = time.monotonic()
            _logger.warning("cannot deliver alerts, retrying: %s", error)

    def _recover(self) -> None:
        self.is_up = True
        self._retry_seconds = _FIRST_RETRY_SECONDS
        if self._failing_since is not None:
            _logger.warning(
                "delivers alerts to %s again after %.1f s", self.url, time.monotonic() - self._failing_since
            )
            self._failing_since = None


# The samples of each metric for one Alertmanager.
_SAMPLES: Mapping[Metric, Callable[[Sender], Iterable[Sample]]] = MappingProxyType(
    {
        pipeline_metrics.ALERT_DELIVERIES: lambda sender: [
            ((result.value,), count) for result, count in sender.results.items()
        ],
        pipeline_metrics.ALERTMANAGER_UP: value_of(lambda sender: sender.is_up),
        pipeline_metrics.ALERTMANAGER_LAST_DELIVERY: value_of(lambda sender: sender.delivered_ms / 1000 or None),
    }
)


def delivery_collector(senders: Sequence[Sender]) -> TableCollector[Sender]:
    """Return a collector of the counts of these senders."""
    return TableCollector(_SAMPLES, lambda: [((sender.url,), sender) for sender in senders])
