"""State of the feed: the forwarder's session, clocks and complete reads, and what keeps its records from being used."""

from __future__ import annotations

import msgspec

from controller.model.wall_clock import WallClocks


class RefusedGeneration(msgspec.Struct, frozen=True, array_like=True):
    """Older generation whose heartbeats still come, by their own times: the first and the newest."""

    generation: int
    first_ms: int
    last_ms: int
    followed_ms: int  # the cluster's time when the newest came
    alerts: bool  # whether it has lasted long enough for an alert


class Quarantines(msgspec.Struct, frozen=True, array_like=True):
    """Recent failures to apply this cluster's records; see `restore/quarantine.py`."""

    times: int = 0  # in a row: a complete read in between does not end the row, only time without a failure
    last_ms: int = 0
    kept: tuple[str, ...] = ()  # places in the code of the failures whose records were written to `refused`
    unkept: int = 0  # records that were not written: those of an earlier failure at the same place are there


class Feed(msgspec.Struct, array_like=True):
    """Forwarder's session with ZooKeeper, and what keeps its records from being used."""

    session: str = "unknown"
    watch_mode: str = "unknown"
    disconnected_ms: int = 0  # when the forwarder lost its ZooKeeper session, 0 if it has one
    lacks_records: bool = False  # records were lost, and no complete read has come in since
    refused: RefusedGeneration | None = None  # an older forwarder that still sends
    quarantined: str = ""  # why the cluster's state was dropped; until a complete read has come in
    quarantines: Quarantines = Quarantines()
    forgotten: bool = False  # an operator forgot the cluster, and it was not watched since


class CompleteRead(msgspec.Struct, array_like=True):
    """Newest complete read, and the znodes that it has named so far."""

    began_ms: int = 0  # of the newest one
    names_controller: bool = False
    brokers: tuple[int, ...] = ()
    deletions: tuple[str, ...] = ()


class Clocks(msgspec.Struct, array_like=True):
    """Forwarder's clocks, and how they show the cluster's own time."""

    steady_ms: int = -1  # of the newest record, -1 where its forwarder has none
    walls: WallClocks = ()  # by which `time_ms` and all moments are shown; none: unchanged
    wall_clock_of: str = ""  # the host whose wall clock this generation's times follow
