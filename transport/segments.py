"""How a journal lies on disk: its directory, its segment files, where its committed part ends, and what can be wrong.

Here belongs what the writer and the readers of a journal must agree on. Not here: appending and reading (`journal`).
"""

from __future__ import annotations

import json
import mmap
import os
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

JOURNAL_FORMAT = 1
FORMAT_FILE = "journal.json"
MARKER_PREFIX = b"#batch "

_SEGMENT_NAME = re.compile(r"[0-9]{20}\.log")
_MARKER = re.compile(rb"\n#batch ([0-9]+)(?=\n)")
_FIRST_TAIL_BYTES = 4096


class JournalError(Exception):
    """A journal that cannot be used, in one sentence."""


class NewerJournalError(JournalError):
    """A journal that a newer Kontrast wrote."""


class JournalLockedError(JournalError):
    """A journal that another process is writing."""


class JournalFullError(JournalError):
    """No room for what was to be appended; nothing of it was kept."""


class OffsetGoneError(JournalError):
    """An offset that retention has dropped; `earliest` is the first that is left."""

    def __init__(self, directory: Path, offset: int, earliest: int) -> None:
        super().__init__(directory, offset, earliest)
        self.earliest = earliest

    def __str__(self) -> str:
        directory, offset, earliest = self.args
        return f"journal {directory}: offset {offset} was dropped by retention, the earliest left is {earliest}"


class ForeignOffsetError(JournalError):
    """An offset that this journal never gave: beyond its end or inside a line; `end` is its end."""

    def __init__(self, directory: Path, offset: int, end: int) -> None:
        super().__init__(directory, offset, end)
        self.end = end

    def __str__(self) -> str:
        directory, offset, end = self.args
        return (
            f"journal {directory}: offset {offset} is not the start of a line (the journal ends at {end}); "
            "it was replaced or lost its tail, so start again without the old checkpoint"
        )


@dataclass(frozen=True, slots=True)
class Segment:
    """One file of a journal; `start` is the journal's offset of its first byte."""

    start: int
    path: Path


@dataclass(frozen=True, slots=True)
class Tail:
    """Where the committed part of a journal ends, and the batch that it ends with (-1: no batch)."""

    offset: int
    batch_id: int = -1


def segment_at(directory: Path, start: int) -> Segment:
    """The segment that starts at this offset, whether it is there or not."""
    return Segment(start, directory / f"{start:020d}.log")


def list_segments(directory: Path) -> tuple[Segment, ...]:
    """The segments in order of their offsets; none for a directory that does not exist."""
    try:
        names = os.listdir(directory)
    except FileNotFoundError:
        return ()
    except OSError as error:
        raise JournalError(f"journal {directory} cannot be read: {error.strerror}") from error
    return tuple(segment_at(directory, int(name[:20])) for name in sorted(names) if _SEGMENT_NAME.fullmatch(name))


def has_batches(directory: Path) -> bool | None:
    """Whether the journal is written in batches; None where no journal has been written yet."""
    path = directory / FORMAT_FILE
    try:
        settings = json.loads(path.read_bytes())
        journal_format = int(settings["format"])
    except FileNotFoundError:
        return None
    except OSError as error:
        raise JournalError(f"journal {directory} cannot be read: {error.strerror}") from error
    except (ValueError, KeyError, TypeError, RecursionError) as error:
        raise JournalError(f"{path} is damaged: expected {{'format': {JOURNAL_FORMAT}}}") from error
    if journal_format > JOURNAL_FORMAT:
        raise NewerJournalError(
            f"journal {directory} has format {journal_format}, newer than this Kontrast's {JOURNAL_FORMAT}: upgrade it"
        )
    return bool(settings.get("batches", False))


def write_format(directory: Path, *, batches: bool) -> None:
    """Declare the directory a journal, all at once: a reader sees the whole declaration or none."""
    draft = directory / f"{FORMAT_FILE}.new"
    draft.write_text(json.dumps({"format": JOURNAL_FORMAT, "batches": batches}) + "\n", encoding="ascii")
    draft.replace(directory / FORMAT_FILE)


def newest_lines(directory: Path, start: bytes) -> Iterator[bytes]:
    """The whole lines that begin like this, the newest first; each segment is looked through from its end."""
    for segment in reversed(list_segments(directory)):
        with segment.path.open("rb") as file:
            if not os.fstat(file.fileno()).st_size:
                continue
            with mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as content:
                end = content.rfind(b"\n") + 1
                while (found := content.rfind(start, 0, end)) >= 0:
                    if found == 0 or content[found - 1 : found] == b"\n":
                        yield content[found : content.find(b"\n", found)]
                    end = found


def find_tail(segments: tuple[Segment, ...], *, batches: bool) -> Tail:
    """The end of the last whole line or, in a journal of batches, of the last batch marker.

    What lies behind is torn: an append that was cut short, or a batch that was never completed.
    """
    for segment in reversed(segments):
        with segment.path.open("rb") as file:
            size = os.fstat(file.fileno()).st_size
            for position, tail in _growing_tails(file.fileno(), size):
                found = _last_marker(tail) if batches else _last_newline(tail)
                if found is not None:
                    return Tail(segment.start + position + found.offset, found.batch_id)
    return Tail(segments[0].start if segments else 0)


def _growing_tails(descriptor: int, size: int) -> Iterator[tuple[int, bytes]]:
    """Ever longer ends of a file; the whole file is given with a newline in front, so that each line follows one."""
    length = _FIRST_TAIL_BYTES
    while length < size:
        yield size - length, os.pread(descriptor, length, size - length)
        length *= 8
    if size:
        yield -1, b"\n" + os.pread(descriptor, size, 0)


def _last_newline(tail: bytes) -> Tail | None:
    offset = tail.rfind(b"\n") + 1
    return Tail(offset) if offset else None


def _last_marker(tail: bytes) -> Tail | None:
    last = None
    for last in _MARKER.finditer(tail):  # noqa: B007 (only the last one is wanted)
        pass
    return None if last is None else Tail(last.end() + 1, int(last[1]))
