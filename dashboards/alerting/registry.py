"""What every Alertmanager is to know: the alerts that stand, and those that have ended not long ago.

Here belongs how an alert that was told comes to its end: by a row that says so, because it goes on under other labels,
or because nobody who is certain has mentioned it for a while. Telling is `sender`'s business.
"""

from __future__ import annotations

import threading
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from controller.contract.alert_row import AlertRow, Severity
from dashboards.alerting.active_alerts import Source, Standing, source_of
from dashboards.alerting.config import OWN_LABELS, AlertmanagerConfig
from dashboards.alerting.message import ALERT_ID, Labels, Message, message_of

# An output that begins anew mentions for a moment nothing of what stands; only a longer silence is an end.
_UNMENTIONED_MS = 60_000

_Subject = tuple[str, Source, str]  # cluster, who says it, the alert's id


@dataclass(slots=True)
class _Told:
    subject: _Subject
    message: Message
    unmentioned_since_ms: int | None = None  # by the steady clock


@dataclass(frozen=True, slots=True)
class _Built:
    row: AlertRow
    certain: bool
    message: Message


class Book:
    """The messages as they are now; one thread writes, any thread reads."""

    def __init__(self, config: AlertmanagerConfig) -> None:
        self._config = config
        self._lock = threading.Lock()
        self._built: dict[_Subject, _Built] = {}
        self._heard: tuple[Standing, ...] | None = None
        self._mentioned: dict[Labels, _Told] = {}
        self._missed: dict[Labels, _Told] = {}  # told, and not mentioned now
        self._ended: dict[Labels, tuple[Message, int]] = {}  # and when it was written here, by the steady clock
        self._messages: tuple[Message, ...] | None = None
        self._standing: dict[str, list[Message]] | None = None  # made when it is asked for

    def messages(self) -> tuple[Message, ...] | None:
        """All of them; None until it is known what stands."""
        with self._lock:
            return self._messages

    def standing(self) -> Mapping[str, Sequence[Message]]:
        """Those of each cluster that are not over, as far as anybody knows: what pages first, then the oldest."""
        with self._lock:
            if self._standing is None:
                found: dict[str, list[Message]] = {}
                for message in sorted(self._messages or (), key=_pages_first):
                    if message.ended_ms is None:
                        found.setdefault(message.label("kafka_cluster"), []).append(message)
                self._standing = found
            return self._standing

    def update(self, standings: Iterable[Standing], now_ms: int, steady_ms: int) -> None:
        """Take in what is said now, by the wall clock and a steady one; costs next to nothing while nothing is new."""
        heard = tuple(standings)
        with self._lock:
            if heard != self._heard:
                self._heard = heard
                self._mention(heard)
            elif not (self._missed or self._ended) and self._messages is not None:
                return
            by_source = {(standing.cluster, standing.source): standing for standing in heard}
            for labels, told in list(self._missed.items()):
                cluster, source, _ = told.subject
                self._miss(labels, told, by_source.get((cluster, source)), now_ms, steady_ms)
            keep_ms = int(self._config.resolve_timeout_seconds * 1000)
            self._ended = {k: (message, at) for k, (message, at) in self._ended.items() if steady_ms - at < keep_ms}
            told_now = (told.message for held in (self._mentioned, self._missed) for told in held.values())
            messages = (*told_now, *(message for message, _ in self._ended.values()))
            if messages != self._messages:  # the same object says that nothing has changed
                self._messages, self._standing = messages, None

    def adopt(self, found: Iterable[Message]) -> None:
        """Go on with alerts that an Alertmanager has from before this process began, until it is known if they stand.

        What has not the same external labels is somebody else's.
        """
        with self._lock:
            for message in found:
                cluster, alert_id = message.label("kafka_cluster"), dict(message.annotations).get(ALERT_ID)
                others = {name: value for name, value in message.labels if name not in OWN_LABELS}
                if alert_id is None or others != self._config.external_labels:
                    continue
                if not any(message.labels in held for held in (self._mentioned, self._missed, self._ended)):
                    subject = (cluster, source_of(message.label("alertname")), alert_id)
                    self._missed[message.labels] = _Told(subject, message)

    def _mention(self, standings: Iterable[Standing]) -> None:
        mentioned: dict[Labels, _Told] = {}
        built: dict[_Subject, _Built] = {}
        for standing in standings:
            for alert_id, row in standing.alerts.items():
                subject = (standing.cluster, standing.source, alert_id)
                known = self._built.get(subject)
                # Building the messages of thousands of alerts anew each time would cost more than all the rest.
                if known is None or known.row is not row or known.certain is not standing.certain:
                    message = message_of(row, self._config)
                    known = _Built(row, standing.certain, message if standing.certain else message.unknown())
                built[subject] = known
                # Of two with the same labels, which are one for Alertmanager, the older holds.
                mentioned.setdefault(known.message.labels, _Told(subject, known.message))
        self._built = built
        self._missed = {k: told for k, told in {**self._missed, **self._mentioned}.items() if k not in mentioned}
        self._ended = {k: ended for k, ended in self._ended.items() if k not in mentioned}
        self._mentioned = mentioned

    def _miss(self, labels: Labels, told: _Told, standing: Standing | None, now_ms: int, steady_ms: int) -> None:  # noqa: PLR0913 (one call)
        """An alert that was told is not among those that stand."""
        if standing is None:  # nobody will say any more: Alertmanager's time-out ends it
            del self._missed[labels]
            return
        alert_id = told.subject[2]
        if not standing.certain:
            told.message = told.message.unknown()
            told.unmentioned_since_ms = None
            return
        ending = standing.resolved.get(alert_id)
        if told.unmentioned_since_ms is None:
            told.unmentioned_since_ms = steady_ms
        is_silent = steady_ms - told.unmentioned_since_ms >= _UNMENTIONED_MS
        by_nature = standing.source is Source.STALENESS  # which is judged anew each time
        if ending or alert_id in standing.alerts or is_silent or by_nature:
            del self._missed[labels]
            self._ended[labels] = (_ended(told.message, ending, now_ms), steady_ms)


def _pages_first(message: Message) -> tuple[bool, int]:
    return message.severity is not Severity.PAGE, message.since_ms


def _ended(message: Message, ending: AlertRow | None, now_ms: int) -> Message:
    annotated = message.annotated(state="resolved")
    if ending is None:
        return replace(annotated, ended_ms=now_ms)
    return replace(annotated.annotated(description=ending.cause), ended_ms=min(now_ms, ending.time_ms))
