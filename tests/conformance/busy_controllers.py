"""Busy times of controllers by their own logs, because a large cluster is not quiet while a controller loads it.

Only the times belong here. `controller_log` reads the lines on transitions and requests.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import datetime, timezone
from pathlib import Path

STEP_MS = 500
TIME = re.compile(r"\[(\d{4}-\d\d-\d\d \d\d:\d\d:\d\d,\d{3})\]")
TOOK_OVER = re.compile(r"ncremented (?:epoch )?to \d+")
TAKEN_OVER = re.compile(r"Starting the controller scheduler|Resigning")


def busy_ms(recording: Path) -> list[int]:
    """Return times of a takeover, a move or a request, in order and half a second apart."""
    found: set[int] = set()
    for directory in recording.glob("logs*"):
        found.update(at_ms // STEP_MS for at_ms in _times(directory / "state-change.log"))
        for began_ms, ended_ms in _failovers(directory / "controller.log"):
            found.update(range(began_ms // STEP_MS, ended_ms // STEP_MS + 1))
    return [step * STEP_MS for step in sorted(found)]


def _failovers(log: Path) -> Iterator[tuple[int, int]]:
    began_ms, last_ms = 0, 0
    for at_ms, line in _lines(log):
        last_ms = at_ms
        if TOOK_OVER.search(line):
            began_ms = at_ms
        elif began_ms and TAKEN_OVER.search(line):
            yield began_ms, at_ms
            began_ms = 0
    if began_ms:
        yield began_ms, last_ms


def _times(log: Path) -> Iterator[int]:
    return (at_ms for at_ms, _ in _lines(log))


def _lines(log: Path) -> Iterator[tuple[int, str]]:
    second, in_ms = "", 0
    for line in log.read_text(errors="replace").splitlines():
        if match := TIME.match(line):
            text = match[1]
            if text[:19] != second:
                second = text[:19]
                at = datetime.strptime(second, "%Y-%m-%d %H:%M:%S").replace(tzinfo=timezone.utc)
                in_ms = int(at.timestamp()) * 1_000
            yield in_ms + int(text[20:]), line
