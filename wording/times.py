"""Durations and moments for people: one format of a duration, and moments in UTC to the second."""

from __future__ import annotations

from datetime import datetime, timezone
from typing import Final

_SECOND_MS: Final = 1_000
_TENTHS_BELOW_MS: Final = 10 * _SECOND_MS
_DAY_MS: Final = 86_400_000
_UNITS: Final = (("d", _DAY_MS), ("h", 3_600_000), ("min", 60_000), ("s", _SECOND_MS))
_LATEST_MS: Final = 253_402_300_799_999  # the end of the year 9999, after which Python's datetime has no time


def duration(ms: float, units: int = 2) -> str:
    """Return a duration in its largest units: 43 ms, 1.2 s, 42 s, 17 min 3 s, 2 h, 3 d 4 h.

    The duration is rounded down, and below zero it is 0 s. To show only whole seconds, pass whole seconds.
    """
    left = max(0, int(ms))
    if 0 < left < _SECOND_MS:
        return f"{left} ms"
    if left < _TENTHS_BELOW_MS:
        return f"{left // 100 / 10:g} s"
    parts: list[tuple[int, str]] = []
    for unit, size in _UNITS:
        count, left = divmod(left, size)
        if count or parts:
            parts.append((count, unit))
    return " ".join(f"{count} {unit}" for count, unit in parts[:units] if count)


def moment(ms: int) -> str:
    """Return a moment since 1970 to the second: 2026-11-24 22:13:59Z."""
    return f"{_utc(ms):%Y-%m-%d %H:%M:%S}Z"


def exact_moment(ms: int) -> str:
    """Return a moment since 1970 to the millisecond: 2026-11-24 22:13:59.120Z."""
    return f"{moment_in_utc(ms)}Z"


def moment_in_utc(ms: int) -> str:
    """Return a moment since 1970 for a column in which all are in UTC: 2026-11-24 22:13:59.120."""
    return f"{_utc(ms):%Y-%m-%d %H:%M:%S}.{_utc(ms).microsecond // 1_000:03}"


def rfc3339(ms: int) -> str:
    """Return a moment since 1970 as machines read it: 2026-11-24T22:13:59.120Z."""
    return exact_moment(ms).replace(" ", "T")


def time_of_day(ms: int) -> str:
    """Return the time of day of a moment since 1970: 22:13:59Z."""
    return f"{_utc(ms):%H:%M:%S}Z"


def near(ms: int, as_of_ms: int) -> str:
    """Return the time of day, or the whole moment if it is a day or more from `as_of_ms`."""
    return time_of_day(ms) if abs(as_of_ms - ms) < _DAY_MS else moment(ms)


def age(ms: int, as_of_ms: int) -> str:
    """Return how long ago a moment was, in whole seconds."""
    return duration((as_of_ms - ms) // _SECOND_MS * _SECOND_MS)


def lasting(ms: int | None, as_of_ms: int, *, exact: bool = True) -> str:
    """Return how long something has lasted: for 17 min 3 s, since 2026-11-24 22:13:59Z.

    If the beginning is not exact, the text shows that it may be earlier. None is an unknown beginning.
    """
    if ms is None:
        return "since an unknown time"
    return f"for {'' if exact else 'at least '}{age(ms, as_of_ms)}, since {moment(ms)}"


def _utc(ms: int) -> datetime:
    return datetime.fromtimestamp(min(max(ms, 0), _LATEST_MS) / _SECOND_MS, timezone.utc)
