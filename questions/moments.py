"""Moments as people write them: a zxid, a time, a time of day, or an age."""

from __future__ import annotations

import re
from datetime import datetime, time, timedelta, timezone
from typing import Final, NamedTuple

from controller.contract.ids import Zxid
from controller.contract.records import LATEST_MS

TIMES: Final = "14:03, yesterday 22:00, -15m, 2024-05-01T03:12:00Z, or milliseconds since 1970"
"""The forms of a time, for help texts and refusals."""

_UNITS_MS: Final = {"m": 60_000, "h": 3_600_000, "d": 86_400_000, "w": 7 * 86_400_000}
_AGE: Final = re.compile(r"([1-9][0-9]{0,5})([mhdw])")
_MOST_DIGITS: Final = len(str(LATEST_MS))
_TIME_OF_DAY: Final = re.compile(r"(?:(today|yesterday) )?([0-9]{2}:[0-9]{2}(?::[0-9]{2})?)")


class GivenMoment(NamedTuple):
    """A moment of a history, a zxid or milliseconds since 1970."""

    zxid: Zxid | None = None
    time_ms: int | None = None


def read_moment(text: str) -> GivenMoment:
    """Return the moment that the text names. Raise ValueError with a sentence."""
    if text.startswith("0x"):
        return GivenMoment(zxid=read_zxid(text))
    try:
        time_ms = moment_ms(text, datetime.now(timezone.utc))
    except ValueError:
        raise ValueError(f"{text!r} is neither a zxid (0x1f) nor a time ({TIMES})") from None
    if not 0 <= time_ms <= LATEST_MS:
        raise ValueError(f"{text!r} is not within the years 1970 to 9999 in UTC")
    return GivenMoment(time_ms=time_ms)


def read_zxid(text: str) -> Zxid:
    """Return the zxid, as ZooKeeper's tools write it. Raise ValueError with a sentence."""
    try:
        if text.startswith("0x"):
            return Zxid(int(text.removeprefix("0x"), 16))
    except ValueError:
        pass
    raise ValueError(f"{text!r} is not a zxid. Write it as ZooKeeper does, for example 0x1f")


def moment_ms(text: str, now: datetime) -> int:
    """Return the moment in milliseconds since 1970. Raise ValueError.

    A time of day is the newest one that is past. Times are in UTC, unless they end with "local" or have an offset.
    """
    if text.isascii() and text.isdigit():
        return int(text) if len(text) <= _MOST_DIGITS else LATEST_MS + 1
    age = _AGE.fullmatch(text.removeprefix("-")) if text.startswith("-") else None
    if age is not None:
        return round(now.timestamp() * 1000) - int(age[1]) * _UNITS_MS[age[2]]
    said = text.removesuffix(" local")
    found = _TIME_OF_DAY.fullmatch(said)
    if found is None:
        moment = datetime.fromisoformat(said[:-1] + "+00:00" if said.endswith("Z") else said)
    else:
        today = (now.astimezone() if said != text else now).date()
        moment = datetime.combine(today, time.fromisoformat(found[2]))
        if found[1] == "yesterday":
            moment -= timedelta(days=1)
    if moment.tzinfo is None:
        moment = moment.astimezone() if said != text else moment.replace(tzinfo=timezone.utc)
    if found is not None and found[1] is None and moment > now:
        moment -= timedelta(days=1)
    return round(moment.timestamp() * 1000)
