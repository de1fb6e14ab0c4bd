"""Print tables: as wide as the terminal and in colours on one, plain lines without trailing blanks elsewhere."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Sequence
from typing import Final

import click
from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.table import Table
from rich.text import Text

_UNBOUNDED: Final = 10_000  # columns where nobody's terminal ends
_COLOURS: Final = {"page": "bold red", "warn": "yellow", "wrong": "bold red", "ok": "green", "unknown": "magenta"}


def table_of(columns: Sequence[str], rows: Iterable[Sequence[str]], *, is_one_line_a_row: bool = False) -> Table:
    """A table of texts; a cell that is one of the words of trouble has its colour.

    With one line a row, what is too long for the terminal is cut in the last two columns, which get what is left.
    """
    table = Table(box=SIMPLE_HEAD if sys.stdout.isatty() else None, pad_edge=False, show_edge=False)
    table.expand = is_one_line_a_row
    for column, share in zip(columns, (*[None] * (len(columns) - 2), 1, 3), strict=True):
        table.add_column(column, no_wrap=is_one_line_a_row, ratio=share if is_one_line_a_row else None)
    for row in rows:
        table.add_row(*(Text(cell, style=_COLOURS.get(cell, "")) for cell in row))
    return table


def print_table(columns: Sequence[str], rows: Iterable[Sequence[str]]) -> None:
    """Print the table to standard output."""
    table = table_of(columns, rows)
    if sys.stdout.isatty():
        Console().print(table)
        return
    console = Console(width=_UNBOUNDED, color_system=None, force_terminal=False)
    with console.capture() as captured:
        console.print(table)
    for line in captured.get().splitlines():
        click.echo(line.rstrip())


def age_of(seconds: float) -> str:
    """A time that has passed, in the two largest units."""
    left = max(0, int(seconds))
    parts: list[str] = []
    for unit, size in (("d", 86_400), ("h", 3_600), ("m", 60), ("s", 1)):
        count, left = divmod(left, size)
        if count or parts or unit == "s":
            parts.append(f"{count}{unit}")
    return " ".join(parts[:2])
