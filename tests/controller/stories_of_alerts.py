"""Stories of all kinds of alerts, read from `stories_of_alerts.txt`, for any count of partitions, topics or brokers."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from tests.controller.trace_language import obey, opened
from tests.controller.znode_history import ZnodeHistory

_PLACES = re.compile(r"[^,=;\s|]+(?:\|[^,=;\s|]+)+")
_LISTS = re.compile(r"[^,=:;\s+]+(?:\+[^,=:;\s+]+)+")


class Story(NamedTuple):
    """Beginning and end of an alert of one kind, as lines of commands."""

    kind: str
    title: str
    begin: tuple[str, ...]
    end: tuple[str, ...]

    @property
    def counts(self) -> bool:
        """Return whether the story depends on a count."""
        return any(line.startswith("each ") or "*" in line or _LISTS.search(line) for line in self.begin)

    def opened(self, count: int = 1) -> ZnodeHistory:
        """Return the history up to the open alert."""
        history, commands = opened([*_commands(self.begin, count)])
        obey(history, commands)
        return history

    def ended(self, count: int = 1) -> ZnodeHistory:
        """Return the whole history."""
        history = self.opened(count)
        obey(history, _commands(self.end, count))
        return history


def _commands(lines: tuple[str, ...], count: int) -> Iterator[str]:
    """Yield the single commands of a story that is told with this count."""
    for line in lines:
        repeated, rest = [line], line
        if line.startswith("each "):
            rest = line.removeprefix("each ")
            places = min([count, *(part.count("|") + 1 for part in _PLACES.findall(rest))])
            repeated = [_at(rest, place) for place in range(places)]
        elif line.startswith("repeat "):
            _, times, rest = line.split(" ", 2)
            repeated = [rest] * int(times)
        for each in repeated:
            for command in each.split("; "):
                yield " ".join(_arguments(command, count))


def _at(line: str, place: int) -> str:
    """Return a repeated line at its place."""
    line = _PLACES.sub(lambda found: found[0].split("|")[place], line)
    return line.replace("*", str(place)).replace("#", str(place + 1))


def _arguments(command: str, count: int) -> Iterator[str]:
    for argument in command.split(" "):
        some = _LISTS.sub(lambda found: ",".join(found[0].split("+")[:count]), argument)
        yield from [some.replace("*", str(number)) for number in range(count)] if "*" in some else [some]


def _stories() -> Iterator[Story]:
    text = Path(__file__).with_suffix(".txt").read_text(encoding="utf-8")
    for block in re.split(r"\n\n+", text.strip()):
        head, *lines = [line for line in block.splitlines() if not line.startswith("#")] or [""]
        if head:
            kind, title = head.split(": ", 1)
            middle = lines.index("----")
            yield Story(kind, title, tuple(lines[:middle]), tuple(lines[middle + 1 :]))


STORIES = tuple(_stories())
