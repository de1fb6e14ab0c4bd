"""Records, each of which carries one observation of ZooKeeper from `ingest/` to `controller.step`, and their JSON."""

from __future__ import annotations

import base64
from collections.abc import Iterable
from enum import Enum
from typing import Annotated, Final, TypeVar

import msgspec

from controller.contract.decoding import JsonDecoder
from controller.contract.ids import INT32, INT64, UNKNOWN_ZXID, Zxid

RECORD_VERSION = 1


class RecordKind(Enum):
    """Kind of an observation."""

    SNAPSHOT_BEGIN = "snapshot-begin"  # a complete read starts. Znodes that it does not name are gone at its end
    NODE = "node"  # a znode exists with this value
    SNAPSHOT_END = "snapshot-end"  # the complete read is done
    CREATED = "created"  # a znode was created, and deleted before its value could be read
    DELETED = "deleted"  # a znode was deleted
    HEARTBEAT = "heartbeat"  # the forwarder runs, or a session whose write failed. Deadlines follow its times
    FORGOTTEN = "forgotten"  # an operator forgot the cluster, so its earlier records and rows are void
    SESSION = "session"  # the forwarder's ZooKeeper session changed. `data` names its state

    __hash__ = object.__hash__  # members are singletons, so identity is enough, and much faster than the enum's own


# The end of the year 9999, up to which calendars go. Sums of such times stay far below 64 bits.
LATEST_MS = 253_402_300_799_999
TimeMs = Annotated[int, msgspec.Meta(ge=0, le=LATEST_MS)]
_SteadyMs = Annotated[int, msgspec.Meta(ge=-1, le=LATEST_MS)]
_Int32 = Annotated[int, INT32]
Int64 = Annotated[int, INT64]
_Zxid = Annotated[Zxid, INT64]
_Numbering = Annotated[int, msgspec.Meta(ge=-(2**62), lt=2**62)]


class Position(msgspec.Struct, frozen=True, order=True, array_like=True, gc=False):
    """Place of a record in its cluster's order. An older generation belongs to a forwarder that lost its lead."""

    generation: int
    seq: int


NOWHERE: Final = Position(-1, -1)  # before any record


class Record(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, gc=False):
    """Observation of a cluster's ZooKeeper. Records are applied in the order of their positions.

    `data` is the znode's text, but bytes that are not UTF-8 travel as `data_base64`. zxids and session ids are
    ZooKeeper's own 64-bit numbers, -1 if not known. `observed_ms` is the forwarder's wall clock since 1970, which may
    be set at any time. `steady_ms` is its monotonic clock from an arbitrary start, -1 if it has no such clock. Each
    number fits the field that it comes from, so a record's values can always be stored.
    """

    v: int = msgspec.field(default_factory=lambda: RECORD_VERSION)  # a factory, so that `v` is always written
    cluster: str
    generation: _Numbering
    seq: _Numbering
    kind: RecordKind
    observed_ms: TimeMs
    path: str = ""
    data: str | None = None
    data_base64: str | None = None
    czxid: _Zxid = UNKNOWN_ZXID
    mzxid: _Zxid = UNKNOWN_ZXID
    version: _Int32 = -1
    ephemeral_owner: Int64 = 0
    zxid: _Zxid = UNKNOWN_ZXID  # of the change that was observed, in a heartbeat the newest zxid seen
    resync: bool = False  # a difference found by reading again after a gap, not by a watch
    author: Int64 = 0  # the session that wrote the transaction, known only from ZooKeeper's transaction log
    cxid: _Int32 = -1  # the author's request number, from the log too. At a session's end, 0 if it expired
    steady_ms: _SteadyMs = -1  # comparable within a generation only
    ctime_ms: TimeMs = 0  # when an ephemeral znode was created, by ZooKeeper's clock, 0 if not known

    @property
    def position(self) -> Position:
        """Return the place of the record in its cluster's order."""
        return Position(self.generation, self.seq)

    @property
    def content(self) -> str | bytes | None:
        """Return the znode's text, or its bytes if they are no text."""
        return self.raw if self.data is None else self.data

    @property
    def raw(self) -> bytes | None:
        """Return the znode's bytes, None for a znode without data."""
        if self.data is not None:
            return self.data.encode()
        return None if self.data_base64 is None else base64.b64decode(self.data_base64)


class BadRecordError(ValueError):
    """Bytes that are no record, or a record of a version that this Kontrast does not read."""


_ENCODER = msgspec.json.Encoder()
_DECODER = JsonDecoder(Record)


def data_fields(raw: bytes | None) -> dict[str, str]:
    """Return the field `data` or `data_base64` with these bytes, and no field for None."""
    if raw is None:
        return {}
    try:
        return {"data": raw.decode()}
    except UnicodeDecodeError:
        return {"data_base64": base64.b64encode(raw).decode()}


_Place = TypeVar("_Place")


def newest_complete_reads(placed: Iterable[tuple[_Place, Record]]) -> dict[str, _Place | None]:
    """Return where each cluster's newest complete read begins in these ordered records, None if it was forgotten.

    A read is complete if its end is among them.
    """
    begun: dict[str, tuple[int, _Place]] = {}
    complete: dict[str, _Place | None] = {}
    for place, record in placed:
        if record.kind is RecordKind.SNAPSHOT_BEGIN:
            begun[record.cluster] = (record.generation, place)
        elif record.kind is RecordKind.FORGOTTEN:
            begun.pop(record.cluster, None)
            complete[record.cluster] = None
        elif record.kind is RecordKind.SNAPSHOT_END and record.cluster in begun:
            generation, beginning = begun.pop(record.cluster)
            if generation == record.generation:
                complete[record.cluster] = beginning
    return complete


def encode_record(record: Record) -> bytes:
    """Return the record as one JSON object without line ends."""
    return _ENCODER.encode(record)


def decode_record(line: bytes | str) -> Record:
    """Return the record that `encode_record` wrote. Raise BadRecordError."""
    try:
        record = _DECODER.decode(line)
        if record.data_base64 is not None:
            base64.b64decode(record.data_base64, validate=True)
    except ValueError as error:  # UndecodableError, or data_base64 that is no base64 or no ASCII
        raise BadRecordError(f"not a record: {error}") from error
    if record.v > RECORD_VERSION:
        raise BadRecordError(f"record version {record.v} is newer than this Kontrast's {RECORD_VERSION}")
    return record
