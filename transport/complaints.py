"""Log one line a minute about the same trouble, however often it comes."""

from __future__ import annotations

import time

_PAUSE_SECONDS = 60.0


class Complaints:
    """Number of occurrences of one trouble since its last log line, for one thread."""

    def __init__(self) -> None:
        self._count = 0
        self._next_at = 0.0

    def due(self) -> int:
        """Count an occurrence. Return the number since the last log line, or 0 if the next log line is not due yet."""
        self._count += 1
        if time.monotonic() < self._next_at:
            return 0
        count, self._count = self._count, 0
        self._next_at = time.monotonic() + _PAUSE_SECONDS
        return count
