"""Make tables with foreign text escaped."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final

from rich.box import SIMPLE_HEAD
from rich.table import Table
from rich.text import Text

from cli.printing.standard_output import is_terminal
from transport.printable import printable

_COLOURS: Final = {"page": "bold red", "warn": "yellow", "wrong": "bold red", "ok": "green", "unknown": "magenta"}


def table_of(columns: Sequence[str], rows: Iterable[Sequence[str]], *, is_one_line_a_row: bool = False) -> Table:
    """Return a table of texts. Words of trouble have their colour.

    With one line per row, the last two columns are cut to the width of the terminal.
    """
    table = Table(box=SIMPLE_HEAD if is_terminal() else None, pad_edge=False, show_edge=False)
    table.expand = is_one_line_a_row
    for column, share in zip(columns, (*[None] * (len(columns) - 2), 1, 3), strict=True):
        table.add_column(column, no_wrap=is_one_line_a_row, ratio=share if is_one_line_a_row else None)
    for row in rows:
        table.add_row(*(Text(printable(cell), style=_COLOURS.get(cell, "")) for cell in row))
    return table
