"""Requests as bytes, which are AddWatch (op 106) and MultiRead (op 22) of ZooKeeper 3.6 and newer, and single reads.

kazoo lacks AddWatch and MultiRead, and keeps a table of watchers for single reads, which Kontrast does not need.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from kazoo.exceptions import ConnectionLoss, NoAuthError, NoNodeError
from kazoo.protocol.serialization import Exists, GetChildren, GetData, write_string

from controller.contract.ids import Zxid
from ingest.observed.observations import Value

_PERSISTENT_RECURSIVE = 1


@dataclass(frozen=True, slots=True)
class Answer:
    """The answer to a MultiRead with its moment, given by the count of earlier events and the server's newest zxid."""

    results: list[Any]
    has_failures: bool  # whether a result is an exception
    position: int
    zxid: Zxid
    size_bytes: int


class AddWatch:
    """A watch on an existing or missing path and all paths below, for the life of the connection."""

    type = 106

    def __init__(self, path: str) -> None:
        self._path = path

    def serialize(self) -> bytes:
        """Return the request's bytes."""
        return bytes(write_string(self._path)) + struct.pack("!i", _PERSISTENT_RECURSIVE)

    @classmethod
    def deserialize(cls, _buffer: bytes, _offset: int) -> None:
        """Return no value. The answer itself is the confirmation."""
        return


class MultiRead:
    """Many reads in one request, answered at one moment. A result is a value, None (no node) or an exception.

    This code writes and reads the bytes itself. kazoo's own parts take three times as long, which matters for 200,000
    znodes.
    """

    type = 22
    BYTES_A_PATH = 14  # beside the path itself

    def __init__(self, operation: int, paths: Sequence[bytes], moment: Callable[[], tuple[int, Zxid]]) -> None:
        self._header = _MULTI_HEADER.pack(operation, False, -1)
        self._paths = paths
        self._moment = moment

    def __repr__(self) -> str:
        return f"MultiRead({len(self._paths)} paths)"

    def serialize(self) -> bytes:
        """Return the request's bytes."""
        header, length = self._header, _INT.pack
        parts = [part for path in self._paths for part in (header, length(len(path)), path, _NO_WATCH)]
        return b"".join((*parts, _MULTI_HEADER.pack(-1, True, -1)))

    def deserialize(self, buffer: bytes, offset: int) -> Answer:
        """Return the results in the order of the paths."""
        # The connection's thread calls this in the order of the input, so the moment is exact.
        position, zxid = self._moment()
        with _refusing_damage(self):
            results, has_failures, end = self._results(buffer, offset)
        return Answer(results, has_failures, position, zxid, end - offset)

    def _results(self, buffer: bytes, offset: int) -> tuple[list[Any], bool, int]:
        results: list[Any] = []
        has_failures = False
        header, size = _MULTI_HEADER.unpack_from, _MULTI_HEADER.size
        operation, done, _ = header(buffer, offset)
        while not done:
            reader = _RESULTS.get(operation)
            result, offset = (reader or _read_error)(buffer, offset + size)
            has_failures = has_failures or (reader is None and result is not None)
            results.append(result)
            operation, done, _ = header(buffer, offset)
        if len(results) != len(self._paths):
            raise ValueError(f"{len(results)} results for {len(self._paths)} paths")
        return results, has_failures, offset


class SingleRead:
    """A read of one path (GetData, GetChildren, Exists), with a one-shot watch if `watch` is set.

    The answer is a value, children, or existence. A missing node is an error except for Exists.
    """

    def __init__(self, operation: int, path: bytes, *, watch: bool = False) -> None:
        self.type = operation
        self._path = path
        self._watch = watch

    def __repr__(self) -> str:
        return f"SingleRead({self.type}, {self._path!r}, watch={self._watch})"

    def serialize(self) -> bytes:
        """Return the request's bytes."""
        return _INT.pack(len(self._path)) + self._path + (_WATCH if self._watch else _NO_WATCH)

    def deserialize(self, buffer: bytes, offset: int) -> object:
        """Return the result."""
        with _refusing_damage(self):
            return True if self.type == Exists.type else _RESULTS[self.type](buffer, offset)[0]


class MomentRequest:
    """Exists of the root, which always has an answer, to learn the moment of the answer."""

    type = Exists.type

    def __init__(self, moment: Callable[[], tuple[int, Zxid]]) -> None:
        self._moment = moment

    def serialize(self) -> bytes:
        """Return the request's bytes."""
        return SingleRead(self.type, b"/").serialize()

    def deserialize(self, _buffer: bytes, _offset: int) -> tuple[int, int]:
        """Return position and zxid, as an `Answer` has them."""
        return self._moment()


@contextmanager
def _refusing_damage(request: object) -> Iterator[None]:
    """Turn a damaged answer into a lost connection, because only another connection helps."""
    try:
        yield
    except (struct.error, ValueError) as error:
        raise ConnectionLoss(f"{request!r} has an answer that cannot be read: {error}") from error


_INT = struct.Struct("!i")
_STAT = struct.Struct("!qqqqi8xq16x")
_MULTI_HEADER = struct.Struct("!i?i")
_NO_WATCH, _WATCH = b"\0", b"\1"
_KNOWN_ERRORS = {NoNodeError.code: None, NoAuthError.code: NoAuthError()}


def _read_value(buffer: bytes, offset: int) -> tuple[Value, int]:
    (length,) = _INT.unpack_from(buffer, offset)
    offset += 4
    end = offset + length if length > 0 else offset
    czxid, mzxid, ctime_ms, mtime_ms, version, owner = _STAT.unpack_from(buffer, end)
    data = None if length < 0 else buffer[offset:end]
    return Value(data, czxid, mzxid, version, owner, mtime_ms, ctime_ms), end + _STAT.size


def _read_children(buffer: bytes, offset: int) -> tuple[list[str], int]:
    (count,) = _INT.unpack_from(buffer, offset)
    offset += 4
    children = []
    for _ in range(count):
        (length,) = _INT.unpack_from(buffer, offset)
        if length < 0:
            raise ValueError(f"a name of {length} bytes")
        offset += 4
        children.append(buffer[offset : offset + length].decode())
        offset += length
    return children, offset


def _read_error(buffer: bytes, offset: int) -> tuple[Any, int]:
    (code,) = _INT.unpack_from(buffer, offset)
    return _KNOWN_ERRORS.get(code, ConnectionLoss(f"MultiRead was answered with error {code}")), offset + 4


_RESULTS: dict[int, Callable[[bytes, int], tuple[Any, int]]] = {
    GetData.type: _read_value,
    GetChildren.type: _read_children,
}
