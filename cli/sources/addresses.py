"""Options that name a stream."""

from __future__ import annotations

import click

from transport.address import Address, AddressError, parse_address


def read_address(_ctx: click.Context, _param: click.Parameter, text: str | None) -> Address | None:
    """Return the given address, if any. Raise BadParameter."""
    try:
        return None if text is None else parse_address(text)
    except AddressError as error:
        raise click.BadParameter(f"{error}.") from error
