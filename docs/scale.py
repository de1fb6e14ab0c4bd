"""Fill the tables of growth in `reference/benchmarks.md` and draw `scale.svg`, from `scale.json`. `make docs` runs it.

`make bench-streaming BENCH_ARGS='--partitions 20000 --out docs/scale.json'` measures one size and adds it to the file.
"""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Callable, Mapping, Sequence
from math import log10
from pathlib import Path
from typing import Any, NamedTuple

sys.path.insert(0, str(Path(__file__).parents[1]))

from cli.capacity import Capacity  # noqa: E402 (needs the path above)
from tests.svg import SERIES, Area, Drawing  # noqa: E402 (needs the path above)

FOLDER = Path(__file__).parent
MEASURED = FOLDER / "scale.json"
PAGE = FOLDER / "reference" / "benchmarks.md"
PICTURE = FOLDER / "scale.svg"

_TABLES = re.compile(r"(?<=<!-- scale -->\n).*?(?=<!-- end -->)", re.DOTALL)
_PANEL = Area(0, 0, 440, 250)
_LEFT, _TOP, _BOTTOM, _RIGHT = 58, 52, 30, 20
_COLUMNS = 2
_KINDS = ("one cluster", "a fleet, clusters of 2,000 partitions")
_MB = 1e6


class Measured(NamedTuple):
    """Figures of one size. `clusters` is 1 for a single cluster."""

    clusters: int
    partitions: int  # of all clusters
    run: Mapping[str, Any]

    def figure(self, name: str) -> float:
        """Return a figure by its name."""
        value: float = self.run["figures"][name]
        return value

    def most(self, part: str) -> float:
        """Return a part's memory in megabytes, the larger one of its two measurements."""
        return max(self.figure(f"{part}, when ready"), self.figure(f"{part}, at the end"))

    def megabytes(self, part: str) -> float:
        """Return the size of stream or outputs after the complete read."""
        return self.figure(f"{part}, a partition") * self.partitions / _MB

    @property
    def size(self) -> Capacity:
        """Return the needs that `kontrast size` prints for 100 changes a second."""
        return Capacity(clusters=self.clusters, partitions=self.partitions, changes_per_second=100)

    def __str__(self) -> str:
        each = self.partitions // self.clusters
        return f"{each:,}" if self.clusters == 1 else f"{self.clusters} clusters of {each:,}"


_Reading = Callable[[Measured], float]


def _named(name: str) -> _Reading:
    return lambda measured: measured.figure(name)


_READY = "ready, from the process's start"
_CHANGE = "one change at a time"
_SIZE = "kontrast size"
_LOSS = "a broker's loss, all its rows out"
# The solid line of each panel, and the name and values of its dashed line.
_PANELS: Mapping[str, tuple[_Reading, str, _Reading | None]] = {
    "ready after the start, s": (_named(_READY), "", None),
    "one change, p50, s": (_named(f"{_CHANGE}, p50"), "p99", _named(f"{_CHANGE}, p99")),
    "a broker's loss, s": (_named(_LOSS), "", None),
    "memory of Python, MB": (
        lambda each: each.most("Python"),
        _SIZE,
        lambda each: each.size.memory_mb["stream, Python"],
    ),
    "memory of Java, MB": (lambda each: each.most("Java"), _SIZE, lambda each: each.size.memory_mb["stream, Java"]),
    "checkpoint, MB": (lambda each: each.most("checkpoint"), _SIZE, lambda each: each.size.checkpoint_bytes / _MB),
    "a complete read on the stream, MB": (lambda each: each.megabytes("stream"), "", None),
    "its rows in the outputs, MB": (lambda each: each.megabytes("outputs"), "", None),
}


def runs() -> list[Measured]:
    """Return the measured sizes, single clusters first."""
    found = []
    for size, run in json.loads(MEASURED.read_text(encoding="utf-8")).items():
        clusters, _, each = size.rpartition("x")
        found.append(Measured(int(clusters or 1), int(clusters or 1) * int(each), run))
    return sorted(found, key=lambda measured: (measured.clusters > 1, measured.partitions))


def tables(found: Sequence[Measured]) -> str:
    """Return the table of figures and the table of runs."""
    lines = [
        "| partitions | ready, s | a change, p50 / p99, s | a loss, s | Python, MB | Java, MB | checkpoint, MB "
        "| stream, MB | outputs, MB |",
        "| --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: |",
    ]
    for each in found:
        times = [f"{each.figure(f'{_CHANGE}, {share}'):.2f}" for share in ("p50", "p99")]
        sizes = [each.most(part) for part in ("Python", "Java", "checkpoint")]
        sizes += [each.megabytes(part) for part in ("stream", "outputs")]
        cells = [str(each), f"{each.figure(_READY):.1f}", " / ".join(times), f"{each.figure(_LOSS):.2f}"]
        lines.append("| " + " | ".join([*cells, *(f"{size:,.0f}" for size in sizes)]) + " |")
    lines += [
        "",
        "| partitions | commit | machine | load average at the end | command |",
        "| --- | --- | --- | ---: | --- |",
    ]
    for each in found:
        run = each.run
        lines.append(f"| {each} | {run['commit']} | {run['machine']} | {run['load_average']} | `{run['command']}` |")
    return "\n".join(lines)


def page(before: str) -> str:
    """Return the page with the tables of the present figures."""
    return _TABLES.sub(lambda _: f"\n{tables(runs())}\n\n", before)


class Axis(NamedTuple):
    """Logarithmic axis from one value to another, along pixels."""

    low: float
    high: float
    begin: float
    length: float

    def place(self, value: float) -> float:
        """Return the pixel of a value."""
        return self.begin + self.length * log10(value / self.low) / log10(self.high / self.low)


def _ticks(values: Sequence[float]) -> list[float]:
    """Return values like 1, 2, 5, 10 from below the smallest to above the largest."""
    steps = [digit * 10.0**power for power in range(-4, 8) for digit in (1, 2, 5)]
    below, above = max(step for step in steps if step <= min(values)), min(step for step in steps if step > max(values))
    return [step for step in steps if below <= step <= above]


def _shown(number: float) -> str:
    return f"{number / 1e6:g}M" if number >= 1e6 else f"{number / 1e3:g}k" if number >= 1e4 else f"{number:g}"


def picture() -> str:
    """Return a picture with a panel for each figure over the number of partitions, on logarithmic axes."""
    rows = -(-len(_PANELS) // _COLUMNS)
    drawing = Drawing(_COLUMNS * _PANEL.width, rows * _PANEL.height)
    kinds = [[each for each in runs() if (each.clusters > 1) == is_fleet] for is_fleet in (False, True)]
    for place, title in enumerate(_PANELS):
        x, y = place % _COLUMNS * _PANEL.width, place // _COLUMNS * _PANEL.height
        _draw(drawing, Area(x, y, _PANEL.width, _PANEL.height), title, kinds)
    return drawing.finished()


def _draw(drawing: Drawing, area: Area, title: str, kinds: Sequence[Sequence[Measured]]) -> None:
    solid, name, dashed = _PANELS[title]
    readings = [solid] if dashed is None else [solid, dashed]
    drawing.rectangle(area.x + 4, area.y + 4, area.width - 8, area.height - 8, "panel", rounded=4)
    drawing.text(area.x + 14, area.y + 22, title, size=12, bold=True)
    sizes = sorted({each.partitions for kind in kinds for each in kind})
    ticks = _ticks([reading(each) for reading in readings for kind in kinds for each in kind])
    height = area.height - _TOP - _BOTTOM
    across = Axis(sizes[0], sizes[-1], area.x + _LEFT, area.width - _LEFT - _RIGHT)
    upwards = Axis(ticks[0], ticks[-1], area.y + _TOP + height, -height)
    for tick in ticks:
        level = upwards.place(tick)
        drawing.line([(across.begin, level), (across.begin + across.length, level)], "line")
        drawing.text(across.begin - 8, level + 4, _shown(tick), size=10, color="faint", anchor="end")
    for size in sizes:
        drawing.text(across.place(size), upwards.begin + 18, _shown(size), size=10, color="faint", anchor="middle")
    for kind, words, color, at in zip(kinds, _KINDS, SERIES, (14, 100), strict=False):
        drawing.text(area.x + at, area.y + 39, f"● {words}", size=10, color=color)
        for reading in readings:
            places = [(across.place(each.partitions), upwards.place(reading(each))) for each in kind]
            drawing.line(places, color, dashed=reading is dashed)
            for x, y in places if reading is solid else ():
                drawing.rectangle(x - 3, y - 3, 6, 6, color, rounded=3)
    if dashed is not None:
        drawing.text(area.x + 312, area.y + 39, f"- - {name}", size=10, color="faint")


def main() -> None:
    """Write the page and the picture."""
    PAGE.write_text(page(PAGE.read_text(encoding="utf-8")), encoding="utf-8")
    PICTURE.write_text(picture(), encoding="utf-8")


if __name__ == "__main__":
    main()
