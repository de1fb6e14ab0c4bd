"""Reader of one transaction log of ZooKeeper 3.4 to 3.9, `log.<zxid>`, in order.

The file is a header, then entries of Adler-32, length, that many bytes, and 0x42. ZooKeeper allocates ahead, so a log
that was closed cleanly ends in zeros. From 3.6 on an entry has a digest of the tree after the transaction, which
Kontrast does not need.
"""

from __future__ import annotations

import io
import os
import struct
import zlib
from collections.abc import Callable, Iterator, Mapping
from enum import Enum
from pathlib import Path
from typing import BinaryIO, Final, NamedTuple

from controller.contract.ids import Zxid
from ingest.errors import IngestError
from ingest.files.jute import DamagedFileError, Jute, JuteError

_MAGIC: Final = b"ZKLG"
_FILE_HEADER_BYTES: Final = 16
_ENTRY_HEADER: Final = struct.Struct(">qi")  # checksum, length
_TRANSACTION_HEADER: Final = struct.Struct(">qiqqi")  # session, cxid, zxid, time, type
_ENTRY_END: Final = b"B"
_DIGEST_BYTES: Final = 12
_READ_BYTES: Final = 1 << 20

_ERROR: Final = -1
_CREATE_SESSION: Final = -10
_CLOSE_SESSION: Final = -11
_SET_ACL: Final = 7
_CHECK: Final = 13
_MULTI: Final = 14
_RECONFIG: Final = 16

_CONTAINER_OWNER: Final = -(1 << 63)
_TTL_OWNER: Final = -(1 << 56)  # the highest byte set, the time to live in the others


class ChangeKind(Enum):
    """The kinds of changes that a transaction makes."""

    CREATED = "created"
    SET = "set"
    DELETED = "deleted"


class ZnodeChange(NamedTuple):
    """One znode's change, with version and ephemeral owner if its kind has them."""

    kind: ChangeKind
    path: str
    data: bytes | None = None
    version: int = 0
    ephemeral_owner: int = 0


class LoggedTransaction(NamedTuple):
    """One transaction of ZooKeeper. `session` requested it as its request number `cxid`.

    A session's end has cxid 0 if the server expired the session, and a higher cxid if the client closed it. `closed` is
    then the deleted znodes if the log names them (from 3.6 on), otherwise None.
    """

    session: int
    cxid: int
    zxid: Zxid
    time_ms: int
    changes: tuple[ZnodeChange, ...] = ()
    closed: tuple[str, ...] | None = None


def read_log(path: Path, at: Callable[[int], None] = lambda _: None) -> Iterator[LoggedTransaction]:
    """Return the log's transactions from its beginning. `at` receives the offset after each.

    If the log does not end cleanly, raise DamagedFileError after the last good transaction. Raise IngestError.
    """
    try:
        with path.open("rb", buffering=_READ_BYTES) as file:
            for offset, entry in _entries(path, file):
                try:
                    transaction = _decode(entry)
                except JuteError as error:
                    raise DamagedFileError(path, offset, f"not a transaction: {error}") from error
                except _UnknownTypeError as error:
                    raise IngestError(
                        f"{path} has a transaction of type {error} at byte {offset}, which ZooKeeper 3.4 to 3.9 do not "
                        "write. A newer ZooKeeper's log cannot be replayed"
                    ) from error
                at(offset + _ENTRY_HEADER.size + len(entry) + len(_ENTRY_END))
                yield transaction
    except OSError as error:
        raise IngestError(f"{path} cannot be read: {error.strerror}") from error


class _UnknownTypeError(ValueError):
    """A transaction type that ZooKeeper does not have. The text is its number."""


def _entries(path: Path, file: BinaryIO) -> Iterator[tuple[int, bytes]]:
    """Return each entry with its offset. Zeros up to the end of the file are its end."""
    size = os.fstat(file.fileno()).st_size
    magic = file.read(_FILE_HEADER_BYTES)
    if magic.strip(b"\0") and not (len(magic) == _FILE_HEADER_BYTES and magic.startswith(_MAGIC)):
        raise DamagedFileError(path, 0, "no header of a transaction log", torn=_MAGIC.startswith(magic[:4]))
    offset = len(magic)
    while header := file.read(_ENTRY_HEADER.size):
        if not header.strip(b"\0"):
            if not _only_zeros(file):
                raise DamagedFileError(path, offset, "zeros where an entry should be, and more behind them")
            return
        if len(header) < _ENTRY_HEADER.size:
            raise DamagedFileError(path, offset, "its last entry is incomplete", torn=True)
        checksum, length = _ENTRY_HEADER.unpack(header)
        if not 0 < length < size - offset - _ENTRY_HEADER.size:
            torn = length > 0 or _only_zeros(file)
            raise DamagedFileError(path, offset, f"an entry of {length} bytes does not fit in the file", torn=torn)
        entry, end = file.read(length), file.read(1)
        if zlib.adler32(entry) != checksum or end != _ENTRY_END:
            raise DamagedFileError(path, offset, "an entry's checksum is wrong", torn=_only_zeros(file))
        yield offset, entry
        offset += _ENTRY_HEADER.size + length + len(_ENTRY_END)


def _only_zeros(file: BinaryIO) -> bool:
    while rest := file.read(_READ_BYTES):
        if rest.strip(b"\0"):
            return False
    return True


def _decode(entry: bytes) -> LoggedTransaction:
    stream = io.BytesIO(entry)
    body = Jute(stream.read)
    session, cxid, zxid, time_ms, kind = body.fields(_TRANSACTION_HEADER)
    if kind == _CLOSE_SESSION:
        return LoggedTransaction(session, cxid, zxid, time_ms, closed=_closed_paths(entry[_TRANSACTION_HEADER.size :]))
    if kind == _MULTI:
        return LoggedTransaction(session, cxid, zxid, time_ms, _multi(body, session))
    return LoggedTransaction(session, cxid, zxid, time_ms, _changes(kind, body, session))


def _changes(kind: int, body: Jute, session: int) -> tuple[ZnodeChange, ...]:
    if kind in _CHANGES_NOTHING:
        return ()
    decoder = _DECODERS.get(kind)
    if decoder is None:
        raise _UnknownTypeError(kind)
    return (decoder(body, session),)


def _multi(body: Jute, session: int) -> tuple[ZnodeChange, ...]:
    changes: list[ZnodeChange] = []
    failed = False
    for _ in range(body.count()):
        kind, content = body.integer(), body.buffer() or b""
        # If a multi failed, the log has the parts before the failed part as if they had been done.
        failed = failed or kind == _ERROR
        changes += _changes(kind, Jute(io.BytesIO(content).read), session)
    return () if failed else tuple(changes)


def _closed_paths(body: bytes) -> tuple[str, ...]:
    """Return the znodes that a closeSession names. ZooKeeper logs them from 3.6 on, unless this is switched off."""
    stream = io.BytesIO(body)
    reader = Jute(stream.read)
    try:
        paths = tuple(reader.text() for _ in range(reader.count()))
    except JuteError:
        return ()  # only a digest
    behind = len(body) - stream.tell()
    return paths if behind in (0, _DIGEST_BYTES) and all(path.startswith("/") for path in paths) else ()


def _create(body: Jute, session: int) -> ZnodeChange:
    path, data = body.text(), body.buffer()
    body.skip_acl()
    return ZnodeChange(ChangeKind.CREATED, path, data, ephemeral_owner=session if body.boolean() else 0)


def _create_ttl(body: Jute, _: int) -> ZnodeChange:
    path, data = body.text(), body.buffer()
    body.skip_acl()
    body.integer()  # the parent's cversion
    return ZnodeChange(ChangeKind.CREATED, path, data, ephemeral_owner=_TTL_OWNER | body.long())


def _delete(body: Jute, _: int) -> ZnodeChange:
    return ZnodeChange(ChangeKind.DELETED, body.text())


_CHANGES_NOTHING: Final = frozenset({_ERROR, _CREATE_SESSION, _SET_ACL, _CHECK, _RECONFIG})

_DECODERS: Final[Mapping[int, Callable[[Jute, int], ZnodeChange]]] = {
    1: _create,
    2: _delete,
    5: lambda body, _: ZnodeChange(ChangeKind.SET, body.text(), body.buffer(), version=body.integer()),
    15: _create,  # create2, whose answer has the stat
    19: lambda body, _: ZnodeChange(  # createContainer
        ChangeKind.CREATED, body.text(), body.buffer(), ephemeral_owner=_CONTAINER_OWNER
    ),
    20: _delete,  # deleteContainer
    21: _create_ttl,
}
