"""Writes `pins.md`: every pin of `requirements/*.txt`, why it is pinned, and when it was last audited.

Run it by `make docs`. Days are those that `docs/audit.py` found and are kept for as long as the version stays; reasons
are those of decision 4.
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

_PIN = re.compile(
    r"^(?P<name>[A-Za-z0-9._-]+)==(?P<version>[^\s;]+)[^\n]*(?P<hashes>(?:\n +--hash=[^\n]+)*)", re.MULTILINE
)
_HASH = re.compile(r"--hash=sha256:([0-9a-f]{64})")
_REASON = re.compile(r"^\| `(?P<name>[A-Za-z0-9._-]+)(?:==|<|>=)[^`]*` \| (?P<why>.+) \|$", re.MULTILINE)
_DAY = r"\d{4}-\d\d-\d\d|never"
_LISTED = re.compile(
    rf"^\| (?P<name>[A-Za-z0-9._-]+) \| (?P<version>\S+) \| .* \| (?P<yanked>{_DAY}) \| (?P<vulnerable>{_DAY}) \|$",
    re.MULTILINE,
)
NEVER = "never"

_HEAD = """# The pins

Every package of `requirements/*.txt`, with where it is needed. This page is made by `make docs`; a test fails while a
pin is not in it. [Decision 4](decisions/0004-pins.md) has the reasons of pins that have one; each other pin is the
newest version that fitted at the last `make lock`.

`make audit` asks the index that pip is configured with about every pin, and `.ci/run` fails with it when a pinned file
was yanked or withdrawn, or has a vulnerability that the index knows of. The last two columns are the days on which it
was last found not to be yanked, and without a known vulnerability; `make audit AUDIT_ARGS=--write-days` renews them. A
new version begins at *never*. Where the second is *never* the index publishes no vulnerabilities (not every one has
`/pypi/NAME/VERSION/json`): look the pin up where they are published.

| package | version | needed by | why | not yanked | not vulnerable |
| --- | --- | --- | --- | --- | --- |
"""


class Pin(NamedTuple):
    """A package at one version."""

    name: str
    version: str


class Audited(NamedTuple):
    """The days on which a pin was last found to be neither yanked nor vulnerable."""

    yanked: str = NEVER
    vulnerable: str = NEVER


def pins() -> dict[Pin, tuple[str, ...]]:
    """Every pin in the order of names, and the files that have it."""
    found: dict[Pin, tuple[str, ...]] = {}
    for file in sorted(REQUIREMENTS.glob("*.txt")):
        for match in _PIN.finditer(file.read_text(encoding="utf-8")):
            pin = Pin(match["name"], match["version"])
            found[pin] = (*found.get(pin, ()), file.stem)
    return dict(sorted(found.items()))


def hashes() -> dict[Pin, frozenset[str]]:
    """SHA-256 of each file that a pin may be installed from."""
    found: dict[Pin, frozenset[str]] = {}
    for file in sorted(REQUIREMENTS.glob("*.txt")):
        for match in _PIN.finditer(file.read_text(encoding="utf-8")):
            pin = Pin(match["name"], match["version"])
            found[pin] = found.get(pin, frozenset()) | set(_HASH.findall(match["hashes"]))
    return found


def listed() -> dict[Pin, Audited]:
    """The pins that the page has now, with when each was audited."""
    page = PAGE.read_text(encoding="utf-8") if PAGE.exists() else ""
    return {
        Pin(match["name"], match["version"]): Audited(match["yanked"], match["vulnerable"])
        for match in _LISTED.finditer(page)
    }


def page(audited: Mapping[Pin, Audited]) -> str:
    """The page as it should be, with these days."""
    return _HEAD + "".join(f"{row}\n" for row in _rows(audited, _reasons()))


def _rows(audited: Mapping[Pin, Audited], reasons: Mapping[str, str]) -> Iterator[str]:
    for pin, files in pins().items():
        days = audited.get(pin, Audited())
        yield f"| {' | '.join((*pin, ', '.join(files), reasons.get(pin.name, ''), *days))} |"


def _reasons() -> dict[str, str]:
    decision = _REASONS.read_text(encoding="utf-8")
    return {match["name"]: match["why"] for match in _REASON.finditer(decision)}


if __name__ == "__main__":
    PAGE.write_text(page(listed()), encoding="utf-8")
