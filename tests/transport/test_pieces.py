"""Pieces read together equal pieces read one by one, whatever is damaged."""

from __future__ import annotations

import pytest
from hypothesis import given, strategies as some

from transport.pieces import END, BatchMark, Piece, good_pieces, next_piece, sealed

_LINES = some.lists(some.binary(max_size=6).filter(lambda line: b"\n" not in line and not line.startswith(b"#")))
_APPENDS = some.lists(some.tuples(_LINES, some.sampled_from([END, BatchMark(7, 1, 2).words()])), max_size=6)


def written(appends, offset: int) -> bytes:
    buffer = b""
    for lines, words in appends:
        buffer += sealed(lines, offset + len(buffer), words)
    return buffer


def one_by_one(buffer: bytes, offset: int, enough: int) -> tuple[list[Piece], int]:
    found, at = [], 0
    while at < enough and (cut := next_piece(buffer, at, offset + at)) is not None and cut.lines is not None:
        found += [Piece(offset + at, cut.lines)] if cut.lines else []
        at = cut.end
    return found, at


@given(_APPENDS, some.integers(0, 10**6), some.integers(1, 400), some.integers(0, 10**6), some.integers(0, 255))
def test_together_as_one_by_one(appends, offset, enough, place, change):
    whole = written(appends, offset)
    damaged = bytearray(whole)
    if damaged:
        damaged[place % len(damaged)] ^= change
    for buffer in (whole, bytes(damaged), whole[: place % (len(whole) + 1)]):
        assert good_pieces(buffer, offset, enough) == one_by_one(buffer, offset, enough)


@pytest.mark.parametrize("lines", [[b""], [b"", b"x"], [b"x" * 5000], []])
def test_lines_come_back(lines):
    pieces, end = good_pieces(buffer := sealed(lines, 30, END), 30, 10**6)
    assert [line for piece in pieces for line in piece.lines] == lines
    assert end == len(buffer)
