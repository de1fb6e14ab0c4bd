"""Phases of a migration to KRaft, from the rows of a replay."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from controller.contract.ids import NO_BROKER
from controller.contract.metadata_rows import ControllerRow, MigrationRow
from controller.contract.row import Row
from wording.said import Said, line
from wording.times import duration, moment_in_utc


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
