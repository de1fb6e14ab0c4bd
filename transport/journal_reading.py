"""Reader of whole lines of a journal from an offset during writes, past damaged or missing parts."""

from __future__ import annotations

import os
from bisect import bisect_right
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from transport.pieces import LONGEST_MARK_BYTES, Piece, good_pieces, next_piece
from transport.segments import (
    ForeignOffsetError,
    JournalFormat,
    OffsetGoneError,
    Segment,
    find_tail,
    list_segments,
    read_format,
)

_SEARCH_BYTES = 1024**2


@dataclass(frozen=True, slots=True)
class Hole:
    """A missing, cut or changed part of a journal."""

    path: Path  # the segment in which it begins
    begin: int
    end: int

    def __str__(self) -> str:
        return (
            f"{self.path}: {self.end - self.begin} bytes from offset {self.begin} to {self.end} are damaged or missing"
        )


@dataclass(frozen=True, slots=True)
class JournalBatch:
    """Whole lines of a journal, the offset at which reading goes on, and the hole before the lines, if there is one."""

    pieces: tuple[Piece, ...]
    next_offset: int
    hole: Hole | None = None
    compacted: bool = False  # lines before and between these were dropped, because newer lines replace them

    @property
    def lines(self) -> tuple[bytes, ...]:
        """Return the lines in order."""
        return tuple(line for piece in self.pieces for line in piece.lines)

    def placed(self) -> Iterator[tuple[int, bytes]]:
        """Yield each line with its offset."""
        for offset, lines in self.pieces:
            for line in lines:
                yield offset, line
                offset += len(line) + 1


def earliest_offset(directory: Path) -> int:
    """Return the offset of the first remaining line, or 0 for a journal that does not exist yet."""
    read_format(directory)
    segments = list_segments(directory)
    return segments[0].start if segments else 0


def is_complete(directory: Path) -> bool:
    """Return whether the journal still has every current line, with no segment dropped without compaction."""
    segments = list_segments(directory)
    return not segments or segments[0].start == 0 or (segments[0].compacted and not segments[0].after_loss)


def end_offset(directory: Path) -> int:
    """Return the offset after the last whole append or batch, or 0 for a journal that does not exist yet."""
    return _Layout.of(directory).end


def journal_identity(directory: Path) -> str:
    """Return a text that is unique to this journal, or an empty text if unknown."""
    declared = read_format(directory)
    return "" if declared is None else declared.identity


def read_journal(directory: Path, offset: int, max_bytes: int) -> JournalBatch:
    """Return whole lines from the offset on, about `max_bytes` (a longer piece comes alone), across segments.

    Reading stops at the last whole append or batch, so no line is taken back later. A hole replaces damaged lines. A
    compacted segment comes whole. The writer may append meanwhile. Raise OffsetGoneError and ForeignOffsetError.
    """
    layout = _Layout.of(directory)
    if offset < layout.earliest:
        raise OffsetGoneError(directory, offset, layout.earliest)
    if offset > layout.end:
        raise ForeignOffsetError(directory, offset, layout.end)
    try:
        return _Reading(layout, offset, max_bytes).batch()
    except FileNotFoundError:  # retention was faster
        raise OffsetGoneError(directory, offset, earliest_offset(directory)) from None
    except ValueError:
        raise ForeignOffsetError(directory, offset, layout.end) from None


@dataclass(frozen=True, slots=True)
class _Layout:
    """The segments of a journal at one moment, and its committed end."""

    declared: JournalFormat
    segments: tuple[Segment, ...]
    end: int

    @classmethod
    def of(cls, directory: Path) -> _Layout:
        declared = read_format(directory) or JournalFormat(batches=False)
        while True:
            segments = list_segments(directory)
            try:
                return cls(declared, segments, find_tail(segments, declared).offset)
            except FileNotFoundError:  # retention dropped a segment after it was listed
                continue

    @property
    def earliest(self) -> int:
        return self.segments[0].start if self.segments else 0

    def segment_of(self, offset: int) -> tuple[Segment, int]:
        """Return the segment with the offset, and its end for readers."""
        index = bisect_right(self.segments, offset, key=lambda segment: segment.start) - 1
        following = self.segments[index + 1 : index + 2]
        return self.segments[index], min(following[0].start, self.end) if following else self.end

    def is_checked(self, segment: Segment) -> bool:
        return segment.compacted or segment.start >= self.declared.checked_from


class _Reading:
    """Progress of one read."""

    def __init__(self, layout: _Layout, offset: int, max_bytes: int) -> None:
        self._layout = layout
        self._begin = self._position = offset
        self._max_bytes = max_bytes
        self._pieces: list[Piece] = []
        self._hole: Hole | None = None
        self._compacted = False

    def batch(self) -> JournalBatch:
        while self._position < self._layout.end and self._room() > 0:
            segment, end = self._layout.segment_of(self._position)
            if segment.compacted and self._position > segment.start:
                raise FileNotFoundError(segment.path)  # the lines were compacted
            try:
                with segment.path.open("rb", buffering=0) as file:
                    goes_on = self._read_segment(_SegmentFile(file.fileno(), segment, end))
            except FileNotFoundError:
                if self._pieces or self._hole:
                    break
                raise
            if not goes_on:
                break
        return JournalBatch(tuple(self._pieces), self._position, self._hole, self._compacted)

    def _room(self) -> int:
        """Return the number of bytes that may still be read, more than zero at the start."""
        read = self._position - self._begin
        return self._max_bytes - read if read else max(1, self._max_bytes)

    def _read_segment(self, file: _SegmentFile) -> bool:
        """Read as much as fits. Return False before a hole, because the next batch begins with the hole."""
        if file.segment.compacted:
            self._compacted = True
            self._max_bytes = file.end - self._position
        is_checked = self._layout.is_checked(file.segment)
        read = file.piece_at if is_checked else file.lines_at
        while self._position < file.end and self._room() > 0:
            if is_checked:
                begin = self._position
                pieces, self._position = file.good_pieces(begin, self._room())
                self._pieces += pieces
                if self._position > begin:
                    continue
            found = read(self._position, self._room())
            if found is not None:
                piece, self._position = found
                if piece.lines:
                    self._pieces.append(piece)
            elif self._pieces:
                return False
            else:
                end = file.next_good(self._position) if is_checked else file.end
                self._hole = Hole(file.segment.path, self._hole.begin if self._hole else self._position, end)
                self._position = end
        return True


class _SegmentFile:
    """An open segment, read up to the offset `end`."""

    def __init__(self, descriptor: int, segment: Segment, end: int) -> None:
        self.segment = segment
        self.end = end
        self._descriptor = descriptor
        self._buffer = b""
        self._buffered_at = -1

    def lines_at(self, offset: int, max_bytes: int) -> tuple[Piece, int] | None:
        """Return whole lines without checksums, if any, and the offset after them.

        Raise ValueError if the offset is inside a line.
        """
        if offset > self.segment.start and self._read(offset - 1, 1) not in (b"\n", b""):
            raise ValueError
        size = max_bytes
        while True:
            block = self._read(offset, min(size, self.end - offset))
            whole = block.rfind(b"\n") + 1
            if whole:
                # If a line exceeds the bytes to read, stop before it.
                whole = whole if size == max_bytes else block.find(b"\n") + 1
                lines = (line for line in block[:whole].split(b"\n")[:-1] if not line.startswith(b"#"))
                return Piece(offset, tuple(lines)), offset + whole
            if len(block) < size or offset + size >= self.end:
                return None
            size *= 2

    def good_pieces(self, offset: int, read_ahead: int) -> tuple[list[Piece], int]:
        """Return the undamaged pieces from the offset on and the offset after them.

        The list is empty if the offset is inside a piece, or the piece exceeds the bytes to read.
        """
        self._buffer, self._buffered_at = self._read(offset, LONGEST_MARK_BYTES + read_ahead), offset
        pieces, behind = good_pieces(self._buffer, offset, read_ahead)
        return pieces, offset + behind

    def piece_at(self, offset: int, read_ahead: int) -> tuple[Piece, int] | None:
        """Return the lines from the offset on in its piece, and the offset after the piece, None for a damaged piece.

        Raise ValueError if the offset is inside a line.
        """
        found = self._whole_piece(offset, read_ahead)
        if found is not None:
            return found
        begin = self._piece_begin(offset)
        around = self._whole_piece(begin, read_ahead) if begin < offset else None
        if around is None or around[1] <= offset:
            return None
        return _behind(offset, around[0]), around[1]

    def next_good(self, offset: int) -> int:
        """Return the offset of the next undamaged piece, or the end."""
        while offset < self.end:
            window = self._read(offset, _SEARCH_BYTES)
            at = 0
            while (mark := window.find(b"\n#", at)) >= 0 and (behind := window.find(b"\n", mark + 1) + 1):
                if self.piece_at(offset + behind, _SEARCH_BYTES) is not None:
                    return offset + behind
                at = behind - 1
            if len(window) < _SEARCH_BYTES:
                break
            offset += _SEARCH_BYTES - LONGEST_MARK_BYTES
        return self.end

    def _whole_piece(self, begin: int, read_ahead: int) -> tuple[Piece, int] | None:
        at, size = begin - self._buffered_at, LONGEST_MARK_BYTES + read_ahead
        cut = next_piece(self._buffer, at, begin) if 0 <= at < len(self._buffer) else None
        while cut is None:
            self._buffer, self._buffered_at = self._read(begin, size), begin
            cut = next_piece(self._buffer, 0, begin)
            if cut is None and len(self._buffer) < size:
                return None
            size *= 2
        return None if cut.lines is None else (Piece(begin, cut.lines), self._buffered_at + cut.end)

    def _piece_begin(self, offset: int) -> int:
        """Return the offset after the nearest mark before the given offset."""
        size = _SEARCH_BYTES
        while True:
            begin = max(self.segment.start, offset - size)
            window = self._read(begin, offset - begin)
            mark = window.rfind(b"\n#")
            if mark >= 0 or begin == self.segment.start:
                return begin + window.find(b"\n", mark + 1) + 1 if mark >= 0 else begin
            size *= 2

    def _read(self, offset: int, size: int) -> bytes:
        return os.pread(self._descriptor, max(0, min(size, self.end - offset)), offset - self.segment.start)


def _behind(offset: int, piece: Piece) -> Piece:
    """Return the lines of a piece from the offset on. Raise ValueError if the offset is inside a line."""
    begin = piece.offset
    for index, line in enumerate(piece.lines):
        if begin == offset:
            return Piece(offset, piece.lines[index:])
        begin += len(line) + 1
    raise ValueError
