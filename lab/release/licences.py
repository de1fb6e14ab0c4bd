"""Pin the jars again, with their licences from their POMs: `python -m lab.release.licences`.

It resolves every set and writes `artifacts.lock` and `artifacts.licences`, which records coordinates and licences of
every pinned jar. It rejects a jar without a licence, or under the GPL alone. Read the difference before you commit it.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple
from xml.etree import ElementTree

from streaming.errors import StreamError
from streaming.java.artifacts import LOCK_FILE, SETS, ArtifactSet, cache_directory, fetched, say, sha256

LICENCES_FILE = LOCK_FILE.with_suffix(".licences")
_SEPARATOR = "; "
_COORDINATES = ("groupId", "artifactId", "version")
_GPL = re.compile(r"\bA?GPL|(?<!Lesser )(?<!Library )General Public Licen[cs]e", re.IGNORECASE)
# The Classpath Exception and its abbreviations, under which other programs may use the library.
_MAY_BE_LINKED = re.compile(r"classpath|\bCP?E\b", re.IGNORECASE)


class LicenceError(StreamError):
    """A jar that Kontrast may not ship, or a damaged record. The sentence names the jar or the line."""


class Licensed(NamedTuple):
    """A Maven artifact, GROUP:NAME:VERSION, and its licences by the names in its POM."""

    coordinates: str
    licences: tuple[str, ...]


def licensed(jar: str, ivy_cache: Path) -> Licensed:
    """Return the artifact of this jar, by the POMs in Ivy's cache. Raise LicenceError."""
    for pom in sorted(ivy_cache.glob("*/*/ivy-*.xml.original")):
        group, name = pom.parts[-3:-1]
        version = pom.name.removeprefix("ivy-").removesuffix(".xml.original")
        prefix = f"{group}_{name}-{version}"
        if jar == f"{prefix}.jar" or jar.startswith(f"{prefix}-"):  # behind the dash is a classifier
            found = Licensed(f"{group}:{name}:{version}", tuple(_licences(pom, ivy_cache)))
            _check(jar, found)
            return found
    raise LicenceError(f"{jar} has no POM, so its licence is unknown. Leave it out of the request")


def line_of(file: str, artifact: Licensed) -> str:
    """Return the line of the record for this SET/FILE."""
    return f"{file}\t{artifact.coordinates}\t{_SEPARATOR.join(artifact.licences)}\n"


def read_licences(licences_file: Path) -> Mapping[str, Licensed]:
    """Return the artifacts by SET/FILE. Raise LicenceError, also for a licence that Kontrast may not ship."""
    read: dict[str, Licensed] = {}
    for number, line in enumerate(licences_file.read_text(encoding="utf-8").splitlines(), 1):
        try:
            file, coordinates, names = line.split("\t")
        except ValueError as error:
            raise LicenceError(f"{licences_file}, line {number} is damaged. Restore the committed file") from error
        read[file] = Licensed(coordinates, tuple(filter(None, names.split(_SEPARATOR))))
        _check(file, read[file])
    return read


def _check(jar: str, artifact: Licensed) -> None:
    if not artifact.licences:
        raise LicenceError(f"{jar} names no licence in its POMs. Leave it out of the request")
    if all(_GPL.search(name) and not _MAY_BE_LINKED.search(name) for name in artifact.licences):
        raise LicenceError(
            f"{jar} is under {_SEPARATOR.join(artifact.licences)} alone, which an Apache-2.0 program must not ship. "
            "Leave it out of the request"
        )


def _licences(pom: Path, ivy_cache: Path) -> Iterator[str]:
    """Yield the names in a POM, or else in its nearest parent with names."""
    project = ElementTree.parse(pom).getroot()
    names = [" ".join((name.text or "").split()) for name in project.findall("{*}licenses/{*}license/{*}name")]
    if names:
        yield from names
        return
    parent = project.find("{*}parent")
    if parent is None:
        return
    group, name, version = ((parent.findtext(f"{{*}}{part}") or "").strip() for part in _COORDINATES)
    above = ivy_cache / group / name / f"ivy-{version}.xml.original"
    if above.exists():
        yield from _licences(above, ivy_cache)


def relock(sets: Sequence[ArtifactSet], lock_file: Path) -> int:
    """Resolve every set again and write the lock file and the licences, with messages. Return 1 after an error's."""
    lines, licences = [], []
    try:
        for artifact_set in sets:
            say(f"resolving {artifact_set.name}")
            with fetched(cache_directory(), artifact_set) as jars:
                for jar in jars:
                    file = f"{artifact_set.name}/{jar.name}"
                    lines.append(f"{sha256(jar)}  {file}\n")
                    licences.append(line_of(file, licensed(jar.name, jar.parent.with_name("cache"))))
    except StreamError as error:
        say(f"error: {error}")
        return 1
    lock_file.write_text("".join(sorted(lines, key=lambda line: line.split()[1])))
    lock_file.with_suffix(".licences").write_text("".join(sorted(licences)), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(relock(SETS, LOCK_FILE))
