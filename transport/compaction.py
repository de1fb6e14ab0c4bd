"""Compaction of a journal, which merges its oldest segments into one, beside readers and across a crash.

The new segment ends where the last replaced segment ends, and like any segment has the offset of its first byte as its
name. Readers take it whole, because offsets inside it belonged to other segments.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Protocol

from transport.disk import force
from transport.journal_reading import read_journal
from transport.pieces import sealed
from transport.segments import Segment, all_segments, compacted_segment_at, open_private

_READ_BYTES = 1024**2


class Standing(Protocol):
    """Choice of the lines that still hold, among many lines."""

    def add(self, line: bytes) -> None:
        """Take the next line into account."""

    def lines(self) -> Sequence[bytes]:
        """Return the lines that hold, in an order in which they may be read."""


def compact(directory: Path, begin: int, end: int, words: bytes, standing: Callable[[], Standing]) -> Segment | None:
    """Return the segment that replaces the offsets, if it saves space, closed by a mark with the words.

    Lines before a hole may be incomplete, so the new segment omits them.
    """
    kept = standing()
    offset, after_loss = begin, any(segment.after_loss for segment in all_segments(directory))
    while offset < end:
        batch = read_journal(directory, offset, min(_READ_BYTES, end - offset))
        if batch.hole is not None:
            kept, after_loss = standing(), True
        for line in batch.lines:
            kept.add(line)
        offset = batch.next_offset
    lines = kept.lines()
    size = len(sealed(lines, 0, words))  # offset 0 will do, because all sums have the same length
    if size >= end - begin:
        return None
    segment = compacted_segment_at(directory, end - size, after_loss=after_loss)
    _write(segment.path, sealed(lines, segment.start, words))
    remove(other for other in all_segments(directory) if other.start < end and other != segment)
    return segment


def remove(segments: Iterable[Segment]) -> None:
    """Remove the segments' files, wherever they still are."""
    for segment in segments:
        with contextlib.suppress(FileNotFoundError):
            segment.path.unlink()


def _write(path: Path, content: bytes) -> None:
    draft = path.with_suffix(".new")
    try:
        with open(open_private(draft, os.O_WRONLY | os.O_TRUNC), "wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        draft.replace(path)
    except OSError:
        with contextlib.suppress(OSError):
            draft.unlink()
        raise
    force(path.parent)
