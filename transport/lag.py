"""Histogram of delays that grows."""

from __future__ import annotations

from bisect import bisect_left
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Example:
    """One measurement with its change in ZooKeeper and its time."""

    zxid: int
    lag_seconds: float
    at_seconds: float  # since 1970


@dataclass(frozen=True, slots=True)
class Lag:
    """The counts of lags of at most each bound and more than the one before, and the sum of all lags.

    The last bound is infinity. `examples` has the newest one of each bound whose zxid is known.
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
