"""What the forwarder says of itself, and how far its records can be gone by."""

from __future__ import annotations

import msgspec

from controller.model.wall_clock import WallClocks


class RefusedGeneration(msgspec.Struct, frozen=True, array_like=True):
    """An older generation whose heartbeats come: by their own times since when, and the newest."""

    generation: int
    first_ms: int
    last_ms: int
    followed_ms: int  # the time of what was followed when the newest came
    told: bool  # whether it has gone on for so long that somebody has to know


class Quarantines(msgspec.Struct, frozen=True, array_like=True):
    """How often this cluster's records could not be applied of late; see `quarantine`."""

    times: int = 0  # in a row: a complete read in between does not end it, only time without a failure
    last_ms: int = 0
    kept: tuple[str, ...] = ()  # where it failed, of the failures whose records were written to `refused`
    unkept: int = 0  # records that were not, for such a failure's are there already


class Feed(msgspec.Struct, array_like=True):
    """The forwarder's session with ZooKeeper, and what keeps its records from being followed."""

    session: str = "unknown"
    watch_mode: str = "unknown"
    disconnected_ms: int = 0  # since when the forwarder has no session with ZooKeeper, 0 if it has one
    lacks_records: bool = False  # some were lost, and no complete read has come in since
    refused: RefusedGeneration | None = None  # an older forwarder that goes on
    quarantined: str = ""  # why all that was known was given up; until a complete read has come in
    quarantines: Quarantines = Quarantines()


class CompleteRead(msgspec.Struct, array_like=True):
    """What the complete read that is coming in has named so far."""

    names_controller: bool = False
    brokers: tuple[int, ...] = ()
    deletions: tuple[str, ...] = ()


class Clocks(msgspec.Struct, array_like=True):
    """The forwarder's clocks, and how the cluster's own time is shown by them."""

    steady_ms: int = -1  # of the newest record, -1 where its forwarder has none
    walls: WallClocks = ()  # how `time_ms` and all moments are shown; none: as they are
    wall_clock_of: str = ""  # whose wall clock this generation's times are by
