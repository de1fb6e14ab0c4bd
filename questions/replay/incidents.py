"""Incidents of a replay, one line each, with time, duration and worst alert."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from controller.contract.alert_kinds.partitions import PARTITIONS_LEADERLESS, PARTITIONS_OFFLINE
from controller.contract.alert_row import AlertRow, Severity
from controller.contract.ids import BrokerId
from controller.contract.metadata_rows import BrokerRow
from wording.said import Said, line
from wording.sentences import counted, listed
from wording.times import duration, moment_in_utc

_UNUSABLE: Final = {PARTITIONS_OFFLINE.name, PARTITIONS_LEADERLESS.name}
_URGENCY: Final = {severity: place for place, severity in enumerate(reversed(Severity))}


class Incidents:
    """Incidents from rows. Overlapping alerts of one group are one incident."""

    def __init__(self) -> None:
        self._newest: dict[str, _Incident] = {}  # by group
        self._all: list[_Incident] = []
        self._racks: dict[BrokerId, str] = {}

    def take_broker(self, row: BrokerRow) -> None:
        """Note the broker's rack, which its row may lack while the broker is away."""
        if row.rack is not None:
            self._racks[row.broker] = row.rack

    def take(self, row: AlertRow) -> None:
        """Add an alert's row."""
        if row.severity is Severity.INFO:
            return
        incident = self._newest.get(row.group)
        if incident is None or (incident.is_over and not row.ends_subject):
            incident = self._newest[row.group] = _Incident()
            self._all.append(incident)
        incident.take(row)

    def said(self) -> Said:
        """Yield a line with the count of incidents, then one line an incident, the oldest first."""
        yield line(f"{counted(len(self._all), 'incident')}{':' if self._all else ''}")
        for incident in sorted(self._all, key=lambda incident: incident.began_ms):
            yield line(f"{moment_in_utc(incident.began_ms)}  {incident.words(self._racks)}")


class _Incident:
    def __init__(self) -> None:
        self.began_ms = 0
        self._peaks: dict[str, AlertRow] = {}  # by alert, its worst row
        self._brokers: set[BrokerId] = set()
        self._ended_ms: dict[str, int] = {}

    @property
    def is_over(self) -> bool:
        return self._peaks.keys() <= self._ended_ms.keys()

    def take(self, row: AlertRow) -> None:
        self.began_ms = min(self.began_ms, row.since_ms) if self._peaks else row.since_ms
        self._brokers.update(row.brokers)
        peak = self._peaks.setdefault(row.id, row)
        if row.ends_subject:
            self._ended_ms[row.id] = row.time_ms
            return
        self._ended_ms.pop(row.id, None)
        if _badness(row) >= _badness(peak):
            self._peaks[row.id] = row

    def words(self, racks: dict[BrokerId, str]) -> str:
        lasted = duration(max(self._ended_ms.values(), default=0) - self.began_ms)
        how_long = lasted if self.is_over else "not over"
        worst = max(
            self._peaks.values(), key=lambda row: (_URGENCY[row.severity], row.alert in _UNUSABLE, *_badness(row))
        )
        others = len(self._peaks) - 1
        beside = [*self._several_brokers(racks), *([f"and {counted(others, 'more alert')}"] if others else [])]
        said = f"{worst.severity.value:<4}  {worst.alert}: {worst.cause}"
        together = f" ({'; '.join(beside)})" if beside else ""
        return f"{how_long:>10}  {said}{together}"

    def _several_brokers(self, racks: dict[BrokerId, str]) -> Iterator[str]:
        if len(self._brokers) > 1:
            found = {racks.get(broker) for broker in self._brokers}
            rack = f", rack {found.pop()}" if len(found) == 1 and None not in found else ""
            yield f"{listed(self._brokers)}{rack}"


def _badness(row: AlertRow) -> tuple[int, int]:
    return _URGENCY[row.severity], row.partitions
