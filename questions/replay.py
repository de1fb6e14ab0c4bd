"""What a replay tells at its end: the phases of a migration to KRaft, the incidents, and the agreement."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final, NamedTuple

import msgspec

from controller.contract.alert_row import AlertRow, Severity
from controller.contract.gauges_row import Writes
from controller.contract.ids import NO_BROKER, BrokerId
from controller.contract.metadata_rows import BrokerRow, ControllerRow, MigrationRow
from controller.contract.row import Row
from controller.says.alert_kinds.partitions import PARTITIONS_LEADERLESS, PARTITIONS_OFFLINE
from controller.view.types import Header
from wording.said import Said, line
from wording.sentences import counted, listed, plural
from wording.times import duration, moment_in_utc

_UNUSABLE: Final = {PARTITIONS_OFFLINE.name, PARTITIONS_LEADERLESS.name}
_URGENCY: Final = {severity: place for place, severity in enumerate(reversed(Severity))}


def percent(agreement: float | None) -> str:
    """Return the agreement in per cent, rounded down so that 100 % means full agreement."""
    return "-" if agreement is None else f"{math.floor(round(agreement * 1_000, 6)) / 10:.1f} %"


class Agreement(NamedTuple):
    """Counts of the controller's writes by their explanation, and of the inferred ones by rule."""

    writes: Writes
    inferences: Mapping[str, int]

    @classmethod
    def so_far(cls, header: Header) -> Agreement:
        """Return the agreement since the cluster's state was created."""
        return cls(header.tally.writes, header.tally.happened.inferences)

    def since(self, earlier: Agreement) -> Agreement:
        """Return the agreement of the writes since `earlier`."""
        by_rule = Counter(self.inferences) - Counter(earlier.inferences)
        return Agreement(self.writes.since(earlier.writes), dict(by_rule))

    def fields(self) -> dict[str, Any]:
        """Return fields of the JSON object."""
        writes = msgspec.structs.asdict(self.writes)
        return {"writes": writes, "inferences": dict(self.inferences), "agreement": self.writes.agreement}

    def line(self) -> str:
        """Return a sentence with the count of each verdict, and of each rule, the most frequent first."""
        writes = self.writes
        total = writes.expected + writes.inferred + writes.unexplained
        if not total:
            return "no writes of the controller, and so no agreement"
        most_first = sorted(self.inferences.items(), key=lambda rule: (-rule[1], rule[0]))
        rules = ", ".join(f"{name.replace('-', ' ')} {count:,}" for name, count in most_first)
        return (
            f"{total:,} {plural(total, 'write', 'writes')} of the controller: {writes.expected:,} as expected, "
            f"{writes.inferred:,} explained by inference{f' ({rules})' if rules else ''}, "
            f"{writes.unexplained:,} unexplained: agreement {percent(writes.agreement)}"
        )


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


@dataclass(slots=True)
class _PhasePast:
    first: MigrationRow
    last: MigrationRow
    controller: ControllerRow | None  # when the phase began
    ended_ms: int | None = None

    @property
    def lasted_ms(self) -> int | None:
        return None if self.ended_ms is None else self.ended_ms - self.first.since_ms

    @property
    def led_by(self) -> str:
        row = self.first
        if row.leader != NO_BROKER:
            who = f"KRaft controller {row.leader}, KRaft epoch {row.kraft_epoch}"
        elif self.controller is not None and self.controller.broker != NO_BROKER:
            who = f"broker {self.controller.broker}"
        else:
            who = "no controller"
        return f"{who}, /controller_epoch {row.controller_epoch}"


class MigrationPast:
    """The phases of a migration, from the rows of a replay."""

    def __init__(self) -> None:
        self._phases: list[_PhasePast] = []
        self._controller: ControllerRow | None = None

    def take(self, row: Row) -> None:
        """Add a row."""
        if isinstance(row, ControllerRow):
            self._controller = row
        elif isinstance(row, MigrationRow):
            self._take(row)

    def _take(self, row: MigrationRow) -> None:
        now = self._phases[-1] if self._phases else None
        if now is not None and (now.first.phase, now.first.since_ms) == (row.phase, row.since_ms):
            now.last = row
            return
        if now is not None:
            now.ended_ms = row.since_ms
        self._phases.append(_PhasePast(row, row, self._controller))

    def objects(self) -> Iterator[dict[str, Any]]:
        """Yield an object per phase, with its way back at its end. The last phase has no `lasted_ms`."""
        for phase in self._phases:
            row = phase.first
            yield {
                "kind": "migration_phase",
                "zxid": f"{row.zxid:#x}",
                "time_ms": row.since_ms,
                "phase": row.phase,
                "lasted_ms": phase.lasted_ms,
                "led_by": phase.led_by,
                "offset": phase.last.offset,
                "rollback": phase.last.rollback,
                "rollback_sentence": phase.last.rollback_sentence,
            }

    def said(self) -> Said:
        """Yield a line for each phase and one for the end, if there is a migration."""
        if not self._phases:
            return
        yield line("the way to KRaft, by phase:")
        for phase in self._phases:
            row, lasted_ms = phase.first, phase.lasted_ms
            how_long = "goes on" if lasted_ms is None else duration(lasted_ms)
            began = f"{moment_in_utc(row.since_ms)}  {row.zxid:>#8x}"
            yield line(f"{began}  {how_long:>10}  {row.phase:<11}  {phase.led_by}")
        end = self._phases[-1].last
        offset = f" at offset {end.offset}" if end.offset >= 0 else ""
        yield line(f"it ended in phase {end.phase}{offset}; may I go back: {end.rollback_sentence}")
