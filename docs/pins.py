"""Writer of `reference/pins.md`, with the reason and last audit of every pin in `requirements/*.txt`.

`docs/audit.py` finds the days, which belong to one version of a package. The reasons come from decision 4.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import NamedTuple

_ROOT = Path(__file__).parents[1]
PAGE = _ROOT / "docs" / "reference" / "pins.md"
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

Look up here which part of Kontrast needs a package of `requirements/*.txt`. [Decision 4](../decisions/0004-pins.md)
explains special pins. Every other pin is the newest fitting version of the last `make lock`.

`make audit` asks pip's index about every pin. It fails for a yanked, withdrawn or vulnerable file, and so does
`.ci/run`. The last two columns show the days of the last clean audit. `make audit AUDIT_ARGS=--write-days`
renews them. A new version starts with *never*. If the last column stays *never*, the index publishes no
vulnerabilities. Look the pin up elsewhere.

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
    """Return every pin in the order of names, with the files that contain it."""
    found: dict[Pin, tuple[str, ...]] = {}
    for file in sorted(REQUIREMENTS.glob("*.txt")):
        for match in _PIN.finditer(file.read_text(encoding="utf-8")):
            pin = Pin(match["name"], match["version"])
            found[pin] = (*found.get(pin, ()), file.stem)
    return dict(sorted(found.items()))


def hashes() -> dict[Pin, frozenset[str]]:
    """Return the SHA-256 digests of the files that a pin may be installed from."""
    found: dict[Pin, frozenset[str]] = {}
    for file in sorted(REQUIREMENTS.glob("*.txt")):
        for match in _PIN.finditer(file.read_text(encoding="utf-8")):
            pin = Pin(match["name"], match["version"])
            found[pin] = found.get(pin, frozenset()) | set(_HASH.findall(match["hashes"]))
    return found


def listed() -> dict[Pin, Audited]:
    """Return the pins on the current page with the days of their audit."""
    page = PAGE.read_text(encoding="utf-8") if PAGE.exists() else ""
    return {
        Pin(match["name"], match["version"]): Audited(match["yanked"], match["vulnerable"])
        for match in _LISTED.finditer(page)
    }


def page(audited: Mapping[Pin, Audited]) -> str:
    """Return the page with these days of audits."""
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
