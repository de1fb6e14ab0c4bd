"""Make tables with foreign text escaped. On a narrow terminal, a row of many columns takes two lines."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Final

from rich.box import SIMPLE_HEAD
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from cli.printing.standard_output import is_terminal
from transport.printable import printable

if TYPE_CHECKING:
    from rich.console import Console, ConsoleOptions, RenderableType

_COLOURS: Final = {"page": "bold red", "warn": "yellow", "wrong": "bold red", "ok": "green", "unknown": "magenta"}
_LEAST_WIDTH: Final = 120  # columns of a terminal that has room for a row in one line
_GAP: Final = "  "


def table_of(columns: Sequence[str], rows: Iterable[Sequence[str]]) -> Table:
    """Return a table of texts, in which words of trouble are coloured."""
    return _table(columns, [[_cell(cell) for cell in row] for row in rows], is_cut=False)


def lines_of_a_row(width: int) -> int:
    """Return the lines that a row of a stacked table takes in this width, if its cells are cut."""
    return 1 if width >= _LEAST_WIDTH else 2


class StackedTable:
    """A table whose last columns are a second line of each row on a narrow terminal, so that no cell is squeezed.

    With `is_cut`, cells do not wrap, and the last two are cut to the width of the terminal.
    """

    def __init__(
        self, columns: Sequence[str], rows: Iterable[Sequence[str]], below: int, *, is_cut: bool = False
    ) -> None:
        self._columns = columns
        self._rows = [[_cell(cell) for cell in row] for row in rows]
        self._below = below
        self._is_cut = is_cut

    def __rich_console__(self, _console: Console, options: ConsoleOptions) -> Iterator[RenderableType]:
        """Return the table in the width of the console."""
        if lines_of_a_row(options.max_width) == 1:
            yield _table(self._columns, self._rows, is_cut=self._is_cut)
            return
        firsts = [row[: -self._below] for row in self._rows]
        heads = [Text(column, style="bold") for column in self._columns[: -self._below]]
        widths = [max(cell.cell_len for cell in column) for column in zip(heads, *firsts, strict=True)]
        yield _aligned(heads, widths)
        for row, first in zip(self._rows, firsts, strict=True):
            yield _aligned(first, widths)
            rest = Text(": ").join(cell for cell in row[-self._below :] if cell)
            if rest:
                rest.no_wrap, rest.overflow = self._is_cut, "ellipsis" if self._is_cut else "fold"
                yield Padding(rest, (0, 0, 0, len(_GAP)))


def _aligned(cells: Sequence[Text], widths: Sequence[int]) -> Text:
    padded = (cell + Text(" " * (width - cell.cell_len)) for cell, width in zip(cells, widths, strict=True))
    line = Text(_GAP).join(padded)
    line.rstrip()
    return line


def _table(columns: Sequence[str], rows: Iterable[Sequence[Text]], *, is_cut: bool) -> Table:
    table = Table(box=SIMPLE_HEAD if is_terminal() else None, pad_edge=False, show_edge=False)
    table.expand = is_cut
    for column, share in zip(columns, (*[None] * (len(columns) - 2), 1, 3), strict=True):
        table.add_column(column, no_wrap=is_cut, ratio=share if is_cut else None)
    for row in rows:
        table.add_row(*row)
    return table


def _cell(text: str) -> Text:
    return Text(printable(text), style=_COLOURS.get(text, ""))
