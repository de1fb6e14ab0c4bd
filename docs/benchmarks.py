"""Fill the table of `reference/benchmarks.md` and draw `benchmarks.svg`, from `benchmarks.json`. `make docs` runs it.

`make bench BASE=REV BENCH_ARGS='--out docs/benchmarks.json'` measures and adds to the file.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from statistics import median
from typing import Any

from lab.svg import Drawing

FOLDER = Path(__file__).parent
MEASURED = FOLDER / "benchmarks.json"
PAGE = FOLDER / "reference" / "benchmarks.md"
PICTURE = FOLDER / "benchmarks.svg"

_TABLE = re.compile(r"(?<=<!-- measured -->\n).*?(?=<!-- end -->)", re.DOTALL)
_SHOWN = {
    "core": (
        "complete read, a partition",
        "ISR change",
        "a broker's death with 6,000 partitions",
        "takeover, a death in it read, and all writes",
        "memory, a partition",
    ),
    "questions": (
        "kontrast check",
        "kontrast snapshot --json",
        "kazoo's pipelined reads of every topic and state",
    ),
    "streaming": (
        "ready, from the process's start",
        "restarted, until the first new row",
        "one change at a time, p50",
        "one change at a time, p99",
        "a broker's loss, all its rows out",
        "Python, when ready",
    ),
    "beside_controller": (
        "start: gauges are complete",
        "a loss: the controller's median write",
        "a loss: the alert is out",
        "a loss: all rows are out",
    ),
}
_WIDTH, _ROW, _LEFT, _RIGHT = 720, 18, 300, 70


Run = Mapping[str, Any]


def rows(run: Run) -> Iterator[tuple[str, float, float]]:
    """Yield each figure with its medians on the base and on the later checkout. A run may lack some figures."""
    for figure in _SHOWN[run["benchmark"]]:
        names = (figure, f"{run['options'][0]}: {figure}")
        for name in names:
            if name in run["rounds"][0]["now"]:
                base, now = (median([each[side][name] for each in run["rounds"]]) for side in ("base", "now"))
                yield figure, base, now


def subject(run: Run) -> str:
    """Return the benchmark with its size."""
    return f"{run['benchmark']}, {int(run['options'][0]):,}"


def measured() -> list[Run]:
    """Return the runs of both checkouts."""
    runs: list[Run] = json.loads(MEASURED.read_text(encoding="utf-8"))
    return runs


def page(before: str) -> str:
    """Return the page with the table of the present figures, and a line for each run."""
    runs = measured()
    lines = [
        "| benchmark, partitions | figure | before | after | before / after |",
        "| --- | --- | ---: | ---: | ---: |",
    ]
    for run in runs:
        for figure, base, now in rows(run):
            lines.append(f"| {subject(run)} | {figure} | {base:.3g} | {now:.3g} | {base / now:.2f} |")
    lines.append("")
    for run in runs:
        rounds = f"{len(run['rounds'])} rounds" if len(run["rounds"]) > 1 else "one round"
        at = f"{run['base']} → {run['now']}, {rounds}, {run['machine']}, load average {run['load_average']}"
        lines.append(f"- {subject(run)}: {at}")
    return _TABLE.sub(lambda _: "\n" + "\n".join(lines) + "\n\n", before)


def picture() -> str:
    """Return a picture with a bar for each figure, which is its value after the change as a share of the one before."""
    shown = [(subject(run), *row) for run in measured() for row in rows(run)]
    drawing = Drawing(_WIDTH, _ROW * (len(shown) + 2))
    drawing.text(8, _ROW, "after / before: shorter is faster, the line is no change", bold=True)
    room = (_WIDTH - _LEFT - _RIGHT) / 1.25
    for at, (of, figure, base, now) in enumerate(shown, start=1):
        top = _ROW * (at + 0.4)
        drawing.text(8, top + 12, f"{figure}; {of}", room=_LEFT - 16)
        drawing.rectangle(_LEFT, top + 2, room * min(now / base, 1.25), _ROW - 5, "green" if now <= base else "orange")
        drawing.text(_WIDTH - _RIGHT + 8, top + 12, f"{now / base:.2f}")
    drawing.line([(_LEFT + room, _ROW * 1.3), (_LEFT + room, _ROW * (len(shown) + 1.6))], "faint", dashed=True)
    return drawing.finished()


def main() -> None:
    """Write the page and the picture."""
    PAGE.write_text(page(PAGE.read_text(encoding="utf-8")), encoding="utf-8")
    PICTURE.write_text(picture(), encoding="utf-8")


if __name__ == "__main__":
    main()
