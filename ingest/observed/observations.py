"""Vocabulary of the ingest, with events and values from ZooKeeper, and the observations made from these.

A published observation becomes a `controller.contract.records.Record` with its cluster and its place in the order.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum
from typing import NamedTuple

import msgspec

from controller.contract.ids import UNKNOWN_ZXID, Zxid
from controller.contract.records import LATEST_MS, RecordKind


class ZnodeEventKind(Enum):
    """The kinds of events, in ZooKeeper's numbers."""

    CREATED = 1
    DELETED = 2
    CHANGED = 3
    CHILDREN = 4  # a child was created or deleted, reported by one-shot watches only


@dataclass(frozen=True, slots=True)
class ZnodeEvent:
    """Event of a watch. Servers before 3.9 do not send the zxid of the change."""

    kind: ZnodeEventKind
    path: str
    zxid: Zxid = UNKNOWN_ZXID
    received_at: float = field(default=0.0, compare=False)  # by the monotonic clock, in seconds


class Value(msgspec.Struct, frozen=True, gc=False):
    """A znode as it was read."""

    data: bytes | None
    czxid: Zxid
    mzxid: Zxid
    version: int
    ephemeral_owner: int
    mtime_ms: int = 0  # time of the last write by ZooKeeper's clock, 0 if not requested
    ctime_ms: int = 0  # time of the creation by ZooKeeper's clock

    @property
    def registered_ms(self) -> int:
        """Return the creation time of an ephemeral znode as records have it, 0 for other znodes."""
        return min(max(0, self.ctime_ms), LATEST_MS) if self.ephemeral_owner else 0


Values = Mapping[str, Value | None]
"""Values by path. None means that a read found no znode. A missing path was not read, or may not be read."""


class Known(NamedTuple):
    """The last published state of a znode. mzxid and version are -1 if only its existence was published."""

    czxid: Zxid
    mzxid: Zxid
    version: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Observation:
    """A record that has no place in the order yet."""

    kind: RecordKind
    path: str
    value: Value | None = None
    zxid: Zxid = UNKNOWN_ZXID
    resync: bool = False
