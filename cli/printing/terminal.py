"""The lines and tables of answers on a terminal, in colours, wrapped, and with foreign text escaped."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Final

from rich.box import SIMPLE_HEAD
from rich.padding import Padding
from rich.table import Table as RichTable
from rich.text import Text

from transport.printable import printable
from wording.said import Line, Table

if TYPE_CHECKING:
    from rich.console import Console, ConsoleOptions, RenderableType

_STYLES: Final = {
    "strong": "bold",
    "page": "bold red",
    "wrong": "bold red",
    "warn": "yellow",
    "info": "cyan",
    "ok": "green",
    "unknown": "magenta",
}
_LEAST_WIDTH: Final = 120  # columns of a terminal that has room for a row in one line
_GAP: Final = "  "


def renderable(said: Line | Table) -> RenderableType:
    """Return the line or table for rich."""
    if isinstance(said, Table):
        return _FittedTable(said)
    text = Text()
    for part in said.parts:
        words, meaning = (part, "") if isinstance(part, str) else part
        text.append(printable(words), style=_STYLES.get(meaning, ""))
    return Padding(text, (0, 0, 0, said.indent), expand=False) if said.indent else text


def lines_of_a_row(width: int) -> int:
    """Return the lines that a row of a table with columns below takes in this width, if its cells are cut."""
    return 1 if width >= _LEAST_WIDTH else 2


class _FittedTable:
    """A table, with its last columns below the others if it has such and the terminal is narrow."""

    def __init__(self, table: Table) -> None:
        self._table = table
        self._rows = [[_cell(cell) for cell in row] for row in table.rows]

    def __rich_console__(self, _console: Console, options: ConsoleOptions) -> Iterator[RenderableType]:
        """Return the table in the width of the console."""
        below, is_cut = self._table.below, self._table.is_cut
        if not below or lines_of_a_row(options.max_width) == 1:
            yield self._whole()
            return
        firsts = [row[:-below] for row in self._rows]
        heads = [Text(column, style="bold") for column in self._table.columns[:-below]]
        widths = [max(cell.cell_len for cell in column) for column in zip(heads, *firsts, strict=True)]
        yield _aligned(heads, widths)
        for row, first in zip(self._rows, firsts, strict=True):
            yield _aligned(first, widths)
            rest = Text(": ").join(cell for cell in row[-below:] if cell)
            if rest:
                rest.no_wrap, rest.overflow = is_cut, "ellipsis" if is_cut else "fold"
                yield Padding(rest, (0, 0, 0, len(_GAP)))

    def _whole(self) -> RichTable:
        columns, is_cut = self._table.columns, self._table.is_cut
        table = RichTable(box=SIMPLE_HEAD, pad_edge=False, show_edge=False, expand=is_cut)
        for column, share in zip(columns, (*[None] * (len(columns) - 2), 1, 3), strict=True):
            table.add_column(column, no_wrap=is_cut, ratio=share if is_cut else None)
        for row in self._rows:
            table.add_row(*row)
        return table


def _aligned(cells: Sequence[Text], widths: Sequence[int]) -> Text:
    padded = (cell + Text(" " * (width - cell.cell_len)) for cell, width in zip(cells, widths, strict=True))
    line = Text(_GAP).join(padded)
    line.rstrip()
    return line


def _cell(text: str) -> Text:
    return Text(printable(text), style=_STYLES.get(text, ""))
