"""Comparison of the forwarders' clocks with the job's, so that a wrong or stepped clock does not look like a late job.

A batch that took all records ends with a fresh record, so its time allows a comparison. A backlog, or the last records
of a forwarder that ended, do not.
"""

from __future__ import annotations

import time
from typing import NamedTuple

from controller.contract.job_row import CLOCKS_AGREE_WITHIN_MS
from streaming.published import Observed


class ClockReading(NamedTuple):
    """Both clocks of the job at one moment."""

    wall_ms: int
    steady_ms: int

    @classmethod
    def now(cls) -> ClockReading:
        """Read both clocks."""
        return cls(time.time_ns() // 1_000_000, time.monotonic_ns() // 1_000_000)


class _Comparison(NamedTuple):
    generation: int
    behind_ms: int  # the forwarder's wall clock
    steady_apart_ms: int  # the job's steady clock minus the forwarder's. A step of a wall clock does not change it

    def agrees(self, other: _Comparison | None) -> bool:
        return (
            other is not None
            and self.generation == other.generation
            and abs(self.behind_ms - other.behind_ms) <= CLOCKS_AGREE_WITHIN_MS
            and abs(self.steady_apart_ms - other.steady_apart_ms) <= CLOCKS_AGREE_WITHIN_MS
        )


class ForwarderClocks:
    """The forwarders' clocks as far as they are known, by cluster."""

    def __init__(self) -> None:
        self._seen: dict[str, _Comparison] = {}
        self._agreed: dict[str, _Comparison] = {}

    def compare(self, cluster: str, planned_ms: int, last: Observed, now: ClockReading) -> None:
        """Compare the clocks by a batch that was planned at this wall time, and took all records up to the last.

        Two consecutive batches must agree. One may contain the last records of an ended forwarder, or see a clock step.
        """
        behind_ms = planned_ms - last.wall_ms
        ahead_ms, forwarder_ahead_ms = now.wall_ms - now.steady_ms, last.wall_ms - last.steady_ms
        apart_ms = forwarder_ahead_ms + _if_wrong(behind_ms) - ahead_ms if last.steady_ms >= 0 else 0
        comparison = _Comparison(last.generation, behind_ms, apart_ms)
        if comparison.agrees(self._seen.get(cluster)):
            self._agreed[cluster] = comparison
        self._seen[cluster] = comparison

    def behind_ms(self, cluster: str) -> int:
        """Return how many ms the forwarder's wall clock is behind the job's, 0 if they agree or it is unknown."""
        agreed = self._agreed.get(cluster)
        return _if_wrong(agreed.behind_ms) if agreed else 0

    def lag_ms(self, cluster: str, first: Observed, written: ClockReading) -> int:
        """Return the time from a record's observation until its rows were written.

        The steady clocks give it once they were compared, and the wall clocks before.
        """
        agreed = self._agreed.get(cluster)
        if agreed and agreed.generation == first.generation and first.steady_ms >= 0:
            return max(0, written.steady_ms - first.steady_ms - agreed.steady_apart_ms)
        return max(0, written.wall_ms - first.wall_ms - self.behind_ms(cluster))


def _if_wrong(behind_ms: int) -> int:
    return behind_ms if abs(behind_ms) > CLOCKS_AGREE_WITHIN_MS else 0
