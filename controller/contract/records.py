"""The record: one thing that was observed in ZooKeeper, as it travels from `ingest/` to `controller.step`.

Here belong the record, its position and its JSON form. What a record means is decided by `znodes` and `step`.
"""

from __future__ import annotations

import base64
from enum import Enum
from typing import Annotated, Final

import msgspec

from controller.contract.decoding import JsonDecoder

RECORD_VERSION = 1


class RecordKind(Enum):
    """What an observation is."""

    SNAPSHOT_BEGIN = "snapshot-begin"  # a complete read starts; what it does not name is gone at its end
    NODE = "node"  # a znode exists with this value
    SNAPSHOT_END = "snapshot-end"  # the complete read is done
    CREATED = "created"  # a znode came into being, its value was gone before it could be read
    DELETED = "deleted"  # a znode vanished
    HEARTBEAT = "heartbeat"  # the forwarder is alive (or the author, who wrote in vain); deadlines follow its times
    SESSION = "session"  # the forwarder's ZooKeeper session changed; `data` names its state

    __hash__ = object.__hash__  # there is one of each: what the enum's own takes time for is not needed


# A time that calendars have, and whose sums with other times stay far from 64 bits: before the year 10000.
LATEST_MS = 253_402_300_799_999
TimeMs = Annotated[int, msgspec.Meta(ge=0, le=LATEST_MS)]
_SteadyMs = Annotated[int, msgspec.Meta(ge=-1, le=LATEST_MS)]
_Int32 = Annotated[int, msgspec.Meta(ge=-(2**31), lt=2**31)]
Int64 = Annotated[int, msgspec.Meta(ge=-(2**63), le=2**63 - 1)]
_Numbering = Annotated[int, msgspec.Meta(ge=-(2**62), lt=2**62)]


class Position(msgspec.Struct, frozen=True, order=True, array_like=True, gc=False):
    """A record's place in its cluster's order; an older generation is a forwarder that lost its lead."""

    generation: int
    seq: int


NOWHERE: Final = Position(-1, -1)  # before any record


class Record(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, gc=False):
    """One observation of a cluster's ZooKeeper, in the order in which it must be applied.

    `data` is the znode's text; bytes that are not UTF-8 travel as `data_base64`. zxids and session ids are
    ZooKeeper's own 64-bit numbers, -1 where not known. `observed_ms` is the forwarder's wall clock since 1970, which
    may be set at any time; `steady_ms` its clock that nobody sets, since whenever, -1 where there is none. No number is
    larger than the field that it comes from can hold: what is kept of a record can always be stored.
    """

    v: int = msgspec.field(default_factory=lambda: RECORD_VERSION)  # a factory: always written, never omitted
    cluster: str
    generation: _Numbering
    seq: _Numbering
    kind: RecordKind
    observed_ms: TimeMs
    path: str = ""
    data: str | None = None
    data_base64: str | None = None
    czxid: Int64 = -1
    mzxid: Int64 = -1
    version: _Int32 = -1
    ephemeral_owner: Int64 = 0
    zxid: Int64 = -1  # the change that this record tells of; for a heartbeat the newest zxid seen
    resync: bool = False  # a difference found by reading again after a gap, not by a watch
    author: Int64 = 0  # the session that wrote the transaction; only ZooKeeper's log tells it
    cxid: _Int32 = -1  # the author's number of the request, from the log too; a session's end: 0 expired, else closed
    steady_ms: _SteadyMs = -1  # comparable within a generation only

    @property
    def position(self) -> Position:
        """The record's place in its cluster's order."""
        return Position(self.generation, self.seq)

    @property
    def content(self) -> str | bytes | None:
        """The znode's text, or its bytes where they are none."""
        return self.raw if self.data is None else self.data

    @property
    def raw(self) -> bytes | None:
        """The znode's bytes, None for a znode without data."""
        if self.data is not None:
            return self.data.encode()
        return None if self.data_base64 is None else base64.b64decode(self.data_base64)


class BadRecordError(ValueError):
    """Bytes that are no record, or a record of a version that this Kontrast does not know."""


_ENCODER = msgspec.json.Encoder()
_DECODER = JsonDecoder(Record)


def data_fields(raw: bytes | None) -> dict[str, str]:
    """The `data` or `data_base64` field that carries these bytes."""
    if raw is None:
        return {}
    try:
        return {"data": raw.decode()}
    except UnicodeDecodeError:
        return {"data_base64": base64.b64encode(raw).decode()}


def encode_record(record: Record) -> bytes:
    """One JSON object without line ends."""
    return _ENCODER.encode(record)


def decode_record(line: bytes | str) -> Record:
    """The record that `encode_record` wrote; raises BadRecordError."""
    try:
        record = _DECODER.decode(line)
        if record.data_base64 is not None:
            base64.b64decode(record.data_base64, validate=True)
    except ValueError as error:  # UndecodableError, and base64 that is none, or no ASCII
        raise BadRecordError(f"not a record: {error}") from error
    if record.v > RECORD_VERSION:
        raise BadRecordError(f"record version {record.v} is newer than this Kontrast's {RECORD_VERSION}")
    return record
