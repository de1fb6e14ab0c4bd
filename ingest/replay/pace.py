"""Pace of a replayed past, which decides when each record is due."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable

from controller.contract.ids import UNKNOWN_ZXID, Zxid
from controller.contract.records import Record


class Pace:
    """Pace of records at `speed` times the original, or infinite.

    Records before `from_zxid` are due at once. A late record does not delay later records. If the past's own clock was
    set back, the pace continues from there.
    """

    def __init__(
        self, speed: float, *, from_zxid: Zxid = UNKNOWN_ZXID, now_seconds: Callable[[], float] = time.monotonic
    ) -> None:
        self._speed = speed
        self._from_zxid = from_zxid
        self._now_seconds = now_seconds
        self._newest_ms: int | None = None
        self._due_seconds = 0.0

    def wait_seconds(self, record: Record) -> float:
        """Return the time until the next record is due, 0 if it is late."""
        if record.zxid < self._from_zxid:
            return 0.0
        if self._newest_ms is None:
            self._newest_ms, self._due_seconds = record.observed_ms, self._now_seconds()
        self._due_seconds += max(0, record.observed_ms - self._newest_ms) / 1000 / self._speed
        self._newest_ms = record.observed_ms
        return min(max(0.0, self._due_seconds - self._now_seconds()), threading.TIMEOUT_MAX)
