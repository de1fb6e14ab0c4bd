"""Racks with their brokers. Each broker is a box, or a small cell if there are many."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, NamedTuple

from dashboards.drawn_map.canvas import BOLD, CHARACTER, Canvas, shortened
from questions.overview.impact_map import ImpactMap, Moment
from questions.overview.overview import BrokerCell, Rack
from wording.times import duration

_BOXES: Final = 40  # with more brokers each is a small cell
_BOX, _CELL_HEIGHT, _LONGEST_NAME = (92, 40), 19, 10


class _DrawnBroker(NamedTuple):
    """A broker at the shown moment, with the words of its box and of its title."""

    is_up: bool
    words: str
    title: str


def drawn_racks(racks: Sequence[Rack], impact: ImpactMap, as_of_ms: int, canvas: Canvas) -> tuple[str, int]:
    """Draw the racks with their brokers at the shown moment. Return also the height."""
    is_many = sum(rack.size for rack in racks) > _BOXES
    (width, height), gap = (_cell(racks, canvas), 3) if is_many else (_BOX, 8)
    x, y, parts = 0.0, 0, []
    names = [shortened("no rack" if rack.name is None else rack.name, _LONGEST_NAME) for rack in racks]
    label = max(map(len, names)) * CHARACTER + 14
    for rack, name in zip(racks, names, strict=True):
        if x and x + label + rack.size * (width + gap) > canvas.frame.width:
            x, y = 0.0, y + height + gap
        is_down = not any(_shown(cell, impact, as_of_ms).is_up for cell in rack.brokers)
        colour, weight = ("affected", BOLD) if is_down else ("mute", "")
        parts.append(canvas.text(x, y + height / 2 + 4, name, colour=colour, more=weight))
        x += label
        for cell in rack.brokers:
            if x + width > canvas.frame.width:
                x, y = label, y + height + gap
            parts.append(_broker(cell, _shown(cell, impact, as_of_ms), (x, y, width), canvas))
            x += width + gap
        x += 16
    return "".join(parts), y + height + 16


def _cell(racks: Sequence[Rack], canvas: Canvas) -> tuple[float, int]:
    """Return the size of a small cell, so that a rack has one row if that leaves room for its ids."""
    room = (canvas.frame.width - _LONGEST_NAME * CHARACTER - 14) / max(rack.size for rack in racks) - 3
    return min(max(room, 24.0), 29.0), _CELL_HEIGHT


def _broker(cell: BrokerCell, state: _DrawnBroker, place: tuple[float, float, float], canvas: Canvas) -> str:
    (is_up, words, title), (x, y, width) = state, place
    is_small = width < _BOX[0]
    height = _CELL_HEIGHT if is_small else _BOX[1]
    colour = "well" if is_up else "affected"
    fill = canvas.paint["well-soft"] if is_up else f"url(#{canvas.frame.prefix}away)"
    dashes = ' stroke-dasharray="4 3"' if words in ("starts", "lost") else ""
    inner = (
        f'<rect x="{x + 0.5:.1f}" y="{y + 0.5:g}" width="{width - 1:.1f}" height="{height - 1}" rx="5" '
        f'fill="{fill}" stroke="{canvas.paint[colour]}"{dashes}/>'
    )
    if is_small:
        middle = ' text-anchor="middle"'
        inner += canvas.text(round(x + width / 2, 1), y + 13, str(cell.broker), size=11, colour=colour, more=middle)
    else:
        name = f"{cell.broker}{' ♛' if cell.is_controller else ''}"
        inner += canvas.text(x + 8, y + 17, name, size=14, colour=colour, more=BOLD)
        inner += canvas.text(x + 8, y + 32, words, size=11, colour="text")
        if is_up and cell.replicas and words != "up":
            inner += canvas.rect(x + 3, y + 36, (width - 6) * cell.leaders / cell.replicas, 2, "well")
    anchor = f' id="{canvas.frame.prefix}b-{cell.broker}" data-broker="{cell.broker}"'
    return canvas.link(f"/brokers/{cell.broker}{canvas.then}", title, inner, anchor)


def _shown(cell: BrokerCell, impact: ImpactMap, as_of_ms: int) -> _DrawnBroker:
    title = _broker_words(cell, as_of_ms)
    if impact.shown is Moment.BEFORE:  # the broker's leaders at that moment are not counted
        is_up = cell.broker in impact.starts
        return _DrawnBroker(is_up, "up" if is_up else "away", title)
    if cell.broker in impact.lost:
        return _DrawnBroker(False, "lost", title)
    if cell.registered or cell.inferred:
        return _DrawnBroker(True, f"{cell.leaders:,} / {cell.replicas:,}", title)
    if cell.broker in impact.starts:
        return _DrawnBroker(True, "starts", title)
    if cell.since_ms is None:
        return _DrawnBroker(False, "never seen", title)
    return _DrawnBroker(False, duration((as_of_ms - cell.since_ms) // 1000 * 1000, 1), title)


def _broker_words(cell: BrokerCell, as_of_ms: int) -> str:
    name = f"Broker {cell.broker}{', controller' if cell.is_controller else ''}"
    return f"{name}: {cell.lasting(as_of_ms)}, leads {cell.leaders:,} of {cell.replicas:,} replicas"
