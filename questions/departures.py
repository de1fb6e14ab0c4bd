"""Let a complete read show what the controller has to do about leaders that are not registered.

To `controller.step` a controller that a read finds has nothing left to do: it may have taken over long ago, and passed
over what the read shows. One look cannot know that, and mostly the leader has just died. Therefore the read is
given as of before its death, and the death behind it: what must follow is then worked out as from any other.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

import msgspec

from controller.contract.records import Record, RecordKind

_BROKERS = "/brokers/ids/"
_LEADER = re.compile(r'"leader"\s*:\s*([0-9]{1,9})\b')  # to decode 200,000 states once more would take a second
_UNKNOWN_ZXID = -1
_NO_SESSION = -1  # ZooKeeper's are positive
_REGISTRATION = '{"version":0,"endpoints":[]}'


def with_departures(read: Sequence[Record]) -> list[Record]:
    """The records of a complete read, and behind it the departures of the leaders that are not registered."""
    registered = {int(name) for record in read if (name := record.path.removeprefix(_BROKERS)).isdecimal()}
    missing = sorted(_leaders(read) - registered)
    if not missing:
        return list(read)
    begin, *nodes, end = read
    seen = [_registered(begin, broker) for broker in missing]
    gone = [_gone(end, broker) for broker in missing]
    # The znodes that come first in a read: /controller and its epoch, then the brokers'.
    at = next((at for at, node in enumerate(nodes) if _is_broker(node)), 0)
    ordered = [begin, *nodes[:at], *seen, *nodes[at:], end, *gone]
    return [msgspec.structs.replace(record, seq=seq) for seq, record in enumerate(ordered, start=begin.seq)]


def _leaders(read: Sequence[Record]) -> set[int]:
    """The brokers that lead a partition, by its state."""
    states = (record.data for record in read if record.data is not None and record.path.endswith("/state"))
    named = {found[1] for found in map(_LEADER.search, states) if found is not None}
    return set(map(int, named))


def _is_broker(record: Record) -> bool:
    return record.path.startswith(_BROKERS)


def _registered(begin: Record, broker: int) -> Record:
    return msgspec.structs.replace(
        begin,
        kind=RecordKind.NODE,
        path=f"{_BROKERS}{broker}",
        data=_REGISTRATION,
        version=0,
        ephemeral_owner=_NO_SESSION - broker,
        zxid=_UNKNOWN_ZXID,
    )


def _gone(end: Record, broker: int) -> Record:
    return msgspec.structs.replace(
        end, kind=RecordKind.DELETED, path=f"{_BROKERS}{broker}", data=None, zxid=_UNKNOWN_ZXID
    )
