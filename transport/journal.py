"""The journal, an append-only log of lines in a directory, which is the embedded form of a stream.

This module has the writer, `journal_reading` the readers, `segments` and `pieces` the layout.

An offset is a byte position over all segments. A segment file is named by the offset of its first byte, so seeking
needs no index. One process writes, and any number of processes read meanwhile. Lines have no newline and never start
with `#`, which marks checksums.
"""

from __future__ import annotations

import os
import time
import uuid
from collections.abc import Callable, Sequence
from pathlib import Path

from transport.compaction import Standing, compact, remove
from transport.disk import NO_ROOM, RETAIN_BYTES, Fsync, force, no_room
from transport.journal_lock import lock, unlock
from transport.pieces import END, BatchMark, checksum, sealed
from transport.segments import (
    JournalError,
    JournalFormat,
    JournalFullError,
    JournalLockedError,
    JournalRemovedError,
    Segment,
    all_segments,
    find_tail,
    list_segments,
    open_private,
    read_format,
    segment_at,
    write_format,
)

_SEGMENT_BYTES = 64 * 1024**2

# More than can be lost in a crash, because a forwarder writes less within the second that is not forced to disk, and
# within the half minute for which the machine may keep it.
_LOST_AT_MOST_BYTES = 256 * 1024**2
_COMPACT_AGAIN_SECONDS = 60.0
_CHECK_SECONDS = 0.1  # a tenth of the guaranteed time, because a look costs as much as a short append's write


def _segment_bytes_for(retain_bytes: int | None) -> int:
    """Return the size of a segment, a quarter of a small retention, which drops whole segments only."""
    return _SEGMENT_BYTES if retain_bytes is None else min(_SEGMENT_BYTES, max(1, retain_bytes // 4))


class JournalWriter:
    """The only writer of a journal. Its start cuts off the incomplete end of an earlier writer.

    With `batches`, lines arrive by `append_batch`, otherwise by `append`. Lines that readers could see are never taken
    back. `retain_bytes` and `retain_seconds` limit the journal by dropping the oldest whole segments, never the newest.
    With `standing`, current lines of the dropped segments stay. A removed journal continues from `begin` under its old
    `identity`, so that readers see a hole. Raise JournalError with a sentence for an unusable directory.
    """

    def __init__(  # noqa: PLR0913 (settings with defaults)
        self,
        directory: Path,
        *,
        fsync: Fsync = Fsync.INTERVAL,
        fsync_interval_seconds: float = 1.0,
        segment_bytes: int | None = None,
        retain_bytes: int | None = RETAIN_BYTES,
        retain_seconds: float | None = None,
        batches: bool = False,
        standing: Callable[[], Standing] | None = None,
        begin: int = 0,
        identity: str = "",
    ) -> None:
        self._directory = directory
        self._fsync = fsync
        self._fsync_interval_seconds = fsync_interval_seconds
        self._segment_bytes = _segment_bytes_for(retain_bytes) if segment_bytes is None else segment_bytes
        self._retain_bytes = retain_bytes
        self._retain_seconds = retain_seconds
        self._batches = batches
        self._standing = standing
        self._compact_at = 0.0
        self._compact_bytes = 0  # compacting fewer bytes is not worth the copy
        self._synced_at = time.monotonic()
        self._check_at = 0.0
        self._locks = lock(directory)
        self._file = -1
        self._end = 0
        self._last_batch = BatchMark(-1)
        try:
            self._segments = self._recover(begin, identity or uuid.uuid4().hex)
            self._open_segment(self._segments[-1])
        except OSError as error:
            self.close()
            if error.errno in NO_ROOM:
                raise JournalFullError(f"journal {directory}: {no_room(directory)}") from error
            raise JournalError(f"journal {directory} cannot be opened for writing: {error.strerror}") from error
        except BaseException:
            self.close()
            raise

    @property
    def end_offset(self) -> int:
        """Return the offset after the last appended line."""
        return self._end

    @property
    def identity(self) -> str:
        """Return a text that differs from that of every earlier journal in this place."""
        return self._format.identity

    @property
    def last_batch_id(self) -> int:
        """Return the number of the newest batch in the journal, or -1."""
        return self._last_batch.number

    def append(self, lines: Sequence[bytes]) -> int:
        """Write all lines or no line, and return the new end offset.

        Raise JournalFullError or JournalRemovedError. A JournalError means that the lines are written but not forced to
        disk. They may be written again.
        """
        if self._batches:
            raise ValueError("a journal of batches is written with append_batch")
        _check(lines)
        if lines:
            self._write(sealed(lines, self._end, END))
        return self._end

    def append_batch(self, number: int, lines: Sequence[bytes], source: bytes = b"") -> bool:
        """Write the lines and the mark that completes the batch. Return False if it is already the newest batch.

        `source` names the covered part of the source. A different batch with an older number is written too, so its
        rows repeat.
        """
        if not self._batches:
            raise ValueError("open the journal with batches=True to write batches")
        _check(lines)
        batch = BatchMark(number, checksum(source), checksum(b"\n".join(lines)))
        newest = self._last_batch
        if batch == newest or (newest.source is None and number == newest.number):
            return False
        self._write(sealed(lines, self._end, batch.words()))
        self._last_batch = batch
        return True

    def add_to_last_batch(self, lines: Sequence[bytes]) -> None:
        """Write lines behind the newest batch under its mark. There must be a batch."""
        _check(lines)
        self._write(sealed(lines, self._end, self._last_batch.words()))

    def check(self) -> None:
        """Raise JournalRemovedError if readers no longer find the written lines."""
        if not self._locks:
            raise JournalRemovedError(f"journal {self._directory} was closed when it was removed")
        try:
            is_there = os.path.samestat(os.stat(self._directory), os.fstat(self._locks[0]))
            is_there = is_there and os.fstat(self._file).st_nlink > 0
        except FileNotFoundError:
            is_there = False
        except OSError as error:
            raise JournalError(f"journal {self._directory} cannot be read: {error.strerror}") from error
        if not is_there:
            raise JournalRemovedError(f"journal {self._directory} was removed or replaced while it was written")
        self._check_at = time.monotonic() + _CHECK_SECONDS

    def close(self) -> None:
        """Force the appended lines to disk unless forcing is off, and admit the next writer."""
        if self._file >= 0:
            if self._fsync is not Fsync.NEVER:
                os.fdatasync(self._file)
                os.ftruncate(self._locks[1], 0)  # no line can be lost any more
            os.close(self._file)
            self._file = -1
        unlock(self._locks)
        self._locks = ()

    def __enter__(self) -> JournalWriter:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _recover(self, begin: int, identity: str) -> list[Segment]:
        """Cut off the uncommitted end and declare the format. The last segment continues."""
        declared = self._read_format()
        segments = list_segments(self._directory)
        tail = find_tail(segments, declared or JournalFormat(self._batches))
        self._last_batch = tail.batch
        kept = [segment for segment in segments if segment.start <= tail.offset]
        remove(segment for segment in all_segments(self._directory) if segment not in kept)
        if kept:
            os.truncate(kept[-1].path, tail.offset - kept[-1].start)
        self._end = max(tail.offset, begin, self._first_safe_offset(tail.offset))
        if declared is None or not declared.identity:
            # Lines of an older Kontrast have no checksums, so lines with checksums start a segment.
            declared = JournalFormat(self._batches, 0 if declared is None else self._end, identity)
            write_format(self._directory, declared, fsync=self._fsync is not Fsync.NEVER)
        self._format = declared
        goes_on = kept and not kept[-1].compacted and self._end == tail.offset
        if not goes_on or kept[-1].start < declared.checked_from:
            kept = [
                *(segment for segment in kept if segment.start != self._end),
                segment_at(self._directory, self._end),
            ]
        return kept

    def _first_safe_offset(self, end: int) -> int:
        """Return the offset to continue at. After a crash of the machine it is beyond lines that may be lost."""
        held, boot = self._locks[1], _boot()
        earlier = os.pread(held, 64, 0)
        os.ftruncate(held, 0)
        if self._fsync is not Fsync.ALWAYS:
            os.pwrite(held, boot, 0)
        return end + _LOST_AT_MOST_BYTES if earlier and earlier != boot else end

    def _read_format(self) -> JournalFormat | None:
        declared = read_format(self._directory)
        if declared is not None and declared.batches is not self._batches:
            raise JournalError(
                f"journal {self._directory} is {'' if declared.batches else 'not '}one of batches. "
                "Choose another directory"
            )
        return declared

    def _open_segment(self, segment: Segment) -> None:
        self._file = open_private(segment.path, os.O_WRONLY | os.O_APPEND)
        if self._fsync is not Fsync.NEVER:
            force(self._directory)
            if segment.start == 0:  # a new journal, whose directories may be new too
                for above in list(self._directory.absolute().parents)[:2]:
                    force(above)

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
        # A removed file shows at once. A moved directory shows later, because a look at its path costs time.
        file = os.fstat(self._file)
        if file.st_nlink == 0 or time.monotonic() >= self._check_at:
            self.check()
        if file.st_size != self._end - self._segments[-1].start:
            raise JournalLockedError(f"another process has written journal {self._directory}. Stop one of the two")
        try:
            if self._end - self._segments[-1].start >= self._segment_bytes:
                self._roll()
            self._write_whole(block)
            self._sync_if_due()
        except OSError as error:
            if error.errno in NO_ROOM:
                raise JournalFullError(f"journal {self._directory}: {no_room(self._directory)}") from error
            raise JournalError(f"journal {self._directory} cannot be written: {error.strerror}") from error
        self._drop_old_segments()

    def _write_whole(self, block: bytes) -> None:
        """Write with one write(2) unless the disk is full. Take a failed write back before readers see its mark."""
        written = 0
        try:
            while written < len(block):
                written += os.write(self._file, block[written:] if written else block)
        except OSError:
            os.ftruncate(self._file, self._end - self._segments[-1].start)
            raise
        self._end += len(block)

    def _sync_if_due(self) -> None:
        if self._fsync is Fsync.NEVER:
            return
        now = time.monotonic()
        if self._fsync is Fsync.ALWAYS or now - self._synced_at >= self._fsync_interval_seconds:
            os.fdatasync(self._file)
            self._synced_at = now

    def _drop_old_segments(self) -> None:
        """Drop old segments. Call this after a write, when the newest segment holds a line and the newest mark."""
        old = 0
        while old < len(self._segments) - 1 and self._is_old(self._segments[old]):
            old += 1
        if old and self._standing is None:
            remove(self._segments[:old])
            del self._segments[:old]
        elif old and self._standing is not None and time.monotonic() >= self._compact_at:
            self._compact(self._standing, old)

    def _compact(self, standing: Callable[[], Standing], old: int) -> None:
        """Compact the old segments, with enough newer segments to make the repeated copy worthwhile."""
        starts = [segment.start for segment in self._segments]
        first = 1 if self._segments[0].compacted else 0
        enough = max(starts[1] - starts[0] if first else 0, self._compact_bytes)
        while starts[old] - starts[first] < enough:
            old += 1
            if old == len(starts):
                return
        batch = find_tail(tuple(self._segments[:old]), self._format).batch
        words = batch.words() if self._batches else END
        try:
            compacted = compact(self._directory, starts[0], starts[old], words, standing)
        except (OSError, JournalError):  # there is no space for the copy yet, so the old segments stay
            compacted = None
            self._compact_at = time.monotonic() + _COMPACT_AGAIN_SECONDS
        if compacted is None:
            self._compact_bytes = 2 * (starts[old] - starts[first])
        else:
            self._compact_bytes = 0
            self._segments[:old] = [compacted]

    def _is_old(self, segment: Segment) -> bool:
        if self._retain_bytes is not None and self._end - segment.start > self._retain_bytes:
            return True
        if self._retain_seconds is None:
            return False
        try:
            return time.time() - segment.path.stat().st_mtime > self._retain_seconds
        except FileNotFoundError:
            return True


def _check(lines: Sequence[bytes]) -> None:
    for line in lines:
        if b"\n" in line or line.startswith(b"#"):
            raise ValueError(f"a line may hold no newline and not start with '#': {line[:80]!r}")


def _boot() -> bytes:
    """Return a text that is unique to this run of the machine."""
    try:
        return Path("/proc/sys/kernel/random/boot_id").read_bytes().strip()
    except OSError:
        return b"unknown"
