"""The surface of a drawing: its form, its colours, and the address that its links begin with."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final, NamedTuple
from urllib.parse import quote

from markupsafe import escape

from transport.printable import printable

STEP: Final = 13  # from a square to the next
SAYS: Final = 200  # width of a line's counts in words
CHARACTER: Final = 7.0  # average width of a character, at the size of the text
BOLD: Final = ' font-weight="700"'


class Frame(NamedTuple):
    """The form of a drawing. `prefix` begins the ids of its parts."""

    prefix: str
    width: int
    names: int  # width of the names before the squares, 0 for names above them
    longest_name: int

    @property
    def squares(self) -> int:
        """Return how many squares a row has."""
        return (self.width - self.names - (SAYS if self.names else 0)) // STEP


WIDE: Final = Frame("", 1200, 210, 27)
NARROW: Final = Frame("n-", 390, 0, 30)


@dataclass(frozen=True, slots=True)
class Canvas:
    """A drawing's form, and its colours by name. Without a `home` it has no links. `then` keeps the shown moment."""

    frame: Frame
    paint: Mapping[str, str]
    home: str = ""
    then: str = ""

    def link(self, path: str, title: str, inner: str, more: str = "") -> str:
        """Return a link with its title, or a group with the title if the drawing has no links."""
        lines = "\n".join(map(printable, title.split("\n")))
        named = f"<title>{escape(lines)}</title>{inner}"
        if not self.home:
            return f"<g>{named}</g>"
        return f'<a href="{escape(self.home + path)}"{more}>{named}</a>'

    def text(self, x: float, y: float, words: str, *, size: int = 12, colour: str = "mute", more: str = "") -> str:
        """Return words that begin at this place, on their baseline."""
        said = escape(printable(words))
        return f'<text x="{x:g}" y="{y:g}" font-size="{size}" fill="{self.paint[colour]}"{more}>{said}</text>'

    def rect(self, x: float, y: float, width: float, height: float, colour: str, more: str = "") -> str:
        """Return a filled rectangle."""
        place = f'x="{x:.1f}" y="{y:g}" width="{width:.1f}" height="{height:g}"'
        return f'<rect {place} fill="{self.paint[colour]}"{more}/>'


def segment(text: str) -> str:
    """Return the text as one part of a path."""
    return quote(text.encode("utf-8", "replace"), safe="")


def shortened(name: str, most: int) -> str:
    """Return the name without its middle if it is too long."""
    return name if len(name) <= most else f"{name[: most - 10]}…{name[-9:]}"
