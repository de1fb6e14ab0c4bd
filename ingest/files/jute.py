"""Reader of Jute, ZooKeeper's serialization, with big-endian numbers, and bytes and texts after their length."""

from __future__ import annotations

import struct
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

_INT: Final = struct.Struct(">i")
_LONG: Final = struct.Struct(">q")
# Far above any jute.maxbuffer. A damaged length must not cause an allocation.
_MOST_BYTES: Final = 1 << 28


class JuteError(ValueError):
    """Unexpected bytes, or bytes that end too early."""


class DamagedFileError(Exception):
    """A file of ZooKeeper that is good only up to `offset`. `torn` means that no data follows the damage."""

    def __init__(self, path: Path, offset: int, reason: str, *, torn: bool = False) -> None:
        super().__init__(f"{path} cannot be read from byte {offset} on: {reason}")
        self.path = path
        self.offset = offset
        self.torn = torn


class Jute:
    """Reader of one value after another. Raise JuteError. `read` returns fewer bytes than requested only at the end."""

    __slots__ = ("_read",)

    def __init__(self, read: Callable[[int], bytes]) -> None:
        self._read = read

    def take(self, count: int) -> bytes:
        """Return exactly this number of bytes. Raise JuteError if there are fewer."""
        taken = self._read(count)
        if len(taken) != count:
            raise JuteError(f"{count} bytes expected, {len(taken)} found")
        return taken

    def fields(self, layout: struct.Struct) -> tuple[Any, ...]:
        """Return the numbers that this layout describes."""
        return layout.unpack(self.take(layout.size))

    def integer(self) -> int:
        """Return a signed 32-bit number."""
        return int(_INT.unpack(self.take(4))[0])

    def long(self) -> int:
        """Return a signed 64-bit number."""
        return int(_LONG.unpack(self.take(8))[0])

    def boolean(self) -> bool:
        """Return a truth value of one byte."""
        return self.take(1) != b"\0"

    def buffer(self) -> bytes | None:
        """Return the bytes, unless ZooKeeper wrote a null."""
        length = self.integer()
        if not -1 <= length <= _MOST_BYTES:
            raise JuteError(f"a length of {length} bytes")
        return None if length < 0 else self.take(length)

    def text(self) -> str:
        """Return a text. Bytes that are not UTF-8 are replaced, because Kafka never writes such paths."""
        return (self.buffer() or b"").decode("utf-8", "replace")

    def count(self) -> int:
        """Return the number of elements that follow."""
        return max(0, self.integer())

    def skip_acl(self) -> None:
        """Pass over a list of permissions."""
        for _ in range(self.count()):
            self.integer()
            self.buffer()
            self.buffer()
