"""Text of an answer: lines and tables, with the meaning of words in place of colours. One renderer writes them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Final, NamedTuple, TypeAlias

_LONGEST: Final = 1_000

# A text, alone or with its meaning: page, warn, info, ok, unknown, or strong for a title.
Part: TypeAlias = "str | tuple[str, str]"


class Line(NamedTuple):
    """A line of parts. If it wraps, the rest keeps its indent."""

    parts: tuple[Part, ...]
    indent: int

    @property
    def text(self) -> str:
        """Return the line without meanings."""
        return " " * self.indent + "".join(part if isinstance(part, str) else part[0] for part in self.parts)


class Table(NamedTuple):
    """A table, in which a cell that is the word of a meaning has that meaning."""

    columns: Sequence[str]
    rows: Iterable[Sequence[str]]
    below: int = 0  # so many last columns are a second line of each row on a narrow terminal, so that none is squeezed


Said: TypeAlias = Iterator[Line | Table]


def line(*parts: Part, indent: int = 0) -> Line:
    """Return a line of these parts."""
    return Line(parts, indent)


def cut(text: str) -> str:
    """Return foreign text, cut to a readable length."""
    return text if len(text) <= _LONGEST else text[:_LONGEST] + "…"


def marked(word: str) -> tuple[str, str]:
    """Return a word that is its own meaning, such as a severity."""
    return word, word
