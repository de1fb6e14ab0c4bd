"""Fill the table of ratios in `reference/benchmarks.md` and draw `ratios.svg`, from `ratios.json`. `make docs` runs it.

`make bench-streaming BENCH_ARGS='--partitions 200000 --ratios docs/ratios.json'`, and `make bench-questions` with the
same arguments, add the ratios of a commit. Both values of a ratio are of one run, so machines do not matter.
"""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[1]))

from tests.svg import Area, Drawing  # noqa: E402 (needs the path above)

FOLDER = Path(__file__).parent
MEASURED = FOLDER / "ratios.json"
PAGE = FOLDER / "reference" / "benchmarks.md"
PICTURE = FOLDER / "ratios.svg"

_TABLE = re.compile(r"(?<=<!-- ratios -->\n).*?(?=<!-- end -->)", re.DOTALL)
_PANEL = Area(0, 0, 360, 110)
_COLUMNS = 2
_MARGIN = 30


def runs() -> list[dict[str, Any]]:
    """Return the runs in the order of their measurement."""
    found: list[dict[str, Any]] = json.loads(MEASURED.read_text(encoding="utf-8"))
    return found


def page(before: str) -> str:
    """Return the page with the table of all runs."""
    lines = [
        "| commit | partitions | load average | ratio | measured | goal |",
        "| --- | ---: | ---: | --- | ---: | --- |",
    ]
    for run in runs():
        for name, (value, goal) in run["ratios"].items():
            place = f"{run['commit']} | {run['partitions']:,} | {run['load_average']}"
            lines.append(f"| {place} | {name} | {value:.2f} | {goal} |")
    return _TABLE.sub(lambda _: "\n" + "\n".join(lines) + "\n\n", before, count=1)


def picture() -> str:
    """Return a picture with a panel for each ratio and a point for each run, so that a slower commit can be seen."""
    found: dict[str, list[tuple[str, float]]] = {}
    for run in runs():
        for name, (value, _) in run["ratios"].items():
            found.setdefault(name, []).append((run["commit"], value))
    drawing = Drawing(_COLUMNS * _PANEL.width, -(-len(found) // _COLUMNS) * _PANEL.height)
    for place, (name, points) in enumerate(found.items()):
        x, y = place % _COLUMNS * _PANEL.width + _MARGIN, place // _COLUMNS * _PANEL.height
        drawing.text(x, y + 18, name, bold=True, room=_PANEL.width - 2 * _MARGIN)
        highest = max(value for _, value in points)
        step = (_PANEL.width - 3 * _MARGIN) / max(1, len(points) - 1)
        at = [(x + step * number, y + 85 - 45 * value / highest) for number, (_, value) in enumerate(points)]
        drawing.line([(x, y + 85), (x + _PANEL.width - 3 * _MARGIN, y + 85)], "line")
        drawing.line(at, "blue")
        for (left, top), (commit, value) in zip(at, points, strict=True):
            drawing.rectangle(left - 2, top - 2, 4, 4, "blue")
            drawing.text(left, top - 6, f"{value:.2f}", size=10)
            drawing.text(left, y + 100, commit, size=9, color="faint")
    return drawing.finished()


def main() -> None:
    """Write the page and the picture."""
    PAGE.write_text(page(PAGE.read_text(encoding="utf-8")), encoding="utf-8")
    PICTURE.write_text(picture(), encoding="utf-8")


if __name__ == "__main__":
    main()
