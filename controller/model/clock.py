"""A cluster's time: it advances by the forwarder's steady clock.

From a record's two clocks comes the one time by which every deadline is judged. A wall clock may be set at any moment;
the time here never goes back, and within a generation it never advances by more than the steady clock does. How it is
shown in rows is in `wall_clock`.
"""

from __future__ import annotations

from typing import Final

from controller.contract.records import NOWHERE, Record
from controller.model.context import Header
from controller.model.wall_clock import WallClock

# A wall clock that differs by more than this from what it should show was set. It is what chrony (`makestep 1 3`) sets
# at once instead of slewing; the forwarder reads its two clocks within 10 ms of one another.
STEP_MS: Final = 1_000

# Linux slews a clock by 500 ppm at most: 1 ms in 2 s. It slews the steady clock alike; other systems may not.
_SLEWED_1_MS_IN_MS: Final = 2_000

# Between two generations nobody watched, and how long that was is not known: the next forwarder may have another clock.
# No more counts as watched than lies between two heartbeats, so that no deadline passes by time that nobody watched.
WATCHED_AT_MOST_MS: Final = 1_000

# Each gap between generations that was longer than a heartbeat takes one: a year of restarts once every three days.
_WALL_CLOCKS_KEPT: Final = 128


def advance(header: Header, record: Record) -> int:
    """Take the header's time on to this record's; returns by how many ms the wall clock was set, 0 if it was not.

    The header still has the position of the record before. Of a step across two generations only one back is certain:
    one ahead looks like time in which nobody watched.
    """
    wall_gone_ms = record.observed_ms - wall_ms(header)
    if header.position == NOWHERE:
        header.time_ms, stepped_ms = record.observed_ms, 0
    elif record.generation != header.position.generation:
        stepped_ms = _take_over(header, wall_gone_ms)
    elif record.steady_ms >= 0 and header.clocks.steady_ms >= 0:
        return _advance_steadily(header, record.steady_ms, wall_gone_ms)
    else:
        stepped_ms = _advance_by_wall(header, wall_gone_ms)
    header.clocks.steady_ms = record.steady_ms
    return stepped_ms


def _advance_steadily(header: Header, steady_ms: int, wall_gone_ms: int) -> int:
    gone_ms = max(0, steady_ms - header.clocks.steady_ms)
    header.time_ms += gone_ms
    header.clocks.steady_ms = max(steady_ms, header.clocks.steady_ms)
    set_by_ms = wall_gone_ms - gone_ms
    _set(header, set_by_ms)
    return set_by_ms if abs(set_by_ms) > STEP_MS + gone_ms // _SLEWED_1_MS_IN_MS else 0


def _advance_by_wall(header: Header, wall_gone_ms: int) -> int:
    """Without a steady clock only a step back is certain; within a second of it time waits for the wall clock."""
    if wall_gone_ms < -STEP_MS:
        return _set(header, wall_gone_ms)
    header.time_ms += max(0, wall_gone_ms)
    return 0


def _take_over(header: Header, wall_gone_ms: int) -> int:
    if wall_gone_ms < 0:
        _set(header, wall_gone_ms)
        return wall_gone_ms if wall_gone_ms < -STEP_MS else 0
    watched_ms = min(wall_gone_ms, WATCHED_AT_MOST_MS)
    header.time_ms += watched_ms
    if wall_gone_ms > watched_ms:
        # What was before keeps the time that it had: if the clocks agree, it is the right one.
        before = header.clocks.walls or (WallClock(0, 0),)
        now = WallClock(header.time_ms, before[-1].ahead_ms + wall_gone_ms - watched_ms)
        header.clocks.walls = (*before, now)[-_WALL_CLOCKS_KEPT:]
    return 0


def _set(header: Header, by_ms: int) -> int:
    """The wall clock was set: all that was before has another wall time than was shown."""
    if by_ms:
        known = header.clocks.walls or (WallClock(0, 0),)
        moved = tuple(WallClock(wall.from_ms, wall.ahead_ms + by_ms) for wall in known)
        header.clocks.walls = moved if any(wall.ahead_ms for wall in moved) else ()
    return by_ms


def wall_ms(header: Header) -> int:
    """The cluster's time as the forwarder's wall clock shows it."""
    return header.time_ms + (header.clocks.walls[-1].ahead_ms if header.clocks.walls else 0)
