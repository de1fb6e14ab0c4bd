"""State of the watch, with the forwarder's session, clocks and complete reads, and obstacles to its records."""

from __future__ import annotations

import msgspec

from controller.contract.ids import BrokerId
from controller.model.wall_clock import WallClocks


class RefusedGeneration(msgspec.Struct, frozen=True, array_like=True):
    """Older generation that still sends heartbeats, with the times of its first and newest one."""

    generation: int
    first_ms: int
    last_ms: int
    followed_ms: int  # the cluster's time when the newest came
    alerts: bool  # whether it has lasted long enough for an alert


class Quarantines(msgspec.Struct, frozen=True, array_like=True):
    """Recent failures to apply this cluster's records (see `restore/quarantine.py`)."""

    times: int = 0  # in a row, which only time without a failure ends, not a complete read
    last_ms: int = 0
    kept: tuple[str, ...] = ()  # places in the code of the failures whose records were written to `refused`
    unkept: int = 0  # unwritten records, because an earlier failure at the same place has its own


class Feed(msgspec.Struct, array_like=True):
    """Forwarder's session with ZooKeeper, and the obstacles to the use of its records."""

    session: str = "unknown"
    watch_mode: str = "unknown"
    disconnected_ms: int = 0  # when the forwarder lost its ZooKeeper session, 0 if it has one
    lacks_records: bool = False  # records were lost, and no complete read has come in since
    refused: RefusedGeneration | None = None  # an older forwarder that still sends
    quarantined: str = ""  # why the cluster's state was dropped, until the end of a complete read
    quarantines: Quarantines = Quarantines()
    forgotten: bool = False  # an operator forgot the cluster, and it was not watched since


class CompleteRead(msgspec.Struct, array_like=True):
    """Newest complete read, and the znodes that it has named so far."""

    began_ms: int = 0  # of the newest one
    names_controller: bool = False
    brokers: tuple[BrokerId, ...] = ()
    deletions: tuple[str, ...] = ()


class Clocks(msgspec.Struct, array_like=True):
    """Forwarder's clocks, and how they show the cluster's own time."""

    steady_ms: int = -1  # the newest record's, -1 if its forwarder has no such clock
    walls: WallClocks = ()  # for showing `time_ms` and all moments, unchanged if empty
    wall_clock_of: str = ""  # the host whose wall clock this generation's times follow
