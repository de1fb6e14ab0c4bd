"""Reader of one snapshot file of ZooKeeper, `snapshot.<zxid>`, plain or gzipped, with every znode of a server.

ZooKeeper keeps working during the write, so the file is complete up to the zxid in its name and may contain some later
changes. From 3.6 on digests follow the checksum, which Kontrast does not need.
"""

from __future__ import annotations

import gzip
import struct
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO, Final, NamedTuple, cast

from controller.contract.ids import Zxid
from ingest.errors import IngestError
from ingest.files.jute import DamagedFileError, Jute, JuteError

_MAGIC: Final = int.from_bytes(b"ZKSN", "big")
_FILE_HEADER: Final = struct.Struct(">iiq")  # magic, version, database id
_SESSION: Final = struct.Struct(">qi")  # id, timeout
# ACL, czxid, mzxid, ctime, mtime, version, cversion, aversion, ephemeral owner, pzxid
_STAT: Final = struct.Struct(">qqqqqiiiqq")
_TREE_END: Final = "/"  # the root itself is written as ""
_READ_BYTES: Final = 1 << 20


class SnapshotNode(NamedTuple):
    """A znode with the required parts of its stat. Times are in milliseconds since 1970."""

    path: str
    data: bytes | None
    czxid: Zxid
    mzxid: Zxid
    ctime_ms: int
    mtime_ms: int
    version: int
    ephemeral_owner: int


def read_snapshot(path: Path) -> Iterator[SnapshotNode]:
    """Return the snapshot's znodes. Trust them only after the last znode, because the checksum is at the end.

    Raise DamagedFileError and IngestError.
    """
    try:
        with _open(path) as file:
            checked = _CheckedFile(file)
            try:
                yield from _nodes(checked)
            except (JuteError, EOFError, gzip.BadGzipFile, zlib.error) as error:
                raise DamagedFileError(path, checked.offset, str(error)) from error
    except OSError as error:
        raise IngestError(f"{path} cannot be read: {error.strerror}") from error


def _open(path: Path) -> BinaryIO:
    if path.suffix == ".gz":
        return cast(BinaryIO, gzip.open(path, "rb"))
    return path.open("rb", buffering=_READ_BYTES)


class _CheckedFile:
    """A file with the checksum of its bytes so far."""

    __slots__ = ("_file", "checksum", "offset")

    def __init__(self, file: BinaryIO) -> None:
        self._file = file
        self.checksum = 1
        self.offset = 0  # in the uncompressed bytes

    def read(self, count: int) -> bytes:
        content = self._file.read(count)
        self.checksum = zlib.adler32(content, self.checksum)
        self.offset += len(content)
        return content


def _nodes(file: _CheckedFile) -> Iterator[SnapshotNode]:
    content = Jute(file.read)
    if content.fields(_FILE_HEADER)[0] != _MAGIC:
        raise JuteError("no header of a snapshot")
    for _ in range(content.count()):
        content.fields(_SESSION)
    for _ in range(content.count()):
        content.long()
        content.skip_acl()
    while (path := content.text()) != _TREE_END:
        data = content.buffer()
        _, czxid, mzxid, ctime_ms, mtime_ms, version, _, _, ephemeral_owner, _ = content.fields(_STAT)
        yield SnapshotNode(path, data, czxid, mzxid, ctime_ms, mtime_ms, version, ephemeral_owner)
    expected = file.checksum
    if content.long() != expected:
        raise JuteError("the checksum is wrong")
