"""Writes `pins.md`: every pin of `requirements/*.txt`, why it is pinned, and when a person last looked at it.

Run it by `make docs`. Dates are written into the page by hand and kept for as long as the version stays; reasons are
those of decision 4.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import NamedTuple

_ROOT = Path(__file__).parents[1]
PAGE = _ROOT / "docs" / "pins.md"
REQUIREMENTS = _ROOT / "requirements"
_REASONS = _ROOT / "docs" / "decisions" / "0004-pins.md"

_PIN = re.compile(r"^(?P<name>[A-Za-z0-9._-]+)==(?P<version>[^\s;]+)", re.MULTILINE)
_REASON = re.compile(r"^\| `(?P<name>[A-Za-z0-9._-]+)(?:==|<|>=)[^`]*` \| (?P<why>.+) \|$", re.MULTILINE)
_LISTED = re.compile(
    r"^\| (?P<name>[A-Za-z0-9._-]+) \| (?P<version>\S+) \| .* \| (?P<audited>\d{4}-\d\d-\d\d|never) \|$", re.MULTILINE
)
_NEVER = "never"

_HEAD = """# The pins

Every package of `requirements/*.txt`, with where it is needed. This page is made by `make docs`; a test fails while a
pin is not in it. Why a pin stands where it does is said in [decision 4](decisions/0004-pins.md); where nothing is said
it is the newest that fitted at the last `make lock`.

*Audited* is the day on which a person last looked whether the release is known to be vulnerable or was yanked. Write
the day into the row by hand; it is kept until the version changes, then the pin has to be looked at again.

| package | version | needed by | why | audited |
| --- | --- | --- | --- | --- |
"""


class Pin(NamedTuple):
    """A package at one version."""

    name: str
    version: str


def pins() -> dict[Pin, tuple[str, ...]]:
    """Every pin in the order of names, and the files that have it."""
    found: dict[Pin, tuple[str, ...]] = {}
    for file in sorted(REQUIREMENTS.glob("*.txt")):
        for match in _PIN.finditer(file.read_text(encoding="utf-8")):
            pin = Pin(match["name"], match["version"])
            found[pin] = (*found.get(pin, ()), file.stem)
    return dict(sorted(found.items()))


def listed() -> dict[Pin, str]:
    """The pins that the page has now, with when each was audited."""
    page = PAGE.read_text(encoding="utf-8") if PAGE.exists() else ""
    return {Pin(match["name"], match["version"]): match["audited"] for match in _LISTED.finditer(page)}


def page() -> str:
    """The page as it should be, with the dates that it has."""
    return _HEAD + "".join(f"{row}\n" for row in _rows(listed(), _reasons()))


def _rows(audited: Mapping[Pin, str], reasons: Mapping[str, str]) -> Iterator[str]:
    for pin, files in pins().items():
        cells = (pin.name, pin.version, ", ".join(files), reasons.get(pin.name, ""), audited.get(pin, _NEVER))
        yield f"| {' | '.join(cells)} |"


def _reasons() -> dict[str, str]:
    decision = _REASONS.read_text(encoding="utf-8")
    return {match["name"]: match["why"] for match in _REASON.finditer(decision)}


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
