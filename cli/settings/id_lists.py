"""Options that list ids of nodes."""

from __future__ import annotations

from typing import Final

import click

from controller.contract.ids import BrokerId

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
