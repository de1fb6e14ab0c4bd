"""The forwarder's two clocks, the wall clock and a steady one.

Their readings are taken together, so that their difference changes only if the wall clock was set.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Final

# Repeat a reading that takes longer than this (ms), because a thread may stop between the two clocks.
_READ_WITHIN_MS: Final = 10

_MS_IN_NS: Final = 1_000_000


def boot_time_ns() -> int:
    """Return the time since the machine was started, also while it was suspended, where the system has that clock."""
    clock = getattr(time, "CLOCK_BOOTTIME", None)
    return time.monotonic_ns() if clock is None else time.clock_gettime_ns(clock)


class Clocks:
    """Both clocks in ms. `wall_ns` and `steady_ns` read them."""

    def __init__(self, wall_ns: Callable[[], int] = time.time_ns, steady_ns: Callable[[], int] = boot_time_ns) -> None:
        self._wall_ns = wall_ns
        self._steady_ns = steady_ns
        self._ahead_ms: int | None = None  # the wall clock

    def read(self) -> tuple[int, int]:
        """Return the wall clock since 1970, and the steady clock since an unknown moment.

        Their difference stays constant until it exceeds the error of the readings, after NTP's slewing or a step.
        """
        while True:
            before_ns = self._steady_ns()
            wall_ns = self._wall_ns()
            if self._steady_ns() - before_ns <= _READ_WITHIN_MS * _MS_IN_NS:
                break
        steady_ms, ahead_ms = before_ns // _MS_IN_NS, (wall_ns - before_ns) // _MS_IN_NS
        if self._ahead_ms is None or abs(ahead_ms - self._ahead_ms) > _READ_WITHIN_MS:
            self._ahead_ms = ahead_ms
        return max(0, steady_ms + self._ahead_ms), steady_ms
