"""Write `controller/rules/setting_definitions.py` from Kafka's jars, and its checksum.

Run `python -m tests.conformance.kafka_settings.definitions`. Java reads Kafka's `ConfigDef` of each release. Equal
definitions of consecutive releases are one row.
"""

from __future__ import annotations

import hashlib
import re
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Final, NamedTuple

from controller.rules.releases import Release, read_release
from streaming.java.installation import find_java
from tests.older_releases import KAFKA_BROKERS, class_path_of

RELEASES: Final = tuple(sorted([*KAFKA_BROKERS, "3.9.2"], key=read_release))
TABLE: Final = Path(__file__).parents[3] / "controller" / "rules" / "setting_definitions.py"
CHECKSUM: Final = Path(__file__).with_name("setting_definitions.sha256")
_PROGRAM: Final = Path(__file__).with_name("KafkaSettings.java")
_RANGE: Final = re.compile(r"\[(-?[0-9.]+),\.\.\.(?:,(-?[0-9.]+))?\](?: or (-?[0-9]+))?")
_LIST_OF_CHOICES: Final = re.compile(r"\[(.*)\]")

# Before these releases the constructor of LogConfig refuses a value, and not its definition.
_BY_CONSTRUCTOR: Final = {"message.timestamp.type": "of CreateTime LogAppendTime", "message.format.version": "version"}

_HEAD: Final = '''\
"""Kafka's definitions of the settings in /config/topics and /config/brokers, by release, from its jars.

Made by `python -m tests.conformance.kafka_settings.definitions`. Read a row as: from the first release to the last one,
a value of the type must pass the check.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final, NamedTuple

from controller.rules.releases import Release


class Definition(NamedTuple):
    """Type and check of a setting from a release to another."""

    first: Release
    last: Release
    type: str
    check: str = ""


RELEASES: Final[tuple[Release, ...]] = ({releases})
"""The releases whose jars were read. A release in between is like the one before it."""

MESSAGE_FORMATS: Final = (
{formats}
)
"""The versions of message.format.version, oldest first."""
'''
_TABLE_HEAD: Final = """
{name}: Final[Mapping[str, tuple[Definition, ...]]] = MappingProxyType(
    {{
"""


class Row(NamedTuple):
    """A definition in one release."""

    kind: str
    name: str
    type: str
    check: str


def java(release: str, *arguments: str, text: str = "") -> list[str]:
    """Run the program with the jars of a release, and return its lines."""
    class_path = ":".join(map(str, class_path_of(release)))
    command = [str(find_java()), "-cp", class_path, str(_PROGRAM), *arguments]
    return subprocess.run(command, input=text, capture_output=True, text=True, check=True).stdout.splitlines()


def definitions(release: str) -> Iterator[Row]:
    """Yield the definitions of a release."""
    for line in java(release):
        kind, name, of_type, validator, shown, default = line.split("\t")
        yield Row(kind, name, of_type, _check(kind, name, validator, shown, default))


def _check(kind: str, name: str, validator: str, shown: str, default: str) -> str:
    validator = validator.rstrip("$").rpartition(".")[2]
    if validator == "ThrottledReplicaListValidator":
        return "replicas"
    if validator.endswith("VersionValidator"):
        return f"version up to {_choices(shown)[-1]}"
    if not validator:
        by_constructor = _BY_CONSTRUCTOR.get(name, "") if kind == "topic" else ""
        return f"version up to {default}" if by_constructor == "version" else by_constructor
    if validator in ("ConfigDef$ValidString", "ConfigDef$ValidList"):
        return ("list of " if validator == "ConfigDef$ValidList" else "of ") + " ".join(sorted(_choices(shown)))
    found = _RANGE.fullmatch(shown)
    assert found is not None, f"{name} has the check {validator} {shown}"
    least, most, other = found.groups()
    return f"{least} .. {most or ''}".rstrip() + (f" or {other}" if other else "")


def _choices(shown: str) -> list[str]:
    found = _LIST_OF_CHOICES.fullmatch(shown)
    assert found is not None, f"{shown} is no list"
    return found[1].split(", ")


def formats() -> list[str]:
    """Return the versions of the message format, from the newest release."""
    (shown,) = (line.split("\t")[4] for line in java(RELEASES[-1]) if "\tmessage.format.version\t" in line)
    return _choices(shown)


def table() -> str:
    """Return the text of the module."""
    by_name: dict[str, dict[str, list[tuple[Release, Release, str, str]]]] = {"topic": {}, "broker": {}}
    read = [read_release(release) for release in RELEASES]
    for at, release in enumerate(RELEASES):
        for row in definitions(release):
            spans = by_name[row.kind].setdefault(row.name, [])
            before = spans[-1] if spans else None
            if before is not None and before[1] == read[at - 1] and before[2:] == (row.type, row.check):
                spans[-1] = (before[0], read[at], row.type, row.check)
            else:
                spans.append((read[at], read[at], row.type, row.check))
    releases = ", ".join(map(str, read))
    versions = "\n".join(_wrapped(formats()))
    text = _HEAD.format(releases=releases, formats=versions)
    return text + _rows("TOPIC_SETTINGS", by_name["topic"]) + _rows("BROKER_SETTINGS", by_name["broker"])


def _wrapped(words: Sequence[str]) -> Iterator[str]:
    line = "   "
    for word in words:
        if len(line) + len(word) > 110:
            yield line
            line = "   "
        line += f' "{word}",'
    yield line


def _rows(name: str, settings: Mapping[str, Sequence[tuple[Release, Release, str, str]]]) -> str:
    text = _TABLE_HEAD.format(name=name)
    for setting, spans in sorted(settings.items()):
        rows = ", ".join(
            f'Definition({first}, {last}, "{of_type}"' + (f', "{check}")' if check else ")")
            for first, last, of_type, check in spans
        )
        text += f'        "{setting}": ({rows},),\n'
    return text + "    }\n)\n"


def checksum() -> str:
    """Return the checksum of the module."""
    return hashlib.sha256(TABLE.read_bytes()).hexdigest()


def main() -> None:
    """Write the module, format it, and write its checksum."""
    TABLE.write_text(table())
    subprocess.run([str(Path(sys.executable).parent / "ruff"), "format", "--quiet", str(TABLE)], check=True)
    CHECKSUM.write_text(f"{checksum()}\n")


if __name__ == "__main__":
    main()
