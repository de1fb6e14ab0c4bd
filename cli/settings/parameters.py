"""Forms of values on the command line: durations, lists of ids, moments of a history, and ZooKeeper's files."""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, TypeVar

import click

from controller.contract.ids import BrokerId
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
_Value = TypeVar("_Value")
_Command = TypeVar("_Command", bound="Callable[..., Any] | click.Command")


class Parsed(click.ParamType[_Value]):
    """A value that `read` makes of a text. It refuses a text by ValueError, in a sentence without its full stop."""

    def __init__(self, name: str, read: Callable[[str], _Value]) -> None:
        self.name = name
        self._read = read

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> _Value:  # noqa: ANN401 (click's own)
        """Return the value, or fail with the reason in a sentence."""
        try:
            found: _Value = self._read(value) if isinstance(value, str) else value
        except ValueError as error:
            self.fail(f"{error}.", param, ctx)
        return found


def _read_duration(text: str) -> timedelta:
    match = _DURATION.fullmatch(text)
    if match is None or not any(match.groups()):
        raise ValueError(f"{text!r} is not a duration. Write it like 30m, 2h or 1h30m")
    try:
        duration = timedelta(**{unit: int(count) for unit, count in match.groupdict(default="0").items()})
    except OverflowError:
        duration = _LONGEST * 2
    if not timedelta(0) < duration <= _LONGEST:
        raise ValueError(f"{text!r} must be positive and at most {_LONGEST.days} days")
    return duration


def _read_until(text: str) -> Until:
    from ingest.files.data_directory import Until  # not for --help

    return Until(*read_moment(text))


DURATION: Final = Parsed("duration", _read_duration)
ZXID: Final = Parsed("ZXID", read_zxid)
MOMENT: Final = Parsed("ZXID|TIME", _read_until)


def _check_chroot(_ctx: click.Context, _param: click.Parameter, chroot: str) -> str:
    """Return the given chroot. Raise BadParameter."""
    if not chroot.startswith("/"):
        raise click.BadParameter(f"{chroot!r} does not begin with /.")
    return chroot


def chroot_option(says: str) -> Callable[[_Command], _Command]:
    """Return a decorator that adds an option for the chroot in ZooKeeper's files, with this help."""
    return click.option("--chroot", default="/", callback=_check_chroot, metavar="PATH", show_default=True, help=says)


def files_option(says: str, *, required: bool = False) -> Callable[[_Command], _Command]:
    """Return a decorator that adds an option for the directories of a ZooKeeper server, with this help."""
    path = click.Path(path_type=Path)
    return click.option(
        "--zk-data", "directories", type=path, multiple=True, required=required, metavar="DIR", help=says
    )
