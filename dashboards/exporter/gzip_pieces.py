"""Separately compressed pieces in one gzip file, so that a change costs only its piece (RFC 1951, RFC 1952).

The file has one gzip member, because some clients read only the first, and no library joins deflate streams. zlib-ng's
`crc32_combine` could replace the arithmetic below, but would add a compiled dependency for twenty lines.
"""

from __future__ import annotations

import struct
import zlib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

_LEVEL = 1
_HEADER = b"\x1f\x8b\x08\x00\x00\x00\x00\x00\x04\xff"  # deflate, no name, no time, fastest, unknown system
_EMPTY_LAST_BLOCK = b"\x03\x00"
_AT_ONCE_BYTES = 1 << 16

# CRC-32 takes data as a polynomial over GF(2), here with the coefficient of x^0 in the highest bit.
_REMAINDER_OF_X32 = 0xEDB88320
_ONE, _X8 = 1 << 31, 1 << 23


@dataclass(frozen=True, slots=True)
class GzipPiece:
    """Compressed data that another piece may follow. Joined pieces share their bytes."""

    deflated: tuple[bytes, ...]
    crc: int
    size: int  # before compression
    shift: int  # x^(8 * size), the factor of the CRC of all earlier data

    @classmethod
    def of(cls, data: bytes) -> GzipPiece:
        """Return the data, compressed."""
        compressor = zlib.compressobj(_LEVEL, zlib.DEFLATED, -zlib.MAX_WBITS)
        # A flush ends at a byte. The next piece has its own compressor and refers to no earlier data.
        deflated = compressor.compress(data) + compressor.flush(zlib.Z_SYNC_FLUSH)
        return cls((deflated,), zlib.crc32(data), len(data), _power_of_x8(len(data)))

    @classmethod
    def joined(cls, pieces: Iterable[GzipPiece]) -> GzipPiece:
        """Return the pieces as one, without compressing them again."""
        crc, size = 0, 0
        deflated: list[bytes] = []
        for piece in pieces:
            crc = _multiply(piece.shift, crc) ^ piece.crc
            size += piece.size
            deflated += piece.deflated
        return cls(tuple(deflated), crc, size, _power_of_x8(size))


@dataclass(frozen=True, slots=True)
class GzipFile:
    """A whole gzip file, and its size before compression."""

    parts: tuple[bytes, ...]
    size: int

    @classmethod
    def of(cls, *pieces: GzipPiece) -> GzipFile:
        """Return the pieces, one after the other."""
        whole = GzipPiece.joined(pieces)
        end = struct.pack("<LL", whole.crc, whole.size & 0xFFFFFFFF)
        return cls((_HEADER, *whole.deflated, _EMPTY_LAST_BLOCK, end), whole.size)

    @property
    def compressed_size(self) -> int:
        """Return the size of the file."""
        return sum(map(len, self.parts))

    def compressed(self) -> Iterator[bytes]:
        """Yield the file, a small part at a time."""
        held = bytearray()
        for part in self.parts:
            for begin in range(0, len(part), _AT_ONCE_BYTES):
                held += part[begin : begin + _AT_ONCE_BYTES]
                if len(held) >= _AT_ONCE_BYTES:
                    yield bytes(held)
                    held.clear()
        yield bytes(held)

    def plain(self) -> Iterator[bytes]:
        """Yield the content of the file in small parts."""
        decompressor = zlib.decompressobj(zlib.MAX_WBITS | 16)
        for rest in self.compressed():
            while rest:
                yield decompressor.decompress(rest, _AT_ONCE_BYTES)
                rest = decompressor.unconsumed_tail
        yield decompressor.flush()


def _multiply(left: int, right: int) -> int:
    """Return the product of two polynomials modulo CRC-32's."""
    product, bit = 0, _ONE
    while bit and right:
        if left & bit:
            product ^= right
        right = right >> 1 ^ _REMAINDER_OF_X32 if right & 1 else right >> 1
        bit >>= 1
    return product


def _power_of_x8(exponent: int) -> int:
    power, square = _ONE, _X8
    while exponent:
        if exponent & 1:
            power = _multiply(power, square)
        square = _multiply(square, square)
        exponent >>= 1
    return power
