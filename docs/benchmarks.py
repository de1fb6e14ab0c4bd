"""Fill the table of `reference/benchmarks.md` and draw `benchmarks.svg`, from `benchmarks.json`. `make docs` runs it.

`make bench BASE=REV BENCH_ARGS='--out docs/benchmarks.json'` measures and adds to the file.
"""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path
from statistics import median

sys.path.insert(0, str(Path(__file__).parents[1]))

from tests.svg import Drawing  # noqa: E402 (needs the path above)

FOLDER = Path(__file__).parent
MEASURED = FOLDER / "benchmarks.json"
PAGE = FOLDER / "reference" / "benchmarks.md"
PICTURE = FOLDER / "benchmarks.svg"

_TABLE = re.compile(r"(?<=<!-- measured -->\n).*?(?=<!-- end -->)", re.DOTALL)
_SHOWN = (
    "complete read, a partition",
    "ISR change",
    "a broker's death with 6,000 partitions",
    "takeover, a death in it read, and all writes",
    "memory, a partition",
)
_WIDTH, _ROW, _LEFT, _RIGHT = 720, 18, 300, 70


def rows() -> list[tuple[str, str, str, float, float]]:
    """Return shape, commits, figure, and its medians on the base and on the later checkout."""
    found = []
    for run in json.loads(MEASURED.read_text(encoding="utf-8")):
        size, options = run["options"][0], run["options"]
        placement = options[options.index("--placement") + 1] if "--placement" in options else "random"
        for figure in _SHOWN:
            name = f"{size}: {figure}"
            if name not in run["rounds"][0]["now"]:  # a run without takeovers
                continue
            pair = [median([each[side][name] for each in run["rounds"]]) for side in ("base", "now")]
            found.append((f"{int(size):,}, {placement}", f"{run['base']} → {run['now']}", figure, *pair))
    return found


def page(before: str) -> str:
    """Return the page with the table of the present figures."""
    lines = [
        "| partitions, placement | commits | figure | before | after | before / after |",
        "| --- | --- | --- | ---: | ---: | ---: |",
    ]
    for shape, commits, figure, base, now in rows():
        lines.append(f"| {shape} | {commits} | {figure} | {base:.3g} | {now:.3g} | {base / now:.2f} |")
    return _TABLE.sub("\n" + "\n".join(lines) + "\n\n", before)


def picture() -> str:
    """Return a bar for each figure, the time after the change as a share of the time before it."""
    shown = rows()
    drawing = Drawing(_WIDTH, _ROW * (len(shown) + 2))
    drawing.text(8, _ROW, "after / before: shorter is faster, the line is no change", bold=True)
    room = (_WIDTH - _LEFT - _RIGHT) / 1.25
    for at, (shape, _, figure, base, now) in enumerate(shown, start=1):
        top = _ROW * (at + 0.4)
        drawing.text(8, top + 12, f"{figure}; {shape}", room=_LEFT - 16)
        drawing.rectangle(_LEFT, top + 2, room * min(now / base, 1.25), _ROW - 5, "green" if now <= base else "orange")
        drawing.text(_WIDTH - _RIGHT + 8, top + 12, f"{now / base:.2f}")
    drawing.line([(_LEFT + room, _ROW * 1.3), (_LEFT + room, _ROW * (len(shown) + 1.6))], "faint", dashed=True)
    return drawing.finished()


def main() -> None:
    """Write both."""
    PAGE.write_text(page(PAGE.read_text(encoding="utf-8")), encoding="utf-8")
    PICTURE.write_text(picture(), encoding="utf-8")


if __name__ == "__main__":
    main()
