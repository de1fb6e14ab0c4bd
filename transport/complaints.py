"""Log one line a minute about the same trouble, however often it comes."""

from __future__ import annotations

import time

_PAUSE_SECONDS = 60.0


class Complaints:
    """The number of times that one trouble has come since it was last logged; for one thread."""

    def __init__(self) -> None:
        self._count = 0
        self._next_at = 0.0

    def due(self) -> int:
        """Count it once more: how often it came since the last complaint, or 0 while it is too early for the next."""
        self._count += 1
        if time.monotonic() < self._next_at:
            return 0
        count, self._count = self._count, 0
        self._next_at = time.monotonic() + _PAUSE_SECONDS
        return count
