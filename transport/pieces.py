"""Pieces of a segment, each of a few lines, closed by a mark with the piece's checksum.

A mark is a line that starts with `#`, so `grep -v '^#'` prints only the lines. `#part SUM` closes a piece inside an
append. `#end SUM` closes the last piece of an append. `#batch NUMBER SOURCE ROWS SUM` closes the last piece of a batch.
The sum covers the lines, the words of the mark and the offset. It detects changed, missing and moved pieces.
"""

from __future__ import annotations

import re
import zlib
from collections.abc import Iterator, Sequence
from typing import NamedTuple

PIECE_BYTES = 4096  # a flipped bit costs the lines of one piece
LONGEST_MARK_BYTES = 128
END = b"end"

_PART = b"part"
_WORDS = rb"part|end|batch [0-9]+ [0-9a-f]{8} [0-9a-f]{8}"
_MARK = re.compile(rb"#(%s) ([0-9a-f]{8})\n" % _WORDS)
_NEXT_MARK = re.compile(rb"\n#(?:%s) ([0-9a-f]{8})(?=\n)" % _WORDS)


class BatchMark(NamedTuple):
    """A batch as its mark names it. `source` and `rows` are None in journals without checksums."""

    number: int
    source: int | None = None  # the checksum of the covered part of the source
    rows: int | None = None  # the checksum of the batch's lines

    def words(self) -> bytes:
        """Return the words of the batch's mark before the sum."""
        return b"batch %d %08x %08x" % (self.number, self.source or 0, self.rows or 0)


class Piece(NamedTuple):
    """Undamaged lines with the offset of the first line."""

    offset: int
    lines: tuple[bytes, ...]


class CutPiece(NamedTuple):
    """The lines up to a mark. `end` is after the mark, and `lines` is None for a damaged piece."""

    end: int
    lines: tuple[bytes, ...] | None


def checksum(content: bytes) -> int:
    """Return a checksum that does not depend on an offset."""
    return zlib.crc32(content)


def sealed(lines: Sequence[bytes], offset: int, words: bytes) -> bytes:
    """Return the lines as pieces from the offset on, the last piece closed by a mark with these words."""
    if len(lines) == 1:  # as most appends have
        block = b"%b\n#%b" % (lines[0], words)
        return block + b" %08x\n" % zlib.crc32(block, _seed(offset))
    written: list[bytes] = []
    for content, is_last in _parts(lines):
        mark = b"#" + (words if is_last else _PART)
        mark += b" %08x\n" % zlib.crc32(mark, zlib.crc32(content, _seed(offset)))
        written += (content, mark)
        offset += len(content) + len(mark)
    return b"".join(written)


def good_pieces(buffer: bytes, offset: int, enough: int) -> tuple[list[Piece], int]:
    """Return the pieces from the beginning of the buffer, at the journal's `offset`, on.

    They end before the first damaged or incomplete piece, or before a piece that begins after `enough` bytes. The
    result includes the buffer position of that piece.
    """
    found: list[Piece] = []
    at = 0
    if buffer.startswith(b"#"):  # the mark of a batch without lines
        first = next_piece(buffer, 0, offset)
        if first is None or first.lines is None:
            return found, 0
        at = first.end
    content = memoryview(buffer)
    # Search for all marks at once. With short pieces `next_piece`, which searches for one, takes twice as long.
    for mark in _NEXT_MARK.finditer(buffer, max(0, at - 1)):
        if at >= enough:
            break
        begin, end = mark.span()
        # The sum covers everything before it except the space, and is seeded with the place.
        if zlib.crc32(content[at : end - 9], zlib.crc32(b"%d" % (offset + at))) != int(mark[1], 16):
            break
        if begin >= at:
            found.append(Piece(offset + at, tuple(buffer[at:begin].split(b"\n"))))
        at = end + 1
    return found, at


def next_piece(buffer: bytes, at: int, offset: int) -> CutPiece | None:
    """Return the piece at `at` of the buffer and the journal's `offset`, if the buffer has all of it."""
    mark = at if buffer.startswith(b"#", at) else buffer.find(b"\n#", at) + 1
    end = buffer.find(b"\n", mark) + 1
    if (mark == 0 and at != 0) or not end or not buffer.startswith(b"#", mark):
        return None
    match = _MARK.fullmatch(buffer, mark, end)
    if match is None or zlib.crc32(memoryview(buffer)[at : end - 10], _seed(offset)) != int(match[2], 16):
        return CutPiece(end, None)
    return CutPiece(end, tuple(buffer[at:mark].split(b"\n")[:-1]))


def _seed(offset: int) -> int:
    return zlib.crc32(b"%d" % offset)


def _parts(lines: Sequence[bytes]) -> Iterator[tuple[bytes, bool]]:
    """Return the lines with their ends, as many as fit into one piece. The last part may be empty."""
    begin, size = 0, 0
    for index, line in enumerate(lines):
        size += len(line) + 1
        if size >= PIECE_BYTES and index + 1 < len(lines):
            yield b"\n".join((*lines[begin : index + 1], b"")), False
            begin, size = index + 1, 0
    yield b"\n".join((*lines[begin:], b"")) if begin < len(lines) else b"", True
