"""Options that name a moment of a history, and the znode below which a cluster is."""

from __future__ import annotations

import re
from datetime import datetime, time, timedelta, timezone
from typing import TYPE_CHECKING, Any, Final, TypeVar

import click

from controller.contract.ids import Zxid
from controller.contract.records import LATEST_MS

if TYPE_CHECKING:
    from collections.abc import Callable

    from ingest.files.data_directory import Until

_Command = TypeVar("_Command", bound="Callable[..., Any] | click.Command")


class ZxidParameter(click.ParamType[Zxid]):
    """A zxid as ZooKeeper's tools write it."""

    name = "ZXID"

    def convert(self, value: object, param: click.Parameter | None, ctx: click.Context | None) -> Zxid:
        """Return the zxid, or fail for an invalid zxid."""
        text = str(value)
        try:
            return Zxid(int(text.removeprefix("0x"), 16)) if text.startswith("0x") else self.fail(_not_a_zxid(text))
        except ValueError:
            self.fail(_not_a_zxid(text))


class MomentParameter(click.ParamType["Until"]):
    """A zxid or a time."""

    name = "ZXID|TIME"

    def convert(self, value: object, param: click.Parameter | None, ctx: click.Context | None) -> Until:
        """Return the end, or fail for an invalid one."""
        from ingest.files.data_directory import Until  # not for --help

        if not isinstance(value, str):
            assert isinstance(value, Until)
            return value
        if value.startswith("0x"):
            return Until(zxid=ZxidParameter().convert(value, param, ctx))
        try:
            time_ms = moment_ms(value, datetime.now(timezone.utc))
        except ValueError:
            self.fail(f"{value!r} is neither a zxid (0x1f) nor a time ({TIMES}).")
        if not 0 <= time_ms <= LATEST_MS:
            self.fail(f"{value!r} is not within the years 1970 to 9999 in UTC.")
        return Until(time_ms=time_ms)


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


class Ago(click.ParamType[int]):
    """A time, or an age before the end of a window, in milliseconds. An age is below zero."""

    name = "AGE|TIME"

    def convert(self, value: object, param: click.Parameter | None, ctx: click.Context | None) -> int:
        """Return the moment, or fail for an invalid one."""
        if isinstance(value, int):
            return value
        found = _AGE.fullmatch(str(value))
        if found is not None:
            return -int(found[1]) * _UNITS_MS[found[2]]
        if str(value).startswith("0x"):
            self.fail(f"{value!r} is a zxid, and each cluster counts its own. Give a time.")
        time_ms = MomentParameter().convert(value, param, ctx).time_ms
        assert time_ms is not None, "only a zxid has no time"
        return time_ms


_MOST_DIGITS: Final = len(str(LATEST_MS))
_UNITS_MS: Final = {"m": 60_000, "h": 3_600_000, "d": 86_400_000, "w": 7 * 86_400_000}
_AGE: Final = re.compile(r"([1-9][0-9]{0,5})([mhdw])")
_TIME_OF_DAY: Final = re.compile(r"(?:(today|yesterday) )?([0-9]{2}:[0-9]{2}(?::[0-9]{2})?)")
TIMES: Final = "14:03, yesterday 22:00, -15m, 2024-05-01T03:12:00Z, or milliseconds since 1970"
"""The forms of a time, for help texts and refusals."""


def _not_a_zxid(text: str) -> str:
    return f"{text!r} is not a zxid. Write it as ZooKeeper does, for example 0x1f."


def _check_chroot(_ctx: click.Context, _param: click.Parameter, chroot: str) -> str:
    """Return the given chroot. Raise BadParameter."""
    if not chroot.startswith("/"):
        raise click.BadParameter(f"{chroot!r} does not begin with /.")
    return chroot


def chroot_option(says: str) -> Callable[[_Command], _Command]:
    """Option for the chroot in ZooKeeper's files, with this help."""
    return click.option("--chroot", default="/", callback=_check_chroot, metavar="PATH", show_default=True, help=says)
