"""State of the watch, with the forwarder's session, clocks and complete reads, and obstacles to its records."""

from __future__ import annotations

from typing import Final

import msgspec

from controller.contract.forwarder_status import Ensemble
from controller.contract.ids import UNKNOWN_ZXID, BrokerId, Zxid
from controller.model.wall_clock import WallClocks


class RefusedGeneration(msgspec.Struct, frozen=True, array_like=True):
    """Older generation that still sends heartbeats, with the times of its first and newest heartbeat."""

    generation: int
    first_ms: int
    last_ms: int
    followed_ms: int  # the cluster's time when the newest came
    alerts: bool  # whether it has lasted long enough for an alert


class Quarantines(msgspec.Struct, frozen=True, array_like=True):
    """Recent failures to apply this cluster's records (see `restore/altered_context.py`)."""

    times: int = 0  # failures in a row. Time without a failure ends the row, but a complete read does not
    last_ms: int = 0
    kept: tuple[str, ...] = ()  # places in the code of the failures whose records were written to `refused`
    unkept: int = 0  # records that were not written, because an earlier failure at the same place was


class Feed(msgspec.Struct, array_like=True):
    """Forwarder's session with ZooKeeper, and the obstacles to the use of its records."""

    session: str = "unknown"
    watch_mode: str = "unknown"
    disconnected_ms: int = 0  # when the forwarder lost its ZooKeeper session, 0 if it has a session
    lacks_records: bool = False  # records were lost, and no complete read has come in since
    refused: RefusedGeneration | None = None  # an older forwarder that still sends
    quarantined: str = ""  # why the cluster's state was dropped, until the end of a complete read
    quarantines: Quarantines = Quarantines()
    forgotten: bool = False  # an operator forgot the cluster, and it was not watched since
    catches_up: bool = False  # the differences that a gap hid are coming
    caught_up_ms: int = 0  # when the last gap ended


class NewestRead(msgspec.Struct, array_like=True):
    """Newest complete read, and the znodes that it has named so far."""

    began_ms: int = 0  # when the newest read began
    names_controller: bool = False
    brokers: tuple[BrokerId, ...] = ()
    deletions: tuple[str, ...] = ()
    cut_failover: bool = False  # when it began, the controller still had states to write in its failover
    ended: tuple[BrokerId, ...] = ()  # brokers whose registration before the read is over
    is_ahead: bool = False  # nothing newer came since a read, whose states may thus be newer than a change


class Clocks(msgspec.Struct, array_like=True):
    """Forwarder's clocks, and how they show the cluster's own time."""

    steady_ms: int = -1  # the newest record's, -1 if its forwarder has no such clock
    walls: WallClocks = ()  # for showing `time_ms` and all moments, unchanged if empty
    wall_clock_of: str = ""  # the host whose wall clock this generation's times follow


# A burst of new topics is no pace. Windows of 10 to 20 minutes outlast the creation of some thousand topics.
_WINDOW_MS: Final = 10 * 60_000
_MEASURED_FOR_MS: Final = 5 * 60_000


class Pace(msgspec.Struct, frozen=True, array_like=True):
    """Growth of a number, from its values at the beginning of the present window and of the window before."""

    since_ms: int
    value: int
    before_ms: int = -1
    before: int = 0

    def followed_by(self, value: int, now_ms: int) -> Pace:
        """Return the pace with the newest value. A smaller value starts a new window."""
        if value < self.value:
            return Pace(now_ms, value)
        if now_ms - self.since_ms >= _WINDOW_MS:
            return Pace(now_ms, value, self.since_ms, self.value)
        return self

    def until_ms(self, limit: int, value: int, now_ms: int) -> int | None:
        """Return the milliseconds until the limit at this pace. Return None without growth, or too early."""
        began_ms, began = (self.since_ms, self.value) if self.before_ms < 0 else (self.before_ms, self.before)
        grown = value - began
        if grown <= 0 or now_ms - began_ms < _MEASURED_FOR_MS:
            return None
        return max(0, limit - value) * (now_ms - began_ms) // grown


class EnsembleState(msgspec.Struct, array_like=True):
    """Newest description of the ensemble, and as much of its history as conditions need."""

    newest: Ensemble = Ensemble()
    leader_zxid_before: Zxid = UNKNOWN_ZXID  # in the description before
    zxid: Zxid = UNKNOWN_ZXID  # the newest known
    zxid_pace: Pace = Pace(0, 0)
    znode_paces: dict[str, Pace] = {}  # by path
