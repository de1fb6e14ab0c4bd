"""The figures of a forwarder's own work, which `ingest/` writes while it works and `dashboards/` shows.

Each figure is whole by itself, but together they do not belong to one moment.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter
from dataclasses import dataclass, field
from enum import Enum

FORWARDING_LAG_SECONDS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 60.0, float("inf"))


class ReadReason(Enum):
    """Reason for a complete read."""

    START = "start"
    ASKED = "asked"  # requested by a reader of the stream that lacks its beginning
    SUSPENDED = "suspended"  # the connection was lost
    LOST = "lost"  # the session was over
    OVERFLOW = "overflow"  # the sink accepts no records, and more events arrived than Kontrast keeps
    ROLLED_BACK = "rolled-back"  # ZooKeeper came back without changes that were published


@dataclass(slots=True)
class Forwarding:
    """One cluster's forwarder since its process began."""

    cluster: str
    leads: bool = False  # it leads the election, or works without an election
    stands_for_election: bool = False  # it has its sink, and leads or waits for its turn
    generation: int = 0
    is_connected: bool = False
    goes_on_trying: bool = False  # something that it needs did not answer in time, and nobody need start it again
    watch_mode: str = "unknown"
    znodes: int = 0  # the number that readers of the stream know
    forbidden_znodes: int = 0
    znodes_read: int = 0
    bytes_read: int = 0
    budget_wait_seconds: float = 0.0
    jitter_wait_seconds: float = 0.0
    events: int = 0
    windows: int = 0  # the number of windows in which events were read together
    events_dropped: int = 0
    complete_reads: Counter[ReadReason] = field(default_factory=lambda: Counter(dict.fromkeys(ReadReason, 0)))
    differences: int = 0  # found by sweeps, and by complete reads after the first
    sink_is_up: bool = True
    records: int = 0
    heartbeat_ms: int = 0  # since 1970, or 0 before the first one
    maintenance_windows: int = 0  # in force, as of the newest heartbeat
    bad_maintenance_files: int = 0  # how often a changed file could not be read
    lag: Lag = field(default_factory=lambda: Lag.none_yet(FORWARDING_LAG_SECONDS))  # a watch's event to acknowledgement

    @property
    def works(self) -> bool:
        """Return whether the cluster was read as a whole, or the forwarder does what it can until that is possible."""
        return self.heartbeat_ms > 0 or self.stands_for_election or self.goes_on_trying

    @property
    def is_away(self) -> bool:
        """Return whether the cluster could not be read so far, unless this forwarder only waits for its turn."""
        waits_for_turn = self.stands_for_election and not self.leads
        return self.goes_on_trying and self.heartbeat_ms == 0 and not waits_for_turn


@dataclass(frozen=True, slots=True)
class Example:
    """One measurement with its change in ZooKeeper and its time."""

    zxid: int
    lag_seconds: float
    at_seconds: float  # since 1970


@dataclass(frozen=True, slots=True)
class Lag:
    """The counts of lags of at most each bound and more than the bound before, and the sum of all lags.

    The last bound is infinity. `examples` has for each bound the newest lag whose zxid is known.
    """

    bounds_seconds: tuple[float, ...]
    counts: tuple[int, ...]
    examples: tuple[Example | None, ...]
    sum_seconds: float = 0.0

    @classmethod
    def none_yet(cls, bounds_seconds: tuple[float, ...]) -> Lag:
        """Return an empty lag with these bounds."""
        return cls(bounds_seconds, (0,) * len(bounds_seconds), (None,) * len(bounds_seconds))

    def observe(self, lag_seconds: float, *, zxid: int = -1, at_seconds: float = 0.0) -> Lag:
        """Return the lag with one more value. A clock that runs ahead counts as no lag, a zxid below 1 as unknown."""
        seconds = max(0.0, lag_seconds)
        bucket = bisect_left(self.bounds_seconds, seconds)
        counts = (*self.counts[:bucket], self.counts[bucket] + 1, *self.counts[bucket + 1 :])
        examples = self.examples
        if zxid > 0:
            examples = (*examples[:bucket], Example(zxid, seconds, at_seconds), *examples[bucket + 1 :])
        return Lag(self.bounds_seconds, counts, examples, self.sum_seconds + seconds)
