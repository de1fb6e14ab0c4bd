"""Lines of answers with times, ages and coloured words, and foreign text escaped."""

from __future__ import annotations

from datetime import datetime, timezone
from typing import Final

from rich.console import RenderableType
from rich.padding import Padding
from rich.text import Text

from cli.printing.tables import age_of
from questions.picture import Beginning
from transport.printable import printable

_LONGEST: Final = 1_000
COLOURS: Final = {"page": "bold red", "warn": "yellow", "info": "cyan", "ok": "green", "unknown": "magenta"}


def time_of(ms: int) -> str:
    """Return a moment as a time of day in UTC."""
    return datetime.fromtimestamp(ms / 1000, timezone.utc).strftime("%Y-%m-%d %H:%M:%S.%f")[:-3] + "Z"


def since(moment: Beginning, as_of_ms: int) -> str:
    """Return a duration and its start. The findings of a first look may be older."""
    if moment.ms is None:
        return "since an unknown time"
    lasted = age_of(max(0, as_of_ms - moment.ms) / 1000)
    return f"for {lasted if moment.exact else f'at least {lasted}'}, since {time_of(moment.ms)}"


def line(*parts: str | tuple[str, str], indent: int = 0) -> RenderableType:
    """Return a line of plain or coloured texts. A terminal wraps it behind its indent."""
    text = Text()
    for part in parts:
        said, colour = (part, "") if isinstance(part, str) else part
        text.append(printable(said), style=colour)
    return Padding(text, (0, 0, 0, indent), expand=False) if indent else text


def cut(text: str) -> str:
    """Return foreign text without control characters, cut to a readable length."""
    return printable(text, _LONGEST)


def severity_word(word: str) -> tuple[str, str]:
    """Return a word in the colour of its severity."""
    return word, COLOURS.get(word, "")
