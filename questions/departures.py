"""Let a complete read show what the controller has to do about leaders that are not registered.

To `controller.step` a controller that a read finds has nothing left to do: it may have taken over long ago, and passed
over what the read shows. One look cannot know that, and mostly the leader has just died. Therefore the read is
ended as of before its death, and the death behind it: what must follow is then worked out as from any other.
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from controller.contract.records import Record, RecordKind
from controller.model.context import Context
from controller.step import steps
from controller.transaction.transaction import Outcome

_BROKERS = "/brokers/ids/"
_UNKNOWN_ZXID = -1
_NO_SESSION = -1  # ZooKeeper's are positive
_REGISTRATION = '{"version":0,"endpoints":[]}'


def read_with_departures(context: Context, read: Sequence[Record], *, shows_partitions: bool) -> Outcome:
    """Apply a complete read, and behind it the departures of the leaders that are not registered."""
    *znodes, end = read
    loaded = steps(context, znodes, shows_partitions=shows_partitions)
    missing = sorted(_leaders(loaded.context) - loaded.context.header.brokers.keys())
    seen = [_registered(end, broker) for broker in missing]
    gone = [_gone(end, broker) for broker in missing]
    ending = [msgspec.structs.replace(record, seq=seq) for seq, record in enumerate((*seen, end, *gone), start=end.seq)]
    ended = steps(loaded.context, ending, shows_partitions=shows_partitions)
    return Outcome(ended.context, loaded.effects + ended.effects)


def _leaders(context: Context) -> set[int]:
    """The brokers that lead a partition, by its state."""
    states = (partition.zk_state for _, topic in context.topics for partition in topic.partitions.values())
    return {state.leader for state in states if state is not None and state.leader >= 0}


def _registered(end: Record, broker: int) -> Record:
    return msgspec.structs.replace(
        end,
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
