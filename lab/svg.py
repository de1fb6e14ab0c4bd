"""Drawing of rectangles, lines and text as SVG."""

from __future__ import annotations

from collections.abc import Iterable
from html import escape
from typing import NamedTuple

COLORS = {
    "green": "#4a9f5d",
    "orange": "#e58e26",
    "text": "#2b2f36",
    "faint": "#7b828e",
    "line": "#dfe2e7",
    "panel": "#ffffff",
    "page": "#f3f4f6",
}
# For readers whose system is dark. Bars and lines keep their colours.
_DARK = {"text": "#e4e7ec", "faint": "#9aa2ae", "line": "#3a404a", "panel": "#20242b", "page": "#15181d"}
SERIES = ("#4a7fd0", "#e58e26", "#4a9f5d", "#d1434b", "#8b5fc7", "#2aa4a8", "#b0851f", "#d36ba6", "#6b7686", "#7fae2e")
_CHARACTER_WIDTH = 0.56  # of the font's size, on average


class Area(NamedTuple):
    """Area of a drawing, in pixels."""

    x: float
    y: float
    width: float
    height: float


class Drawing:
    """SVG of a size in pixels."""

    def __init__(self, width: float, height: float) -> None:
        self._width, self._height = width, height
        self._parts: list[str] = []

    def rectangle(self, x: float, y: float, width: float, height: float, color: str, *, rounded: int = 0) -> None:
        """Return a filled rectangle. `color` is a name of COLORS or a colour."""
        round_ = f' rx="{rounded}"' if rounded else ""
        self._parts.append(
            f'<rect x="{x:.5g}" y="{y:.5g}" width="{max(width, 0.5):.5g}" height="{height:.5g}" '
            f'fill="{_color(color)}"{round_}/>'
        )

    def line(self, points: Iterable[tuple[float, float]], color: str, *, dashed: bool = False) -> None:
        """Draw a line through these points."""
        way = " ".join(f"{x:.5g},{y:.5g}" for x, y in points)
        dashes = ' stroke-dasharray="3 3"' if dashed else ""
        self._parts.append(
            f'<polyline points="{way}" fill="none" stroke="{_color(color)}" stroke-width="1.3"{dashes}/>'
        )

    def text(  # noqa: PLR0913 (settings with defaults)
        self, x: float, y: float, words: str, *, size: int = 11, color: str = "text", anchor: str = "start",
        bold: bool = False, room: float | None = None,
    ) -> None:  # fmt: skip
        """Return words at a point, cut if they are too long for their space."""
        if room is not None:
            most = max(1, int(room / (size * _CHARACTER_WIDTH)))
            words = words if len(words) <= most else f"{words[: most - 1]}…"
        weight = ' font-weight="600"' if bold else ""
        self._parts.append(
            f'<text x="{x:.5g}" y="{y:.5g}" font-size="{size}" fill="{_color(color)}" '
            f'text-anchor="{anchor}"{weight}>{escape(words)}</text>'
        )

    def finished(self) -> str:
        """Return the file's text."""
        head = (
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {self._width:g} {self._height:g}" '
            f'width="{self._width:g}" height="{self._height:g}" font-family="Helvetica, Arial, sans-serif">'
        )
        shades = "".join(
            f'[fill="{COLORS[name]}"]{{fill:{dark}}}[stroke="{COLORS[name]}"]{{stroke:{dark}}}'
            for name, dark in _DARK.items()
        )
        style = f"<style>@media (prefers-color-scheme:dark){{{shades}}}</style>"
        page = f'<rect width="100%" height="100%" fill="{COLORS["page"]}"/>'
        return "\n".join([head, style, page, *self._parts, "</svg>", ""])


def _color(name: str) -> str:
    return COLORS.get(name, name)
