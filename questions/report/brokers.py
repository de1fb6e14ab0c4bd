"""Departures of each broker, their kind, and its absence, from the brokers' rows."""

from __future__ import annotations

import msgspec

from controller.contract.ids import BrokerId
from controller.contract.metadata_rows import BrokerRow
from questions.report.seen_time import Level, rise


class BrokerTime(msgspec.Struct, array_like=True):
    """Moments at which a broker left or came back, and the time that it was away."""

    crashes_ms: list[int] = []
    shutdowns_ms: list[int] = []
    bounces_ms: list[int] = []  # it registered again without having been missed
    away: Level = {}
    unknown_ms: list[int] = []  # the row of an older Kontrast does not show how it left


class Brokers:
    """The brokers' rows as they come."""

    def __init__(self) -> None:
        self.time: dict[BrokerId, BrokerTime] = {}
        self._newest: dict[BrokerId, BrokerRow] = {}

    def take(self, row: BrokerRow) -> None:
        """Note a broker's end, return or bounce."""
        time = self.time.setdefault(row.broker, BrokerTime())
        before = self._newest.pop(row.broker, None)
        was_away = before is not None and _is_away(before)
        if was_away != _is_away(row):
            rise(time.away, row.time_ms, 1 if _is_away(row) else -1)
        if before is not None and before.registered:
            if not (row.registered or row.inferred):
                _departures(time, row).append(row.time_ms)
            elif row.registered and row.epoch != before.epoch:
                time.bounces_ms.append(row.time_ms)
        if not row.forgotten:
            self._newest[row.broker] = row

    def begin(self, at_ms: int) -> None:
        """Forget the brokers. The current ones follow again."""
        for broker, row in self._newest.items():
            if _is_away(row):
                rise(self.time[broker].away, at_ms, -1)
        self._newest.clear()


def _departures(time: BrokerTime, row: BrokerRow) -> list[int]:
    """Return the departures of the row's kind."""
    if row.left_in_order is None:
        return time.unknown_ms
    return time.shutdowns_ms if row.left_in_order else time.crashes_ms


def _is_away(row: BrokerRow) -> bool:
    return not (row.registered or row.inferred or row.forgotten)
