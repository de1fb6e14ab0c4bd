"""Pieces that were compressed one by one are one gzip file, whatever is in them."""

from __future__ import annotations

import gzip
import random
import zlib

from hypothesis import given, strategies as st

from dashboards.exporter.gzip_pieces import GzipFile, GzipPiece


@given(st.lists(st.binary(max_size=300), max_size=12))
def test_the_file_holds_the_pieces_in_their_order(contents):
    file = GzipFile.of(*map(GzipPiece.of, contents))
    whole = b"".join(contents)
    assert gzip.decompress(b"".join(file.compressed())) == whole  # which checks the CRC and the size
    assert file.size == len(whole)
    assert file.compressed_size == len(b"".join(file.compressed()))
    assert b"".join(file.plain()) == whole


def test_a_large_file_comes_in_small_parts_compressed_and_plain():
    noise = random.Random(1).randbytes(300_000)
    file = GzipFile.of(GzipPiece.of(noise), GzipPiece.of(b"a" * 5_000_000), *[GzipPiece.of(b"b")] * 1_000)
    whole = noise + b"a" * 5_000_000 + b"b" * 1_000
    compressed, plain = list(file.compressed()), list(file.plain())
    assert gzip.decompress(b"".join(compressed)) == b"".join(plain) == whole
    assert max(map(len, compressed + plain)) <= 1 << 17
    assert len(compressed) < 10


def test_it_is_one_member_for_clients_that_read_only_the_first():
    file = GzipFile.of(GzipPiece.of(b"a" * 100_000), GzipPiece.of(b"b" * 70_000), GzipPiece.of(b""))
    first = zlib.decompressobj(zlib.MAX_WBITS | 16)
    assert first.decompress(b"".join(file.compressed())) == b"a" * 100_000 + b"b" * 70_000
    assert (first.eof, first.unused_data) == (True, b"")


def test_a_piece_may_be_used_again_in_another_place():
    ends, middle = GzipPiece.of(b"end"), GzipPiece.of(bytes(range(256)) * 50)
    assert (
        gzip.decompress(b"".join(GzipFile.of(GzipPiece.joined([ends, middle]), ends).compressed()))
        == b"end" + bytes(range(256)) * 50 + b"end"
    )
