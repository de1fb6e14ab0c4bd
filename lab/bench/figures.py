"""Measured figures and their tables."""

from __future__ import annotations

import json
import os
import platform
from argparse import ArgumentParser
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from statistics import median
from typing import Any

from rich.console import Console
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


def by_size(title: str, sizes: Iterable[int | str], columns: Iterable[Sequence[Figure]]) -> Table:
    """Return the figures by size, with the ratio of the last to the first."""
    shown = Table(title=title, title_justify="left")
    shown.add_column("")
    for size in sizes:
        shown.add_column(f"{size:,}" if isinstance(size, int) else size, justify="right")
    shown.add_column("ratio", justify="right")
    shown.add_column("goal")
    for row in zip(*columns, strict=True):
        first, last = row[0], row[-1]
        ratio = f"{last.value / first.value:.2f}" if first.value else ""
        shown.add_row(first.name, *map(str, row), ratio, last.goal)
    return shown


def options(summary: str, *sizes: int) -> ArgumentParser:
    """Return the parser of what each benchmark is asked. With several default sizes it takes several."""
    parser = ArgumentParser(description=summary.splitlines()[0])
    several: dict[str, Any] = {"nargs": "+", "default": list(sizes)} if len(sizes) > 1 else {"default": sizes[0]}
    parser.add_argument("--partitions", type=int, metavar="N", **several)
    parser.add_argument("--json", action="store_true", help="print the figures as JSON")
    return parser


def print_by_size(title: str, sizes: Sequence[int], columns: Sequence[Sequence[Figure]], *, as_json: bool) -> None:
    """Print the figures by size, as a table or as JSON."""
    if as_json:
        named = [{figure.name: figure.value for figure in column} for column in columns]
        print(json.dumps(dict(zip(map(str, sizes), named, strict=True)), indent=2))
    else:
        Console(width=140).print(by_size(title, sizes, columns))


def print_listed(title: str, measured: Iterable[Figure], *, as_json: bool) -> None:
    """Print the figures as one column, or as JSON."""
    if as_json:
        print(json.dumps({figure.name: figure.value for figure in measured}, indent=2))
        return
    shown = Table(title=title, title_justify="left")
    for heading in ("", "figure", "goal"):
        shown.add_column(heading, justify="right" if heading == "figure" else "left")
    for figure in measured:
        shown.add_row(figure.name, str(figure), figure.goal)
    Console().print(shown)


def latencies(name: str, seconds: Sequence[float], goals: tuple[str, str] = ("", "")) -> Iterator[Figure]:
    """Yield the median and the 99th percentile."""
    ordered = sorted(seconds)
    yield Figure(f"{name}, p50", "s", median(ordered), goals[0])
    yield Figure(f"{name}, p99", "s", ordered[int(0.99 * (len(ordered) - 1))], goals[1])


def machine() -> str:
    """Return the machine that measures."""
    gibibytes = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 1024**3
    return f"{platform.machine()}, {os.cpu_count()} cores, {gibibytes:.0f} GiB, Python {platform.python_version()}"
