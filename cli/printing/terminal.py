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


class _FittedTable:
    """A table, with its last columns below the others if it has such and the terminal is narrow."""

    def __init__(self, table: Table) -> None:
        self._table = table
        self._rows = [[_cell(cell) for cell in row] for row in table.rows]

    def __rich_console__(self, _console: Console, options: ConsoleOptions) -> Iterator[RenderableType]:
        """Return the table in the width of the console."""
        below = self._table.below
        if not below or options.max_width >= _LEAST_WIDTH:
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
                yield Padding(rest, (0, 0, 0, len(_GAP)))

    def _whole(self) -> RichTable:
        table = RichTable(*self._table.columns, box=SIMPLE_HEAD, pad_edge=False, show_edge=False)
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
