"""Newest description of the ZooKeeper ensemble, and the pace of the numbers that approach a limit."""

from __future__ import annotations

from typing import Final

import msgspec

from controller.contract.ensemble import Ensemble
from controller.contract.ids import UNKNOWN_ZXID, Zxid

# A burst of new topics is no pace. Windows of 10 to 20 minutes outlast the creation of some thousand topics.
_WINDOW_MS: Final = 10 * 60_000
_MEASURED_FOR_MS: Final = 5 * 60_000


class Pace(msgspec.Struct, frozen=True, array_like=True):
    """Growth of a number, from the begin of the present window and of the one before."""

    since_ms: int
    value: int
    before_ms: int = -1
    before: int = 0

    def followed_by(self, value: int, now_ms: int) -> Pace:
        """Return the pace with the newest value. A smaller value starts a new window."""
        if value < self.value:
            return Pace(now_ms, value)
        if now_ms - self.since_ms >= _WINDOW_MS:
            return Pace(now_ms, value, self.since_ms, self.value)
        return self

    def until_ms(self, limit: int, value: int, now_ms: int) -> int | None:
        """Return the milliseconds until the limit at this pace. Return None without growth or too early."""
        began_ms, began = (self.since_ms, self.value) if self.before_ms < 0 else (self.before_ms, self.before)
        grown = value - began
        if grown <= 0 or now_ms - began_ms < _MEASURED_FOR_MS:
            return None
        return max(0, limit - value) * (now_ms - began_ms) // grown


class EnsembleState(msgspec.Struct, array_like=True):
    """Newest description, and its history as far as conditions need it."""

    newest: Ensemble = Ensemble()
    leader_zxid_before: Zxid = UNKNOWN_ZXID  # in the description before
    zxid: Zxid = UNKNOWN_ZXID  # the newest known
    zxid_pace: Pace = Pace(0, 0)
    znode_paces: dict[str, Pace] = {}  # by path
