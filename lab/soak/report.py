"""Table and plots of a soak, written into the directory of its samples.

Drawing belongs here, the judgement in `verdict`.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path

from lab.soak.measurements import Sample
from lab.soak.verdict import Judged
from lab.svg import SERIES, Area, Drawing

_PANEL = Area(0, 0, 560, 200)
_MARGIN_LEFT, _MARGIN_TOP, _MARGIN_BOTTOM, _MARGIN_RIGHT = 70, 34, 24, 16
_COLUMNS = 2
_MEGABYTE = 1024 * 1024
# One panel has these readings of all subjects that have them.
_PANELS = {
    "resident memory, MB": ("rss_bytes",),
    "Java's heap after a collection, MB": ("live_heap_bytes",),
    "open files": ("open_files",),
    "threads": ("threads",),
    "temporary files, five minutes old": ("temporary_files",),
    "temporary files, five minutes old, MB": ("temporary_bytes",),
    "checkpoint, files five minutes old": ("checkpoint_files",),
    "checkpoint, five minutes old, MB": ("checkpoint_bytes",),
}
_JOURNALS = "journals of the outputs, MB"


def write(
    directory: Path, head: Sequence[str], samples: Sequence[Sample], judged: Sequence[Judged], violations: Sequence[str]
) -> None:
    """Write the files `soak.md` and `soak.svg`."""
    (directory / "soak.md").write_text("\n".join([*head, "", *table(judged), "", *_verdict(violations), ""]))
    (directory / "soak.svg").write_text(plots(samples))


def table(judged: Sequence[Judged]) -> list[str]:
    """Return one line of Markdown a reading."""
    lines = [
        "| subject | reading | begin | end | lowest | highest | an hour | allowed growth | minutes | |",
        "| --- | --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: | --- |",
    ]
    for each in judged:
        numbers = (each.first, each.last, each.lowest, each.highest, each.an_hour)
        shown = " | ".join(_shown(each.reading, number) for number in numbers)
        allowed = "" if each.allowed is None else _shown(each.reading, each.allowed)
        word = "not judged" if each.allowed is None else "GREW" if each.grew else "level"
        name = each.reading.replace("_bytes", ", MB").replace("_", " ")
        lines.append(f"| {each.subject} | {name} | {shown} | {allowed} | {each.seconds / 60:.0f} | {word} |")
    return lines


def _shown(reading: str, number: float) -> str:
    return f"{number / _MEGABYTE:.1f}" if reading.endswith("_bytes") else f"{number:.1f}"


def _verdict(violations: Sequence[str]) -> list[str]:
    return [f"- {violation}" for violation in violations] or ["No violation."]


def plots(samples: Sequence[Sample]) -> str:
    """Draw a panel a resource, with a line a process. A restart of the process breaks its line."""
    journals = sorted({name for sample in samples for name in sample.values if name.startswith("journal_")})
    panels = {**_PANELS, _JOURNALS: tuple(journals)}
    rows = -(-len(panels) // _COLUMNS)
    picture = Drawing(_COLUMNS * _PANEL.width, rows * _PANEL.height)
    end = max((sample.at_seconds for sample in samples), default=1.0) or 1.0
    for place, (title, readings) in enumerate(panels.items()):
        area = Area(place % _COLUMNS * _PANEL.width, place // _COLUMNS * _PANEL.height, _PANEL.width, _PANEL.height)
        _draw(picture, area, title, _lines(samples, readings), end)
    return picture.finished()


_Line = tuple[str, list[list[tuple[float, float]]]]  # a name, and points by life


def _lines(samples: Iterable[Sample], readings: Sequence[str]) -> list[_Line]:
    found: dict[str, dict[str, list[tuple[float, float]]]] = {}
    for sample in samples:
        for reading in readings:
            if reading in sample.values:
                name = reading[len("journal_") : -len("_bytes")] if reading.startswith("journal_") else sample.subject
                size = sample.values[reading] / (_MEGABYTE if reading.endswith("_bytes") else 1)
                found.setdefault(name, {}).setdefault(sample.life, []).append((sample.at_seconds, size))
    return [(name, list(lives.values())) for name, lives in found.items()]


def _draw(picture: Drawing, area: Area, title: str, lines: Sequence[_Line], end: float) -> None:
    picture.rectangle(area.x + 4, area.y + 4, area.width - 8, area.height - 8, "panel", rounded=4)
    picture.text(area.x + 14, area.y + 18, title, bold=True)
    x = area.x + _MARGIN_LEFT
    width = area.width - _MARGIN_LEFT - _MARGIN_RIGHT
    y = area.y + _MARGIN_TOP + 12
    height = area.height - _MARGIN_TOP - 12 - _MARGIN_BOTTOM
    most = max((value for _, lives in lines for life in lives for _, value in life), default=1.0) or 1.0
    for share in (0.0, 0.5, 1.0):
        level = y + height * (1 - share)
        picture.line([(x, level), (x + width, level)], "line")
        picture.text(x - 6, level + 4, f"{most * share:,.0f}", size=9, color="faint", anchor="end")
        picture.text(
            x + width * share, y + height + 14, f"{end * share / 60:.0f} min", size=9, color="faint", anchor="middle"
        )
    at = area.x + 14.0
    for place, (name, lives) in enumerate(lines):
        color = SERIES[place % len(SERIES)]
        picture.text(at, area.y + 32, name, size=9, color=color)
        at += len(name) * 5.2 + 10
        for life in lives:
            picture.line([(x + width * when / end, y + height * (1 - value / most)) for when, value in life], color)
