"""Lines of answers with times, ages and coloured words, and foreign text escaped."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from rich.console import RenderableType
from rich.padding import Padding
from rich.text import Text

from questions.clients.groups import Impact
from questions.picture import Beginning
from transport.printable import printable
from wording.times import lasting

_LONGEST: Final = 1_000
COLOURS: Final = {"page": "bold red", "warn": "yellow", "info": "cyan", "ok": "green", "unknown": "magenta"}


def since(moment: Beginning, as_of_ms: int) -> str:
    """Return a duration and its start, marked if the start may be earlier, as for findings of a first read."""
    return lasting(moment.ms, as_of_ms, exact=moment.exact)


def line(*parts: str | tuple[str, str], indent: int = 0) -> RenderableType:
    """Return a line of plain or coloured texts. On a terminal, wrapped lines keep the indent."""
    text = Text()
    for part in parts:
        said, colour = (part, "") if isinstance(part, str) else part
        text.append(printable(said), style=colour)
    return Padding(text, (0, 0, 0, indent), expand=False) if indent else text


def hit_lines(impact: Impact, most: int | None) -> Iterator[RenderableType]:
    """Yield a line for each hit group and transactional id, and for each fact that the brokers do not tell."""
    for hit in (*impact.groups, *impact.transactional_ids)[:most]:
        yield line(f"{hit.name}: {hit.says}", indent=4)
    for gap in impact.gaps:
        yield line(gap, indent=4)


def cut(text: str) -> str:
    """Return foreign text without control characters, cut to a readable length."""
    return printable(text, _LONGEST)


def severity_word(word: str) -> tuple[str, str]:
    """Return a word in the colour of its severity."""
    return word, COLOURS.get(word, "")
