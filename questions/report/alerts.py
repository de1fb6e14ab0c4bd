"""Number and duration of alerts of each kind, from the alerts' rows."""

from __future__ import annotations

from typing import Final

import msgspec

from controller.contract.alert_row import AlertRow, Severity
from questions.picture import WORST_FIRST

_RESOLVED: Final = "resolved"


class AlertSpan(msgspec.Struct, array_like=True):
    """An alert's open time. The end is None while it is open."""

    alert: str
    severity: Severity  # the worst that it had
    opened_ms: int
    resolved_ms: int | None = None


class Alerts:
    """The alerts' rows as they come."""

    def __init__(self) -> None:
        self.spans: list[AlertSpan] = []
        self._open: dict[str, tuple[AlertRow, AlertSpan]] = {}
        self._voided: dict[str, tuple[AlertRow, AlertSpan]] = {}

    def take(self, row: AlertRow) -> None:
        """Note an alert's beginning or end."""
        voided = self._voided.pop(row.id, None)
        if voided is not None and voided[0].since_ms == row.since_ms:
            voided[1].resolved_ms = None
            self._open[row.id] = voided
        if row.state == _RESOLVED:
            if row.id in self._open:
                self._open.pop(row.id)[1].resolved_ms = row.time_ms
            return
        if row.id not in self._open:
            self._open[row.id] = row, AlertSpan(row.alert, row.severity, row.time_ms)
            self.spans.append(self._open[row.id][1])
        span = self._open[row.id][1]
        span.severity = min(span.severity, row.severity, key=WORST_FIRST.__getitem__)

    def begin(self, at_ms: int) -> None:
        """End the open alerts. Those that are still open follow again."""
        for _, span in self._open.values():
            span.resolved_ms = at_ms
        self._voided, self._open = self._open, {}
