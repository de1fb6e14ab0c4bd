"""Options that name a moment of a history, and the znode below which a cluster is."""

from __future__ import annotations

import re
from datetime import datetime, timezone
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
        if value.isascii() and value.isdigit():
            time_ms = int(value) if len(value) <= _MOST_DIGITS else LATEST_MS + 1
        else:
            try:
                moment = datetime.fromisoformat(value[:-1] + "+00:00" if value.endswith("Z") else value)
            except ValueError:
                self.fail(
                    f"{value!r} is neither a zxid (0x1f) nor a time (2024-05-01T03:12:00Z, or milliseconds since 1970)."
                )
            time_ms = round((moment if moment.tzinfo else moment.replace(tzinfo=timezone.utc)).timestamp() * 1000)
        if not 0 <= time_ms <= LATEST_MS:
            self.fail(f"{value!r} is not within the years 1970 to 9999 in UTC.")
        return Until(time_ms=time_ms)


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
