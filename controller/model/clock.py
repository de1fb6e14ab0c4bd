"""Clock of a cluster, with one time for all deadlines, which advances by the forwarder's steady clock.

A wall clock may be set at any moment. The cluster's time never goes back. Within a generation it never advances by more
than the steady clock does. `wall_clock` shows the time in rows.
"""

from __future__ import annotations

from typing import Final

from controller.contract.records import NOWHERE, Record
from controller.model.context import Header
from controller.model.wall_clock import WallClock
from controller.rules.timing import CLOCK_STEP_MS

# Linux slews a clock by at most 500 ppm, which is 1 ms in 2 s. It slews the steady clock alike. Other systems may not.
_SLEWED_1_MS_IN_MS: Final = 2_000

# No forwarder watched between two generations, for an unknown time, and the next one may have another clock. At most
# the time between two heartbeats counts as watched, so that no deadline passes in unwatched time.
WATCHED_AT_MOST_MS: Final = 1_000

# Each gap between generations that is longer than a heartbeat takes one entry. This is enough for a year with a restart
# every three days.
_WALL_CLOCKS_KEPT: Final = 128


def advance(header: Header, record: Record) -> int:
    """Advance the header's time to this record's. Return by how many ms the wall clock was set, or 0.

    The header still has the previous record's position. Between two generations only a step back is certain, because a
    step ahead looks like unwatched time.
    """
    wall_gone_ms = record.observed_ms - header.wall_ms
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
    return set_by_ms if abs(set_by_ms) > CLOCK_STEP_MS + gone_ms // _SLEWED_1_MS_IN_MS else 0


def _advance_by_wall(header: Header, wall_gone_ms: int) -> int:
    """Advance without a steady clock.

    Only a step back of more than a second is certain. After a smaller step, time waits for the wall clock to catch up.
    """
    if wall_gone_ms < -CLOCK_STEP_MS:
        return _set(header, wall_gone_ms)
    header.time_ms += max(0, wall_gone_ms)
    return 0


def _take_over(header: Header, wall_gone_ms: int) -> int:
    if wall_gone_ms < 0:
        _set(header, wall_gone_ms)
        return wall_gone_ms if wall_gone_ms < -CLOCK_STEP_MS else 0
    watched_ms = min(wall_gone_ms, WATCHED_AT_MOST_MS)
    header.time_ms += watched_ms
    if wall_gone_ms > watched_ms:
        # Earlier moments keep their wall time, which is right if the two clocks agree.
        before = header.clocks.walls or (WallClock(0, 0),)
        now = WallClock(header.time_ms, before[-1].ahead_ms + wall_gone_ms - watched_ms)
        header.clocks.walls = (*before, now)[-_WALL_CLOCKS_KEPT:]
    return 0


def _set(header: Header, by_ms: int) -> int:
    """Shift the wall time of all earlier moments, which was wrong before the wall clock was set."""
    if by_ms:
        walls = header.clocks.walls or (WallClock(0, 0),)
        shifted = tuple(WallClock(wall.from_ms, wall.ahead_ms + by_ms) for wall in walls)
        header.clocks.walls = shifted if any(wall.ahead_ms for wall in shifted) else ()
    return by_ms
