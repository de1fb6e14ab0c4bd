"""Forms of values on the command line: durations, lists of ids, moments of a history, and a chroot."""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import timedelta
from typing import TYPE_CHECKING, Any, Final, TypeVar

import click

from controller.contract.ids import BrokerId, Zxid
from questions.moments import read_moment, read_zxid

if TYPE_CHECKING:
    from ingest.files.data_directory import Until

HIGHEST_ID: Final = 2**31 - 1  # Kafka's ids are of 32 bits
_MOST_DIGITS: Final = len(str(HIGHEST_ID))


def read_ids(_ctx: click.Context, _param: click.Parameter, text: str | None) -> tuple[BrokerId, ...]:
    """Return the ids of a list like 1,2,3, each once, in order. Raise BadParameter."""
    if text is None:
        return ()
    parts = [part.strip() for part in text.split(",") if part.strip()]
    if not parts or not all(map(_is_id, parts)):
        raise click.BadParameter(f"{text!r} is no list of ids. Write 1,2,3 (an id is at most {HIGHEST_ID}).")
    return tuple(dict.fromkeys(BrokerId(int(part)) for part in parts))


def _is_id(text: str) -> bool:
    is_number = text.isascii() and text.isdecimal() and len(text) <= _MOST_DIGITS
    return is_number and int(text) <= HIGHEST_ID


_DURATION: Final = re.compile(r"(?:(?P<days>\d+)d)?(?:(?P<hours>\d+)h)?(?:(?P<minutes>\d+)m)?(?:(?P<seconds>\d+)s)?")
_LONGEST: Final = timedelta(days=366)


class Duration(click.ParamType[timedelta]):
    """A positive duration of at most a year."""

    name = "duration"

    def convert(self, value: object, param: click.Parameter | None, ctx: click.Context | None) -> timedelta:
        """Parse the text, or fail with the reason in a sentence."""
        match = _DURATION.fullmatch(str(value))
        if match is None or not any(match.groups()):
            self.fail(f"{value!r} is not a duration. Write it like 30m, 2h or 1h30m", param, ctx)
        try:
            duration = timedelta(**{unit: int(count) for unit, count in match.groupdict(default="0").items()})
        except OverflowError:
            duration = _LONGEST * 2
        if not timedelta(0) < duration <= _LONGEST:
            self.fail(f"{value!r} must be positive and at most {_LONGEST.days} days", param, ctx)
        return duration


_Command = TypeVar("_Command", bound="Callable[..., Any] | click.Command")


class ZxidParameter(click.ParamType[Zxid]):
    """A zxid as ZooKeeper's tools write it."""

    name = "ZXID"

    def convert(self, value: object, param: click.Parameter | None, ctx: click.Context | None) -> Zxid:
        """Return the zxid, or fail for an invalid zxid."""
        try:
            return read_zxid(str(value))
        except ValueError as error:
            self.fail(f"{error}.")


class MomentParameter(click.ParamType["Until"]):
    """A zxid or a time."""

    name = "ZXID|TIME"

    def convert(self, value: object, param: click.Parameter | None, ctx: click.Context | None) -> Until:
        """Return the end of a history, or fail for an invalid text."""
        from ingest.files.data_directory import Until  # not for --help

        if not isinstance(value, str):
            assert isinstance(value, Until)
            return value
        try:
            return Until(*read_moment(value))
        except ValueError as error:
            self.fail(f"{error}.")


def _check_chroot(_ctx: click.Context, _param: click.Parameter, chroot: str) -> str:
    """Return the given chroot. Raise BadParameter."""
    if not chroot.startswith("/"):
        raise click.BadParameter(f"{chroot!r} does not begin with /.")
    return chroot


def chroot_option(says: str) -> Callable[[_Command], _Command]:
    """Return a decorator that adds an option for the chroot in ZooKeeper's files, with this help."""
    return click.option("--chroot", default="/", callback=_check_chroot, metavar="PATH", show_default=True, help=says)
