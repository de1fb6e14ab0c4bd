"""Compression of bytes inside Spark, which copies them a dozen times, to a twentieth of their size.

Only Kontrast's own Python reads them. They outlive no batch.
"""

from __future__ import annotations

import pyarrow as pa

_CODEC = "zstd"
_LEVEL = 1  # a gigabyte a second
_SIZE_BYTES = 8


def pack(content: bytes) -> bytes:
    """Compress the content and put its size in front."""
    packed: bytes = pa.Codec(_CODEC, compression_level=_LEVEL).compress(content, asbytes=True)
    return len(content).to_bytes(_SIZE_BYTES, "big") + packed


def unpack(packed: bytes) -> bytes:
    """Return the content that was packed."""
    size = int.from_bytes(packed[:_SIZE_BYTES], "big")
    content: bytes = pa.decompress(packed[_SIZE_BYTES:], decompressed_size=size, codec=_CODEC, asbytes=True)
    return content
