"""Layout of a journal on disk: directory, segment files, committed end, and errors."""

from __future__ import annotations

import contextlib
import json
import mmap
import os
import re
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from transport.pieces import BatchMark

JOURNAL_FORMAT = 2
FORMAT_FILE = "journal.json"

_SEGMENT_NAME = re.compile(r"(?P<start>[0-9]{20})(?:\.(?P<compacted>compacted|compacted-after-loss))?\.log")
_COMPACTED, _AFTER_LOSS = "compacted", "compacted-after-loss"
_END = re.compile(rb"\n#end [0-9a-f]{8}(?=\n)")
_BATCH = re.compile(rb"\n#batch ([0-9]+)(?: ([0-9a-f]{8}) ([0-9a-f]{8}) [0-9a-f]{8})?(?=\n)")
_FIRST_TAIL_BYTES = 4096
_NEVER = sys.maxsize
_KEYS = {"format": int, "batches": bool, "checked_from": int, "identity": str}
_OLDER_KEYS = {"format": int, "batches": bool}
# A writer creates the description before the first segment, and `rm -r` removes files one by one. Both take a moment
# that does not grow with the journal's lines.
_LOOKS = 10
_LOOK_SECONDS = 0.05
_LOST = (
    "Restore it. If you cannot, stop its writer and remove {directory}. Then start `kontrast watch`, and "
    "`kontrast stream --rebuild`, which writes the lost rows again"
)


class JournalError(Exception):
    """A journal that cannot be used, in one sentence."""


class NewerJournalError(JournalError):
    """A journal that a newer Kontrast wrote."""


class JournalLockedError(JournalError):
    """A journal that another process is writing."""


class JournalFullError(JournalError):
    """Lack of space for an append, which left no part behind."""


class JournalRemovedError(JournalError):
    """A journal whose files were removed or replaced while it was written."""


class OffsetGoneError(JournalError):
    """An offset that retention has dropped. `earliest` is the first remaining offset."""

    def __init__(self, directory: Path, offset: int, earliest: int) -> None:
        super().__init__(directory, offset, earliest)
        self.earliest = earliest

    def __str__(self) -> str:
        directory, offset, earliest = self.args
        return f"journal {directory}: offset {offset} was dropped by retention, the earliest left is {earliest}"


class ForeignOffsetError(JournalError):
    """An offset outside this journal, beyond its end or inside a line. `end` is its end."""

    def __init__(self, directory: Path, offset: int, end: int) -> None:
        super().__init__(directory, offset, end)
        self.end = end

    def __str__(self) -> str:
        directory, offset, end = self.args
        return (
            f"journal {directory}: offset {offset} is not the start of a line (the journal ends at {end}). "
            "It was replaced or lost its tail. Begin again with `kontrast stream --rebuild`"
        )


@dataclass(frozen=True, slots=True)
class JournalFormat:
    """Description of a journal. Each new journal has another `identity`.

    Segments that start before `checked_from` have no checksums.
    """

    batches: bool
    checked_from: int = 0
    identity: str = ""


@dataclass(frozen=True, slots=True)
class Segment:
    """One file of a journal. `start` is the offset of its first byte.

    A compacted segment replaces everything before its end and contains the current lines. With `after_loss` some
    current lines were damaged.
    """

    start: int
    path: Path
    compacted: bool = False
    after_loss: bool = False


@dataclass(frozen=True, slots=True)
class Tail:
    """The end of a journal's committed part, and the batch that it ends with."""

    offset: int
    batch: BatchMark = BatchMark(-1)


def segment_at(directory: Path, start: int) -> Segment:
    """Return the segment that starts at this offset, whether it is there or not."""
    return Segment(start, directory / f"{start:020d}.log")


def compacted_segment_at(directory: Path, start: int, *, after_loss: bool) -> Segment:
    """Return the compacted segment that starts at this offset, whether it is there or not."""
    name = f"{start:020d}.{_AFTER_LOSS if after_loss else _COMPACTED}.log"
    return Segment(start, directory / name, compacted=True, after_loss=after_loss)


def list_segments(directory: Path) -> tuple[Segment, ...]:
    """Return the segments in the order of their offsets, empty if the directory does not exist."""
    segments = all_segments(directory)
    newest = next((segment for segment in reversed(segments) if segment.compacted), None)
    if newest is None:
        return segments
    with contextlib.suppress(FileNotFoundError):  # a newer segment replaced it after the listing
        end = newest.start + newest.path.stat().st_size
        return (newest, *(segment for segment in segments if not segment.compacted and segment.start >= end))
    return list_segments(directory)


def all_segments(directory: Path) -> tuple[Segment, ...]:
    """Return the segments, including those that a compaction has replaced but not removed yet."""
    try:
        names = sorted(os.listdir(directory))
    except FileNotFoundError:
        return ()
    except OSError as error:
        raise JournalError(f"journal {directory} cannot be read: {error.strerror}") from error
    segments = []
    for match in filter(None, map(_SEGMENT_NAME.fullmatch, names)):
        start, kind = int(match["start"]), match["compacted"]
        if kind is None:
            segments.append(segment_at(directory, start))
        else:
            segments.append(compacted_segment_at(directory, start, after_loss=kind == _AFTER_LOSS))
    return tuple(segments)


def appearance(directory: Path) -> tuple[object, ...] | None:
    """Return what a look without reading shows: it differs after each append, segment, and replacement of the journal.

    Return None if the journal does not exist, or changes at this moment.
    """
    try:
        names = os.listdir(directory)
        declared = os.stat(f"{directory}/{FORMAT_FILE}")
        newest = max((name for name in names if name.endswith(".log")), default=FORMAT_FILE)
        return *names, declared.st_ino, declared.st_mtime_ns, os.stat(f"{directory}/{newest}").st_size
    except OSError:
        return None


def read_format(directory: Path) -> JournalFormat | None:
    """Return the description of the journal, if it has had a write.

    Segments without a description could be read only in part, so they raise JournalError.
    """
    for _ in range(_LOOKS):
        declared = _read_format(directory)
        if declared is not None or not all_segments(directory):
            return declared
        time.sleep(_LOOK_SECONDS)
    raise JournalError(f"{directory / FORMAT_FILE} is missing. {_LOST.format(directory=directory)}")


def _read_format(directory: Path) -> JournalFormat | None:
    path = directory / FORMAT_FILE
    try:
        settings = json.loads(path.read_bytes())
        journal_format = int(settings["format"])
        if journal_format <= JOURNAL_FORMAT:
            keys = _OLDER_KEYS if journal_format < JOURNAL_FORMAT else _KEYS
            if {key: type(value) for key, value in settings.items()} != keys:  # also if a bit of a key flipped
                raise ValueError(settings)
    except FileNotFoundError:
        return None
    except OSError as error:
        raise JournalError(f"journal {directory} cannot be read: {error.strerror}") from error
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError, OverflowError) as error:
        raise JournalError(f"{path} is damaged. {_LOST.format(directory=directory)}") from error
    if journal_format > JOURNAL_FORMAT:
        raise NewerJournalError(
            f"journal {directory} has format {journal_format}, newer than this Kontrast's {JOURNAL_FORMAT}. Upgrade "
            "Kontrast"
        )
    if journal_format < JOURNAL_FORMAT:
        return JournalFormat(settings["batches"], checked_from=_NEVER)
    return JournalFormat(settings["batches"], settings["checked_from"], settings["identity"])


def write_format(directory: Path, declared: JournalFormat, *, fsync: bool) -> None:
    """Declare a directory a journal. A reader sees the whole declaration or no declaration."""
    draft = directory / f"{FORMAT_FILE}.new"
    says = {
        "format": JOURNAL_FORMAT,
        "batches": declared.batches,
        "checked_from": declared.checked_from,
        "identity": declared.identity,
    }
    descriptor = open_private(draft, os.O_WRONLY | os.O_TRUNC)
    try:
        os.write(descriptor, json.dumps(says).encode() + b"\n")
        if fsync:
            os.fsync(descriptor)
    finally:
        os.close(descriptor)
    draft.replace(directory / FORMAT_FILE)


def newest_lines(directory: Path, start: bytes) -> Iterator[bytes]:
    """Return the whole lines with this beginning, newest first. Each segment is searched from its end."""
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


def open_private(path: Path, flags: int) -> int:
    """Open or create a private file. In a directory that others can read, they can read the file too."""
    return os.open(path, flags | os.O_CREAT | os.O_CLOEXEC, path.parent.stat().st_mode & 0o666)


def find_tail(segments: tuple[Segment, ...], declared: JournalFormat) -> Tail:
    """Return the end of the last whole append or, in a journal of batches, of the last whole batch.

    The rest is an append or batch that was cut short. Without checksums an append ends at any line. A new segment
    starts only if everything before it is committed or lost.
    """
    begun_at = segments[-1].start if segments else 0
    for segment in reversed(segments):
        checked = segment.compacted or segment.start >= declared.checked_from
        mark = _BATCH if declared.batches else _END if checked else None
        with segment.path.open("rb") as file:
            size = os.fstat(file.fileno()).st_size
            for position, tail in _growing_tails(file.fileno(), size):
                found = _last_mark(mark, tail)
                if found is not None:
                    return Tail(max(begun_at, segment.start + position + found.offset), found.batch)
    return Tail(begun_at)


def _growing_tails(descriptor: int, size: int) -> Iterator[tuple[int, bytes]]:
    """Yield ever longer ends of a file. The whole file has a newline in front, so that each line follows one."""
    length = _FIRST_TAIL_BYTES
    while length < size:
        yield size - length, os.pread(descriptor, length, size - length)
        length *= 8
    if size:
        yield -1, b"\n" + os.pread(descriptor, size, 0)


def _last_mark(mark: re.Pattern[bytes] | None, tail: bytes) -> Tail | None:
    """Return the end of the last batch or checked line, without a mark of the last line."""
    if mark is None:
        return Tail(tail.rfind(b"\n") + 1) if b"\n" in tail else None
    last = None
    for last in mark.finditer(tail):  # noqa: B007 (only the last one is wanted)
        pass
    if last is None:
        return None
    number, *sums = last.groups() or (b"-1",)
    return Tail(last.end() + 1, BatchMark(int(number), *(None if text is None else int(text, 16) for text in sums)))
