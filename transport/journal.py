"""The journal: an append-only log of lines in a directory, the embedded form of a stream.

Here belong its writer and its readers. Not here: what a line means, nor the files' layout (`segments`).

An offset is a byte position counted over all segments; a segment file is named by the offset of its first byte, so
seeking needs no index. One process writes at a time, any number read while it does. Lines are given and returned
without their newline and never start with `#`, which is kept for the markers that complete a batch.
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import os
import time
from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum
from pathlib import Path
from types import TracebackType

from transport.segments import (
    MARKER_PREFIX,
    ForeignOffsetError,
    JournalError,
    JournalFullError,
    JournalLockedError,
    NewerJournalError,
    OffsetGoneError,
    Segment,
    find_tail,
    has_batches,
    list_segments,
    segment_at,
    write_format,
)

__all__ = [
    "ForeignOffsetError",
    "Fsync",
    "JournalBatch",
    "JournalError",
    "JournalFullError",
    "JournalLockedError",
    "JournalWriter",
    "NewerJournalError",
    "OffsetGoneError",
    "earliest_offset",
    "end_offset",
    "read_journal",
]

_LOCK_FILE = "journal.lock"
_NO_ROOM = {errno.ENOSPC, errno.EDQUOT, errno.EFBIG}


class Fsync(Enum):
    """When appended lines are forced to disk. Only a crash of the machine, not of a process, can lose unforced ones."""

    ALWAYS = "always"  # before an append returns
    INTERVAL = "interval"  # by the first append after the interval, and at close
    NEVER = "never"  # whenever the operating system likes


@dataclass(frozen=True, slots=True)
class JournalBatch:
    """Whole lines of a journal, and the offset at which reading goes on."""

    lines: tuple[bytes, ...]
    next_offset: int


class JournalWriter:
    """The one writer of a journal; opening it cuts off what an earlier writer left half done.

    With `batches`, lines come by `append_batch` only, and an incomplete batch is cut off; else by `append`.
    `retain_bytes` and `retain_seconds` bound the journal by dropping whole segments, oldest first, never the newest.
    Raises JournalError with a sentence for a directory that cannot be used.
    """

    def __init__(  # noqa: PLR0913 (settings with defaults)
        self,
        directory: Path,
        *,
        fsync: Fsync = Fsync.INTERVAL,
        fsync_interval_seconds: float = 1.0,
        segment_bytes: int = 64 * 1024**2,
        retain_bytes: int | None = 4 * 1024**3,
        retain_seconds: float | None = None,
        batches: bool = False,
    ) -> None:
        self._directory = directory
        self._fsync = fsync
        self._fsync_interval_seconds = fsync_interval_seconds
        self._segment_bytes = segment_bytes
        self._retain_bytes = retain_bytes
        self._retain_seconds = retain_seconds
        self._batches = batches
        self._synced_at = time.monotonic()
        self._lock = _lock(directory)
        self._file = -1
        self._end = 0
        self._last_batch_id = -1
        try:
            self._declare()
            self._segments = self._recover()
            self._open_segment(self._segments[-1])
        except OSError as error:
            self.close()
            raise JournalError(f"journal {directory} cannot be opened for writing: {error.strerror}") from error
        except BaseException:
            self.close()
            raise

    @property
    def end_offset(self) -> int:
        """The offset behind the last appended line."""
        return self._end

    @property
    def last_batch_id(self) -> int:
        """The newest batch in the journal, -1 where there is none."""
        return self._last_batch_id

    def append(self, lines: Sequence[bytes]) -> int:
        """Write the lines, all or none, and return the new end offset; raises JournalFullError."""
        if self._batches:
            raise ValueError("a journal of batches is written with append_batch")
        _check(lines)
        self._write(_joined(lines))
        return self._end

    def append_batch(self, batch_id: int, lines: Sequence[bytes]) -> None:
        """Write the lines and the marker that completes the batch; one that is there already is skipped."""
        if not self._batches:
            raise ValueError("open the journal with batches=True to write batches")
        if batch_id <= self._last_batch_id:
            return
        _check(lines)
        self._write(_joined(lines) + b"%b%d\n" % (MARKER_PREFIX, batch_id))
        self._last_batch_id = batch_id

    def close(self) -> None:
        """Force what was appended to disk, unless never asked to, and let the next writer in."""
        if self._file >= 0:
            if self._fsync is not Fsync.NEVER:
                os.fdatasync(self._file)
            os.close(self._file)
            self._file = -1
        if self._lock >= 0:
            os.close(self._lock)
            self._lock = -1

    def __enter__(self) -> JournalWriter:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.close()

    def _declare(self) -> None:
        declared = has_batches(self._directory)
        if declared is None:
            if list_segments(self._directory):
                raise JournalError(
                    f"{self._directory} holds segments but no journal.json: it is no journal, or damaged"
                )
            write_format(self._directory, batches=self._batches)
        elif declared is not self._batches:
            raise JournalError(
                f"journal {self._directory} is {'' if declared else 'not '}one of batches: choose another directory"
            )

    def _recover(self) -> list[Segment]:
        """Cut off everything behind the committed end; the segment that then is the last goes on."""
        segments = list_segments(self._directory)
        tail = find_tail(segments, batches=self._batches)
        self._end, self._last_batch_id = tail.offset, tail.batch_id
        kept = [segment for segment in segments if segment.start <= tail.offset]
        for segment in segments[len(kept) :]:
            segment.path.unlink()
        if not kept:
            return [segment_at(self._directory, tail.offset)]
        os.truncate(kept[-1].path, tail.offset - kept[-1].start)
        return kept

    def _open_segment(self, segment: Segment) -> None:
        self._file = os.open(segment.path, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o644)
        if self._fsync is not Fsync.NEVER:
            _sync_directory(self._directory)

    def _roll(self) -> None:
        if self._fsync is not Fsync.NEVER:
            os.fdatasync(self._file)
        full = self._file
        self._segments.append(segment_at(self._directory, self._end))
        try:
            self._open_segment(self._segments[-1])
        except OSError:
            self._segments.pop()
            raise
        os.close(full)

    def _write(self, block: bytes) -> None:
        if self._file < 0:
            raise ValueError("the journal is closed")
        try:
            if self._end - self._segments[-1].start >= self._segment_bytes:
                self._roll()
            self._write_whole(block)
            self._end += len(block)
        except OSError as error:
            if error.errno in _NO_ROOM:
                raise JournalFullError(f"journal {self._directory}: no room left, free some or add some") from error
            raise JournalError(f"journal {self._directory} cannot be written: {error.strerror}") from error
        self._drop_old_segments()

    def _write_whole(self, block: bytes) -> None:
        """One write(2) unless the disk is full; what fails is taken back."""
        written = 0
        try:
            while written < len(block):
                written += os.write(self._file, block[written:] if written else block)
            self._sync_if_due()
        except OSError:
            os.ftruncate(self._file, self._end - self._segments[-1].start)
            raise

    def _sync_if_due(self) -> None:
        if self._fsync is Fsync.NEVER:
            return
        now = time.monotonic()
        if self._fsync is Fsync.ALWAYS or now - self._synced_at >= self._fsync_interval_seconds:
            os.fdatasync(self._file)
            self._synced_at = now

    def _drop_old_segments(self) -> None:
        """Called after a write only, so the newest segment holds a line and, with batches, the newest marker."""
        while len(self._segments) > 1 and self._is_old(self._segments[0]):
            with contextlib.suppress(FileNotFoundError):
                self._segments[0].path.unlink()
            del self._segments[0]

    def _is_old(self, segment: Segment) -> bool:
        if self._retain_bytes is not None and self._end - segment.start > self._retain_bytes:
            return True
        if self._retain_seconds is None:
            return False
        try:
            return time.time() - segment.path.stat().st_mtime > self._retain_seconds
        except FileNotFoundError:
            return True


def earliest_offset(directory: Path) -> int:
    """The offset of the first line that is left; 0 for a journal that does not exist yet."""
    has_batches(directory)
    segments = list_segments(directory)
    return segments[0].start if segments else 0


def end_offset(directory: Path) -> int:
    """The offset behind the last whole line or complete batch; 0 for a journal that does not exist yet."""
    return _segments_and_end(directory)[1]


def read_journal(directory: Path, offset: int, max_bytes: int) -> JournalBatch:
    """Whole lines from the offset on, of about `max_bytes` (a longer line comes alone), across segments.

    A journal of batches is read up to its last complete batch, so a row is never seen before the batch it belongs to is
    sure. Reading while the writer appends is safe. Raises OffsetGoneError and ForeignOffsetError.
    """
    segments, end = _segments_and_end(directory)
    earliest = segments[0].start if segments else 0
    if offset < earliest:
        raise OffsetGoneError(directory, offset, earliest)
    if offset > end:
        raise ForeignOffsetError(directory, offset, end)
    lines: list[bytes] = []
    position = offset
    ends = (*(segment.start for segment in segments[1:]), end)
    for segment, segment_end in zip(segments, ends, strict=False):
        room = max_bytes - (position - offset)
        if position >= segment_end or (room <= 0 and position > offset):
            continue
        try:
            block = _read_lines(segment, position, min(segment_end, end), room, alone=position == offset)
        except FileNotFoundError:  # retention was faster
            if position == offset:
                raise OffsetGoneError(directory, offset, earliest_offset(directory)) from None
            break
        except ValueError:
            raise ForeignOffsetError(directory, offset, end) from None
        position += len(block)
        lines.extend(line for line in block.split(b"\n")[:-1] if not line.startswith(b"#"))
        if position < segment_end:
            break
    return JournalBatch(tuple(lines), position)


def _segments_and_end(directory: Path) -> tuple[tuple[Segment, ...], int]:
    batches = bool(has_batches(directory))
    while True:
        segments = list_segments(directory)
        try:
            return segments, find_tail(segments, batches=batches).offset
        except FileNotFoundError:  # retention dropped a segment between the listing and the look into it
            continue


def _read_lines(segment: Segment, position: int, end: int, max_bytes: int, *, alone: bool) -> bytes:
    """Whole lines of one segment; ValueError if the position is inside a line."""
    length = max(1, min(max_bytes, end - position))
    with segment.path.open("rb", buffering=0) as file:
        descriptor = file.fileno()
        local = position - segment.start
        if local and os.pread(descriptor, 1, local - 1) != b"\n":
            raise ValueError
        block = os.pread(descriptor, length, local)
        while alone and b"\n" not in block and position + len(block) < end:
            block += os.pread(descriptor, min(max(length, len(block)), end - position - len(block)), local + len(block))
            # Doubling finds the end of a long line in few reads; what follows it is cut off here.
            block = block[: block.find(b"\n") + 1 or None]
    return block[: block.rfind(b"\n") + 1]


def _check(lines: Sequence[bytes]) -> None:
    for line in lines:
        if b"\n" in line or line.startswith(b"#"):
            raise ValueError(f"a line may hold no newline and not start with '#': {line[:80]!r}")


def _joined(lines: Sequence[bytes]) -> bytes:
    return b"\n".join((*lines, b"")) if lines else b""


def _lock(directory: Path) -> int:
    try:
        directory.mkdir(parents=True, exist_ok=True)
        descriptor = os.open(directory / _LOCK_FILE, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
    except OSError as error:
        raise JournalError(f"journal {directory} cannot be created: {error.strerror}") from error
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        os.close(descriptor)
        raise JournalLockedError(
            f"journal {directory} is being written by another process: stop that one first"
        ) from error
    return descriptor


def _sync_directory(directory: Path) -> None:
    descriptor = os.open(directory, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
