"""The surface of a drawing with its form, colours and links, and the strip of time with a cluster's states on it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple
from urllib.parse import quote

from markupsafe import escape

from controller.contract.ids import BrokerId
from questions.check.state import State
from questions.page.recent import News, StateSpan, Strip
from transport.printable import printable
from wording.sentences import listed
from wording.times import time_of_day

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


HEIGHT: Final = 48
_STATE_COLOURS: Final = {State.AFFECTED: "affected", State.UNKNOWN: "unknown", State.DEGRADED: "degraded"}


def drawn_strip(strip: Strip, canvas: Canvas) -> str:
    """Draw the time with its states, its events, and the shown moment."""
    known_ms = min(max(strip.begin_ms, strip.kept_since_ms), strip.end_ms)
    at = _x(strip, canvas, strip.at_ms)
    parts = [
        canvas.rect(0, 4, canvas.frame.width, 10, "line", ' rx="3"'),
        *(
            _span(strip, canvas, span, opacity)
            for span, opacity in (
                (StateSpan(known_ms, strip.end_ms, State.WELL), ' opacity=".55"'),
                *((span, "") for span in strip.spans),
            )
        ),
        *_ticks(strip, canvas),
        f'<circle cx="{min(max(at, 6), canvas.frame.width - 6):.1f}" cy="9" r="6" fill="{canvas.paint["text"]}" '
        f'stroke="{canvas.paint["card"]}" stroke-width="2"/>',
    ]
    return "".join(parts)


def _x(strip: Strip, canvas: Canvas, ms: int) -> float:
    return (ms - strip.begin_ms) / (strip.end_ms - strip.begin_ms) * canvas.frame.width


def _span(strip: Strip, canvas: Canvas, span: StateSpan, more: str) -> str:
    begin, end = _x(strip, canvas, span.begin_ms), _x(strip, canvas, span.end_ms)
    return canvas.rect(begin, 4, max(1.5, end - begin), 10, _STATE_COLOURS.get(span.state, "well"), more)


def _ticks(strip: Strip, canvas: Canvas) -> Iterator[str]:
    """Yield a tick for each event, one for events close together, and labels as far as there is room, newest first."""
    last = "now" if strip.at_ms >= strip.end_ms and not canvas.then else _clock(strip.end_ms)
    yield canvas.text(0, 30, _clock(strip.begin_ms), size=11)
    yield canvas.text(canvas.frame.width, 30, last, size=11, more=' text-anchor="end"')
    taken: list[tuple[float, float]] = [(canvas.frame.width - len(last) * 6 - 12, canvas.frame.width), (0, 44)]
    for x, events in sorted(_near_events(strip, canvas), key=lambda tick: (not tick[1][-1].is_bad, -tick[0])):
        title = "\n".join(f"{_clock(news.time_ms)} {news.says.replace('`', '')}" for news in events)
        tick = f'<path d="M{x:.1f} 0v18" stroke="{canvas.paint["text"]}" stroke-width="2"/>'
        yield canvas.link(f"?at={events[-1].time_ms}", title, tick, ' tabindex="-1"')
        label = _label(events)
        width = len(label) * 6
        begin = min(x, canvas.frame.width - width - 44)
        if begin >= 44 and all(begin + width + 8 < left or begin > right + 8 for left, right in taken):
            taken.append((begin, begin + width))
            yield canvas.text(begin, 30, label, size=11, colour="text" if events[-1].is_bad else "mute")


def _near_events(strip: Strip, canvas: Canvas) -> Iterator[tuple[float, list[News]]]:
    near: list[News] = []
    for news in strip.events:
        if near and _x(strip, canvas, news.time_ms) - _x(strip, canvas, near[0].time_ms) > 8:
            yield _x(strip, canvas, near[0].time_ms), near
            near = []
        near.append(news)
    if near:
        yield _x(strip, canvas, near[0].time_ms), near


def _label(events: Sequence[News]) -> str:
    """Return the time of the first event, and the brokers that left or came, or else the event's sentence."""
    first = min(events, key=lambda news: (not news.says.startswith("broker "), not news.is_bad, news.time_ms))
    verb = first.says.rpartition(" ")[2]
    alike = {news.says.split(" ")[1] for news in events if news.says.startswith("broker ") and news.says.endswith(verb)}
    if len(alike) > 1 and len(first.says.split(" ")) == 3:  # noqa: PLR2004 (broker, its id, a verb)
        return f"{_clock(first.time_ms)} {listed(sorted(map(BrokerId, map(int, alike))))} {verb}"
    return f"{_clock(first.time_ms)} {first.says.replace('`', '')}"


def _clock(ms: int) -> str:
    return time_of_day(ms).removesuffix("Z")
