"""Table of a soak, written into the directory of its samples."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from lab.soak.measurements import Sample
from lab.soak.verdict import Judged

_MEGABYTE = 1024 * 1024


def write(
    directory: Path, head: Sequence[str], samples: Sequence[Sample], judged: Sequence[Judged], violations: Sequence[str]
) -> None:
    """Write the file `soak.md`."""
    (directory / "soak.md").write_text("\n".join([*head, "", *table(judged), "", *_verdict(violations), ""]))


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
