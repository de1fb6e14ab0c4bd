"""Make foreign text harmless in a log, on a terminal and in JSON, and log the same trouble once a minute."""

from __future__ import annotations

import re
import time

_ODD_IN_LABELS = frozenset("\\<")


def printable(text: str, longest: int | None = None) -> str:
    """Return the text with every line end, control and direction character escaped, cut behind `longest` characters."""
    if longest is not None and len(text) > longest:
        text = text[:longest] + "…"
    if text.isprintable():
        return text
    return "".join(
        character if character.isprintable() else character.encode("unicode_escape").decode() for character in text
    )


def label_value(text: str) -> str:
    """Return the text as a label, with the begin of a chat's markup escaped, too. Different texts stay different."""
    if text.isprintable() and not _ODD_IN_LABELS.intersection(text):
        return text
    return text.encode("unicode_escape").decode().replace("<", r"\x3c")


def printable_json(line: bytes) -> bytes:
    """Return the JSON with each unprintable character as an escape. The value does not change.

    The JSON has no line ends between its values, as in one object per line.
    """
    if line.isascii() and b"\x7f" not in line:
        return line  # an encoder escapes the other control characters itself
    return "".join(map(_json_escape, line.decode())).encode()


def _json_escape(character: str) -> str:
    if character.isprintable():
        return character
    units = character.encode("utf-16-be")
    return "".join(f"\\u{units[at : at + 2].hex()}" for at in range(0, len(units), 2))


_PAUSE_SECONDS = 60.0


class Complaints:
    """Number of occurrences of one trouble since its last log line, for one thread."""

    def __init__(self, pause_seconds: float = _PAUSE_SECONDS) -> None:
        self._pause_seconds = pause_seconds
        self._count = 0
        self._next_at = 0.0

    def due(self) -> int:
        """Count an occurrence. Return the number since the last log line, or 0 if the next log line is not due yet."""
        self._count += 1
        if time.monotonic() < self._next_at:
            return 0
        count, self._count = self._count, 0
        self._next_at = time.monotonic() + self._pause_seconds
        return count


class Reasons:
    """The reasons of one outage. Each is news once, whatever its numbers."""

    def __init__(self) -> None:
        self._known: set[str] = set()

    def is_new(self, reason: str) -> bool:
        """Return whether this reason was not given before, and remember it."""
        kind, before = re.sub(r"\d[\d,.]*", "", reason), len(self._known)
        self._known.add(kind)
        return len(self._known) > before
