"""The data of a forwarder's own records, which no znode has: its clock, its session and the maintenance windows."""

from __future__ import annotations

from typing import Annotated, Final

import msgspec

from controller.contract.decoding import JsonDecoder, UndecodableError
from controller.contract.ensemble import Ensemble
from controller.contract.ids import INT64, UNKNOWN_ZXID, Zxid
from controller.contract.records import TimeMs
from controller.contract.znodes import Brokers

REPLAYED: Final = "replay"  # the session of records that were made of ZooKeeper's files: they are of the past


class MaintenanceWindow(msgspec.Struct, frozen=True):
    """Maintenance window: while people work on these brokers, alerts that follow from it are held back."""

    brokers: Brokers  # none: the whole cluster
    until_ms: TimeMs
    reason: str = ""


class ForwarderStatus(msgspec.Struct, frozen=True, omit_defaults=True):
    """Data of a forwarder's own records: its clock, its ZooKeeper session, and the maintenance windows given to it."""

    session: str = "unknown"
    watch_mode: str = "unknown"
    maintenance: tuple[MaintenanceWindow, ...] = ()  # the windows in force
    clock_of: str = ""  # the host whose clock the records' times follow; given where a generation begins
    lost_zxid: Annotated[Zxid, INT64] = UNKNOWN_ZXID  # of a published change that ZooKeeper does not have any more
    ensemble: Ensemble | None = None  # after each round of questions to its servers


_DECODER: Final = JsonDecoder(ForwarderStatus)


def decode_status(data: bytes | str | None) -> ForwarderStatus:
    """Status in a forwarder's own record, an empty one where it cannot be read. Kafka's reader is for znodes alone."""
    try:
        return _DECODER.decode(data or b"")
    except UndecodableError:
        return ForwarderStatus()
