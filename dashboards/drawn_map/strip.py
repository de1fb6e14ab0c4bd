"""A strip of time with the states of a cluster, its events as ticks, and the shown moment."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from controller.contract.ids import BrokerId
from dashboards.drawn_map.canvas import Canvas
from questions.overview.recent import News, StateSpan, Strip
from questions.state import State
from wording.sentences import listed
from wording.times import time_of_day

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
