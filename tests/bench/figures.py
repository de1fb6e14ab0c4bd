"""Measured figures and their tables."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from rich.table import Table


@dataclass(frozen=True, slots=True)
class Figure:
    """One measured figure, and its goal."""

    name: str
    unit: str
    value: float
    goal: str = ""

    def __str__(self) -> str:
        return f"{rounded(self.value)} {self.unit}".rstrip()


def rounded(value: float) -> str:
    """Return a figure to three digits, or to the unit."""
    return f"{value:,.0f}" if value >= 1_000 else f"{value:.3g}"


def by_size(title: str, sizes: Iterable[int], columns: Iterable[Sequence[Figure]]) -> Table:
    """Return the figures by size, with the ratio of the last to the first."""
    shown = Table(title=title, title_justify="left")
    shown.add_column("")
    for size in sizes:
        shown.add_column(f"{size:,}", justify="right")
    shown.add_column("ratio", justify="right")
    shown.add_column("goal")
    for row in zip(*columns, strict=True):
        first, last = row[0], row[-1]
        ratio = f"{last.value / first.value:.2f}" if first.value else ""
        shown.add_row(first.name, *map(str, row), ratio, last.goal)
    return shown


def listed(title: str, measured: Iterable[Figure]) -> Table:
    """Return the figures as one column."""
    shown = Table(title=title, title_justify="left")
    for heading in ("", "figure", "goal"):
        shown.add_column(heading, justify="right" if heading == "figure" else "left")
    for figure in measured:
        shown.add_row(figure.name, str(figure), figure.goal)
    return shown
