"""Counters of the gauges within a window: elections, the controller's writes, and its reaction times."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from controller.contract.gauges_row import GaugesRow

ELECTIONS = "elections"
WRITES = "writes"
FIRST, FIRST_SUM = "reactions/first", "reactions/first_sum_ms"
LAST, LAST_SUM = "reactions/last", "reactions/last_sum_ms"

Key = tuple[str, str, int]  # the counter, its kind, and the bucket of a histogram


class Counters:
    """Increases of counters. A decrease means that all counters restarted at zero."""

    def __init__(self, since_ms: int) -> None:
        self.rose: Counter[Key] = Counter()
        self.since_ms = since_ms
        self._newest: dict[Key, int] | None = None

    def take(self, row: GaugesRow) -> None:
        """Add the increase since the previous row. Without one, the row's values precede the window."""
        before, self._newest = self._newest, dict(_counts(row))
        if before is None or row.time_ms < self.since_ms:
            return
        if any(self._newest.get(key, 0) < count for key, count in before.items()):
            before = {}
        for key, count in self._newest.items():
            self.rose[key] += count - before.get(key, 0)

    def begin(self) -> None:
        """Restart at zero, as the job does."""
        self._newest = {}


def _counts(row: GaugesRow) -> Iterator[tuple[Key, int]]:
    for what, counts in ((ELECTIONS, row.elections), (WRITES, row.writes)):
        yield from (((what, kind, 0), count) for kind, count in counts.items())
    for event, times in row.reactions.items():
        for what, buckets in ((FIRST, times.first), (LAST, times.last)):
            yield from (((what, event, at), count) for at, count in enumerate(buckets) if count)
        yield (FIRST_SUM, event, 0), times.first_sum_ms
        yield (LAST_SUM, event, 0), times.last_sum_ms
