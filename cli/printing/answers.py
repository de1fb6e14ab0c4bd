"""Print answers to questions: coloured and wrapped on a terminal, one plain line each elsewhere."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator
from datetime import datetime, timezone
from typing import Final

import click
import msgspec
from rich.console import Console, RenderableType
from rich.padding import Padding
from rich.text import Text

from cli.printing.tables import age_of
from questions.picture import Moment
from transport.printable import printable

_UNBOUNDED: Final = 10_000  # columns where nobody's terminal ends
COLOURS: Final = {"page": "bold red", "warn": "yellow", "info": "cyan", "ok": "green", "unknown": "magenta"}


def time_of(ms: int) -> str:
    """A moment as a time of day in UTC."""
    return datetime.fromtimestamp(ms / 1000, timezone.utc).strftime("%Y-%m-%d %H:%M:%S.%f")[:-3] + "Z"


def since(moment: Moment, as_of_ms: int) -> str:
    """How long something has lasted, and since when; what a first look found may have begun before."""
    if moment.ms is None:
        return "since an unknown time"
    lasted = age_of(max(0, as_of_ms - moment.ms) / 1000)
    return f"for {lasted if moment.exact else f'at least {lasted}'}, since {time_of(moment.ms)}"


def line(*parts: str | tuple[str, str], indent: int = 0) -> RenderableType:
    """A line of texts, each plain or with its colour; a terminal wraps it behind its indent."""
    text = Text()
    for part in parts:
        said, colour = (part, "") if isinstance(part, str) else part
        text.append(printable(said), style=colour)
    return Padding(text, (0, 0, 0, indent), expand=False) if indent else text


def severity_word(word: str) -> tuple[str, str]:
    """A word in the colour of its severity."""
    return word, COLOURS.get(word, "")


def print_answer(lines: Iterable[RenderableType]) -> None:
    """Print the lines to standard output."""
    if sys.stdout.isatty():
        Console().print(*lines, sep="\n")
        return
    for plain in plain_lines(lines):
        click.echo(plain)


def plain_lines(lines: Iterable[RenderableType]) -> Iterator[str]:
    """The lines without colours, one for each."""
    console = Console(width=_UNBOUNDED, color_system=None, force_terminal=False)
    with console.capture() as captured:
        for item in lines:
            console.print(item)
    yield from (plain.rstrip() for plain in captured.get().splitlines())


def print_json(answer: msgspec.Struct) -> None:
    """Print the answer as one JSON object."""
    click.echo(msgspec.json.encode(answer))
