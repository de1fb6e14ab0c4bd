"""Options that name a moment of a history, and the znode below which a cluster is."""

from __future__ import annotations

from datetime import datetime, timezone
from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from ingest.files.data_directory import Until


class Zxid(click.ParamType[int]):
    """A zxid as ZooKeeper's tools write it."""

    name = "ZXID"

    def convert(self, value: object, param: click.Parameter | None, ctx: click.Context | None) -> int:
        """The number; fails for what is no zxid."""
        text = str(value)
        try:
            return int(text.removeprefix("0x"), 16) if text.startswith("0x") else self.fail(_not_a_zxid(text))
        except ValueError:
            self.fail(_not_a_zxid(text))


class Moment(click.ParamType["Until"]):
    """A zxid or a time."""

    name = "ZXID|TIME"

    def convert(self, value: object, param: click.Parameter | None, ctx: click.Context | None) -> Until:
        """The end that is meant; fails for what is neither."""
        from ingest.files.data_directory import Until  # not for --help

        if not isinstance(value, str):
            assert isinstance(value, Until)
            return value
        if value.startswith("0x"):
            return Until(zxid=Zxid().convert(value, param, ctx))
        if value.isascii() and value.isdigit():
            return Until(time_ms=int(value))
        try:
            moment = datetime.fromisoformat(value[:-1] + "+00:00" if value.endswith("Z") else value)
        except ValueError:
            self.fail(
                f"{value!r} is neither a zxid (0x1f) nor a time (2024-05-01T03:12:00Z, or milliseconds since 1970)."
            )
        return Until(
            time_ms=round((moment if moment.tzinfo else moment.replace(tzinfo=timezone.utc)).timestamp() * 1000)
        )


def _not_a_zxid(text: str) -> str:
    return f"{text!r} is no zxid: write it as ZooKeeper does, for example 0x1f."


def check_chroot(_ctx: click.Context, _param: click.Parameter, chroot: str) -> str:
    """The chroot as it is given; raises BadParameter."""
    if not chroot.startswith("/"):
        raise click.BadParameter(f"{chroot!r} does not begin with /.")
    return chroot
