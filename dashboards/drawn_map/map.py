"""The impact map as SVG, with its strip of time, racks with brokers, and a line of squares for each topic.

A broker is a box, or a small cell if there are many. The same drawing is in pages, wide or narrow, and stands alone as
a picture for a chat message.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import groupby
from typing import Final, NamedTuple

from markupsafe import Markup, escape

from controller.contract.ids import NO_LEADER, BrokerId
from dashboards.colours import LIGHT
from dashboards.drawn_map.canvas import (
    BOLD,
    CHARACTER,
    HEIGHT,
    SAYS,
    STEP,
    WIDE,
    Canvas,
    Frame,
    drawn_strip,
    segment,
    shortened,
)
from questions.page.impact_map import AFFECTED, ImpactMap, MapLine, Moment, Square, SquareState
from questions.page.overview import BrokerCell, Overview, Rack
from questions.page.recent import Strip
from transport.printable import printable
from wording.sentences import counted
from wording.times import duration, near

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
        is_age = not is_up and words[:1].isdigit()
        goes_on = f' data-since="{cell.since_ms}" data-units="1"' if is_age else ""
        inner += canvas.text(x + 8, y + 32, words, size=11, colour="text", more=goes_on)
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
    if cell.is_up:
        return _DrawnBroker(True, f"{cell.leaders:,} / {cell.replicas:,}", title)
    if cell.broker in impact.starts:
        return _DrawnBroker(True, "starts", title)
    if cell.since_ms is None:
        return _DrawnBroker(False, "never seen", title)
    return _DrawnBroker(False, duration((as_of_ms - cell.since_ms) // 1000 * 1000, 1), title)


def _broker_words(cell: BrokerCell, as_of_ms: int) -> str:
    name = f"Broker {cell.broker}{', controller' if cell.is_controller else ''}"
    since = "" if cell.since_ms is None else f" since {near(cell.since_ms, as_of_ms)}"
    return f"{name}: {cell.state}{since}, leads {cell.leaders:,} of {cell.replicas:,} replicas"


_SQUARE: Final = 11
_LETTERS: Final = 14  # height of a line of words
_LONGEST_CLIENTS: Final = 32
_SHORT, _COLUMNS = 10, ((0, 580), (620, 1200))  # most squares of a line that shares its row, and their places
_CALM: Final = 8  # lines that have a row each
_SYMBOLS: Final = {
    SquareState.OFFLINE: '<rect id="{id}" width="11" height="11" rx="2" fill="{affected}"/>',
    SquareState.WITHOUT_LEADER: (
        '<rect id="{id}" x="1" y="1" width="9" height="9" rx="1.5" fill="{card}" stroke="{affected}" stroke-width="2"/>'
    ),
    SquareState.REJECTS_ACKS_ALL: (
        '<g id="{id}"><rect x=".5" y=".5" width="10" height="10" rx="2" fill="{degraded-soft}" stroke="{degraded}"/>'
        '<path d="M1 10.5 10.5 1V9q0 1.5-1.5 1.5Z" fill="{degraded}"/></g>'
    ),
    SquareState.UNDER_REPLICATED: (
        '<g id="{id}"><rect x=".5" y=".5" width="10" height="10" rx="2" fill="{lacking-soft}" stroke="{lacking}"/>'
        '<rect x="1" y="7.5" width="9" height="3" fill="{lacking}"/></g>'
    ),
    SquareState.IN_DELETION: (
        '<g id="{id}"><rect x=".5" y=".5" width="10" height="10" rx="2" fill="{soft}" stroke="{mute}"/>'
        '<path d="M3 3 8 8M8 3 3 8" stroke="{mute}"/></g>'
    ),
    SquareState.COMES_BACK: '<rect id="{id}" width="11" height="11" rx="2" fill="{well}"/>',
    SquareState.USABLE: (
        '<rect id="{id}" x=".5" y=".5" width="10" height="10" rx="2" fill="{well-soft}" stroke="{well}" '
        'stroke-opacity=".4"/>'
    ),
}
_BAR_COLOURS: Final = {
    SquareState.OFFLINE: "affected",
    SquareState.WITHOUT_LEADER: "affected",
    SquareState.REJECTS_ACKS_ALL: "degraded",
    SquareState.UNDER_REPLICATED: "lacking",
    SquareState.IN_DELETION: "mute",
    SquareState.COMES_BACK: "well",
    SquareState.USABLE: "well-soft",
}


_LARGE: Final = Frame("", 820, 180, 22)  # for a picture with few lines


class Drawn(NamedTuple):
    """The cluster to draw. `home` is its address, and `then` the query that keeps the shown moment."""

    cluster: str
    impact: ImpactMap
    racks: Sequence[Rack]
    strip: Strip | None
    as_of_ms: int
    home: str = ""
    then: str = ""


def drawn_map(drawn: Drawn, frame: Frame) -> Markup:
    """Draw the map for a page, in the page's colours."""
    drawing = _Drawing(drawn, Canvas(frame, {name: f"var(--{name})" for name in LIGHT}, drawn.home, drawn.then))
    body, height = drawing.body()
    kind = "wide" if frame.names else "narrow"
    label = escape(printable(f"Impact map of {drawn.cluster}"))
    begin = f'<svg class="map {kind}" viewBox="0 0 {frame.width} {height}" role="group" aria-label="{label}">'
    return Markup(f"{begin}{drawing.symbols()}{body}</svg>")


def picture_of(overview: Overview, at_ms: int | None = None) -> str | None:
    """Return the map of the overview as a picture below its event and its effect, None if the overview has no map.

    `at_ms` is the shown moment, None for the present.
    """
    if overview.map is None or overview.health is None:
        return None
    as_of_ms = at_ms or overview.health.as_of_ms
    drawn = Drawn(overview.cluster, overview.map, overview.racks, overview.strip, as_of_ms)
    return alone(drawn, f"{overview.state.event}.", overview.state.effect)


def alone(drawn: Drawn, event: str, effect: str) -> str:
    """Return the map as a picture of 1,200 by 630 in the light colours, below the cluster's event and its effect."""
    width, room = 1136, 508
    drawing = _Drawing(drawn, Canvas(_LARGE, LIGHT))
    body, height = drawing.body()
    if height * width / _LARGE.width > room:
        drawing = _Drawing(drawn, Canvas(WIDE, LIGHT))
        body, height = drawing.body()
    scale = min(width / drawing.width, room / height)
    is_bad = any(line.counts.get(state) for line in drawn.impact.lines for state in AFFECTED)
    head = "".join(
        f'<text y="{y}" font-size="{size}" font-weight="700" fill="{LIGHT[colour]}">{_cut(words, most)}</text>'
        for words, y, size, colour, most in (
            (f"{drawn.cluster}: {event}", 32, 26, "affected" if is_bad else "text", 76),
            (effect, 62, 18, "text", 108),
        )
    )
    return (
        '<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 1200 630" width="1200" height="630" role="img" '
        f'font-family="system-ui, sans-serif"><rect width="1200" height="630" fill="{LIGHT["card"]}"/>'
        f'<g transform="translate(32 18)">{drawing.symbols()}{head}'
        f'<g transform="translate(0 86) scale({scale:.3f})">{body}</g></g></svg>\n'
    )


class _Drawing:
    def __init__(self, drawn: Drawn, canvas: Canvas) -> None:
        self._drawn, self._canvas, self._frame, self._paint = drawn, canvas, canvas.frame, canvas.paint

    @property
    def width(self) -> int:
        """Return the width of all parts."""
        return self._frame.width

    def symbols(self) -> str:
        """Return the shapes of partitions, and the hatch of brokers that are away."""
        shapes = "".join(shape.format_map({**self._paint, "id": self._id(state)}) for state, shape in _SYMBOLS.items())
        return (
            f'<defs>{shapes}<pattern id="{self._frame.prefix}away" width="11" height="11" '
            'patternUnits="userSpaceOnUse" patternTransform="rotate(45)">'
            f'<rect width="11" height="11" fill="{self._paint["card"]}"/>'
            f'<rect width="5.5" height="11" fill="{self._paint["affected-soft"]}"/></pattern></defs>'
        )

    def body(self) -> tuple[str, int]:
        """Return all parts, and their height."""
        parts, y = [], 0
        for drawn, height in self._parts():
            if drawn:
                parts.append(f'<g transform="translate(0 {y})">{drawn}</g>')
                y += height
        return "".join(parts), y

    def _parts(self) -> Iterator[tuple[str, int]]:
        impact = self._drawn.impact
        if self._drawn.strip is not None:
            yield drawn_strip(self._drawn.strip, self._canvas), HEIGHT
        if self._drawn.racks:
            yield drawn_racks(self._drawn.racks, impact, self._drawn.as_of_ms, self._canvas)
        longest = max((line.partitions for line in impact.lines if not line.squares), default=1)
        for lines in self._rows():
            row = [self._line(line, longest, column, len(lines)) for column, line in enumerate(lines)]
            yield "".join(drawn for drawn, _ in row), max(height for _, height in row)
        yield self._legend(impact.states)

    def _rows(self) -> Iterator[Sequence[MapLine]]:
        """Yield the lines, two short ones in a row of a wide map with many."""
        for is_short, lines in groupby(self._drawn.impact.lines, lambda line: 0 < len(line.squares) <= _SHORT):
            count = 2 if is_short and self._frame is WIDE and len(self._drawn.impact.lines) > _CALM else 1
            every = list(lines)
            yield from (every[at : at + count] for at in range(0, len(every), count))

    def _id(self, state: SquareState) -> str:
        return f"{self._frame.prefix}{state.name.lower().replace('_', '-')}"

    def _line(self, line: MapLine, longest: int, column: int = 0, columns: int = 1) -> tuple[str, int]:
        frame = self._frame
        left, right = (0, frame.width) if columns == 1 else _COLUMNS[column]
        top, baseline = (0, 15) if frame.names else (20, 13)
        shown = shortened(line.topic, frame.longest_name)
        name = self._canvas.text(left, baseline, shown, size=14, colour="text", more=BOLD)
        path, squares = f"/topics/{segment(line.topic)}", []
        beside = [*filter(None, (self._said(line), _clients(line)))]
        below = max(0, len(beside) - 1) * _LETTERS
        top += 0 if frame.names else below
        parts = [
            f'<path d="M{left} -4.5H{right}" stroke="{self._paint["line"]}"/>',
            self._canvas.link(path + self._canvas.then, line.topic, name),
            *(
                self._canvas.text(right, baseline + at * _LETTERS, said, more=' text-anchor="end"')
                for at, said in enumerate(beside)
            ),
        ]
        room = below if frame.names else 0
        if not line.squares:
            parts.append(self._bar(line, top, longest))
            return "".join(parts), top + 26 + room
        whys = {number: cause.says for cause in line.causes for number in cause.partitions}
        for at, each in enumerate(line.squares):
            title = f"{line.topic}-{each.partition} {_square_words(each, self._drawn.as_of_ms)}"
            why = whys.get(each.partition)
            squares.append(self._square(path, each, f"{title}\n{why}" if why else title, (at, left, top)))
        parts.append(f"<g>{''.join(squares)}</g>")
        rows = -(-len(line.squares) // frame.squares)
        return "".join(parts), top + 26 + max((rows - 1) * STEP, room)

    def _said(self, line: MapLine) -> str:
        return line.says if line.squares or not line.says else f"{line.says} of {line.partitions:,}"

    def _square(self, path: str, square: Square, title: str, place: tuple[int, int, int]) -> str:
        at, left, top = place
        row, column = divmod(at, self._frame.squares)
        x, y = left + self._frame.names + column * STEP, top + 5 + row * STEP
        use = f'<use href="#{self._id(square.state)}" x="{x}" y="{y}"/>'
        # One square of a line is reached by Tab, the others by the arrow keys.
        more = f' class="square" data-on="{" ".join(map(str, square.replicas))}" tabindex="{-bool(at)}"'
        return self._canvas.link(f"{path}/{square.partition}{self._canvas.then}", title, use, more)

    def _bar(self, line: MapLine, top: int, longest: int) -> str:
        """Draw the counts of a topic as one bar. All bars have one scale."""
        room = self._frame.width - self._frame.names - (SAYS if self._frame.names else 0)
        x, parts = float(self._frame.names), []
        for state, count in line.counts.items():
            width = max(2.0, room * count / longest)
            edge = f' stroke="{self._paint["well"]}" stroke-opacity=".4"' if state is SquareState.USABLE else ""
            bar = self._canvas.rect(x, top + 5, width, _SQUARE, _BAR_COLOURS[state], edge)
            parts.append(f"<g><title>{escape(state.of(count))} of {line.partitions:,}</title>{bar}</g>")
            x += width
        return "".join(parts)

    def _legend(self, states: Sequence[SquareState]) -> tuple[str, int]:
        x, y, parts = 0.0, 4, []
        for state in states:
            words = "comes back with this step" if state is SquareState.COMES_BACK else state.value
            width = len(words) * 6.2 + 36
            if x and x + width > self._frame.width:
                x, y = 0.0, y + 18
            parts.append(
                f'<use href="#{self._id(state)}" x="{x:g}" y="{y}"/>{self._canvas.text(x + 17, y + 10, words)}'
            )
            x += width
        return "".join(parts), y + 18


def _clients(line: MapLine) -> str:
    """Return whom to call about the topic, and how many groups read it, in few words."""
    team, groups = "" if line.team is None else line.team.team, counted(line.groups, "group") if line.groups else ""
    return shortened(", ".join(filter(None, (team, groups))), _LONGEST_CLIENTS)


def _square_words(square: Square, as_of_ms: int) -> str:
    state = square.state
    is_are = "" if state in (SquareState.REJECTS_ACKS_ALL, SquareState.COMES_BACK) else "is "
    is_now = square.since_ms is not None and state not in (SquareState.COMES_BACK, SquareState.USABLE)
    since = f" since {near(square.since_ms or 0, as_of_ms)}" if is_now else ""
    led = "no leader" if square.leader == NO_LEADER else f"leader {square.leader}"
    return f"{is_are}{state.value}{since}\n{led}, in sync {_ids(square.isr)}, replicas {_ids(square.replicas)}"


def _ids(brokers: Sequence[BrokerId]) -> str:
    return ", ".join(map(str, brokers)) or "none"


def _cut(words: str, most: int) -> Markup:
    said = printable(words)
    return escape(said if len(said) <= most else f"{said[: most - 1]}…")
