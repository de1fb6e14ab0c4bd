"""Options that name a moment of a history, and a cluster's chroot."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeVar

import click

from controller.contract.ids import Zxid
from questions.moments import read_moment, read_zxid

if TYPE_CHECKING:
    from collections.abc import Callable

    from ingest.files.data_directory import Until

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
