"""Time in which a cluster was seen, and durations within it."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Mapping, Sequence
from itertools import accumulate

import msgspec

from controller.contract.gauges_row import GaugesRow

# Ten times the slowest answer to a heartbeat (3 s, a batch with the complete read of 200,000 partitions). It does not
# grow with the cluster, because heartbeats are always a second apart.
LONGEST_SILENCE_MS = 30_000

_FROM_LOGS = "transaction-log"  # complete within a generation, even with heartbeats far apart
_BLIND = frozenset({"suspended", "lost"})

Spans = Sequence[tuple[int, int]]
Level = dict[int, int]
"""A count over time, by its changes. Keys are milliseconds since 1970, values the rise at that moment."""


class SeenTime(msgspec.Struct, array_like=True):
    """Spans between heartbeats in which the forwarder saw the cluster, oldest first.

    The first and newest heartbeat bound the existing data, seen or not. None means no data.
    """

    spans: list[tuple[int, int]] = []
    first_ms: int | None = None
    newest_ms: int | None = None

    def within(self, since_ms: int | None, until_ms: int | None, complete_from_ms: int = 0) -> Measure:
        """Return a measure of durations between the two moments, by default the first and last heartbeat.

        Time before `complete_from_ms` counts as unseen.
        """
        begin_ms = max(self.first_ms or 0, complete_from_ms) if since_ms is None else since_ms
        end_ms = max(self.newest_ms or 0, begin_ms) if until_ms is None else until_ms
        cut = ((max(begin, begin_ms, complete_from_ms), min(end, end_ms)) for begin, end in self.spans)
        return Measure(begin_ms, end_ms, [(begin, end) for begin, end in cut if begin < end])


class Heartbeats:
    """Heartbeats as the spans of seen time."""

    def __init__(self) -> None:
        self.seen = SeenTime()
        self._newest: GaugesRow | None = None

    def take(self, row: GaugesRow) -> None:
        """Add the time since the heartbeat before, if a forwarder looked all the while."""
        before, self._newest = self._newest, row
        seen = self.seen
        seen.first_ms = row.time_ms if seen.first_ms is None else min(seen.first_ms, row.time_ms)
        seen.newest_ms = row.time_ms if seen.newest_ms is None else max(seen.newest_ms, row.time_ms)
        if before is None or not _goes_on(before, row):
            return
        spans = seen.spans
        if spans and spans[-1][1] == before.time_ms:
            spans[-1] = (spans[-1][0], row.time_ms)
        else:
            spans.append((before.time_ms, row.time_ms))


def _goes_on(before: GaugesRow, row: GaugesRow) -> bool:
    took_ms = row.time_ms - before.time_ms
    is_soon = row.watch_mode == _FROM_LOGS or took_ms <= LONGEST_SILENCE_MS
    sees = before.ready and row.ready and before.session not in _BLIND
    return sees and before.generation == row.generation and took_ms > 0 and is_soon


class Measure:
    """Lengths in the time that was seen within a window."""

    def __init__(self, begin_ms: int, end_ms: int, spans: Spans) -> None:
        self.begin_ms = begin_ms
        self.end_ms = end_ms
        self.seen_from_ms = spans[0][0] if spans else None
        self.seen_until_ms = spans[-1][1] if spans else None
        self._begins = [begin for begin, _ in spans]
        self._spans = spans
        self._before = [0, *accumulate(end - begin for begin, end in spans)]

    @property
    def seen_ms(self) -> int:
        """Return the whole seen time."""
        return self._before[-1]

    def total_ms(self, level: Mapping[int, int]) -> int:
        """Return the count times its duration. An increase at a moment adds all later seen time."""
        return sum(by * (self.seen_ms - self._seen_before(at_ms)) for at_ms, by in level.items())

    def _seen_before(self, at_ms: int) -> int:
        at = bisect_right(self._begins, at_ms)
        if not at:
            return 0
        begin_ms, end_ms = self._spans[at - 1]
        return self._before[at - 1] + min(at_ms, end_ms) - begin_ms


def rise(level: Level, at_ms: int, by: int) -> None:
    """Note a change of the count."""
    level[at_ms] = level.get(at_ms, 0) + by
    if not level[at_ms]:
        del level[at_ms]
