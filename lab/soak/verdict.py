"""Judgement of growth, by the slope of each reading over the longest life of its process.

The thresholds with their reasons belong here, the readings in `measurements`.
"""

from __future__ import annotations

import statistics
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations

from lab.soak.measurements import HEAP_BYTES, HEAP_TAKEN, SMALL_OBJECTS, Sample

_WARM_UP_SHARE = 0.25  # of a life, at least _WARM_UP_SECONDS
_WARM_UP_SECONDS = 300.0
_FEWEST_SAMPLES = 8
_MEGABYTE = 1024 * 1024


@dataclass(frozen=True, slots=True)
class Threshold:
    """The growth that is allowed within the judged time, as a share of the reading at its begin, and a number.

    A reading that swings may also grow by its median distance from the line.
    """

    share: float
    number: float


# A process's memory moves by a few MB with waiting garbage and with visitors' pages. A leak of one object of 1 kB a
# second is 3.6 MB an hour. A long run finds it, and an hour finds larger ones.
_MEMORY = Threshold(0.05, 4 * _MEGABYTE)
# Gaps between the objects of a Python process spread while objects are replaced. A `serve` whose heap went from
# 21 to 24 MB had 59 MB of the system for it, and went from 97 to 128 MB in all.
_SPREAD = Threshold(0.5, 16 * _MEGABYTE)
_OBJECTS = Threshold(0.05, 45_000)  # 4 MB
# Connections, workers and files come and go, so the open ones differ by a handful from minute to minute.
_COUNT = Threshold(0.05, 5)
# A snapshot of the state comes before or after a cleaning, with a dozen files.
_FILES = Threshold(0.05, 40)
JUDGED: Mapping[str, Threshold] = {
    "rss_bytes": _MEMORY,
    "live_heap_bytes": _MEMORY,
    HEAP_BYTES: _MEMORY,
    SMALL_OBJECTS: _OBJECTS,
    "open_files": _COUNT,
    "threads": _COUNT,
    "processes": _COUNT,
    "temporary_files": _COUNT,
    "temporary_bytes": _MEMORY,
    "checkpoint_files": _FILES,
    "checkpoint_bytes": _MEMORY,
}


# Files wait for Java's next collection, after which Spark deletes them. In a soak their number rose to 43 and fell to
# 24 within five minutes, so the lowest reading of each cycle of cleaning counts.
_CLEANED = frozenset({"temporary_files", "temporary_bytes", "checkpoint_files", "checkpoint_bytes"})
_CYCLE_SECONDS = 300.0

# Java takes its heap from the system bit by bit, and returns nothing. Until the heap is full, memory grows without a
# leak. The Serial collector leaves a tenth of the heap's young part empty.
_RESIDENT = frozenset({"rss_bytes", "pss_bytes", "anonymous_bytes"})
_FULL_HEAP_PERMILLE = 900
_SHARE_WITH_FULL_HEAP = 0.5  # of a life, at least, in which memory is judged


@dataclass(frozen=True, slots=True)
class Judged:
    """One reading of one subject over the judged part of its longest life."""

    subject: str
    reading: str
    samples: int
    seconds: float
    first: float  # of the line through the readings
    last: float
    an_hour: float  # the slope
    lowest: float
    highest: float
    allowed: float | None  # growth within the judged time. None means that it is not judged

    @property
    def grew(self) -> bool:
        """Return whether the reading grew by more than is allowed."""
        return self.allowed is not None and self.last - self.first > self.allowed

    def sentence(self) -> str:
        """Return the violation."""
        return (
            f"{self.subject}: {self.reading} grew from {self.first:,.0f} to {self.last:,.0f} within "
            f"{self.seconds / 60:.0f} minutes, more than the {self.allowed or 0:,.0f} that are allowed"
        )


def judge(samples: Iterable[Sample]) -> list[Judged]:
    """Judge every reading of every subject, by its longest life. Leave out readings with too few samples."""
    judged: list[Judged] = []
    for subject, life in _longest_lives(samples).items():
        warm = _after_warm_up(life)
        for reading in sorted({name for sample in warm for name in sample.values}):
            points = [(sample.at_seconds, sample.values[reading]) for sample in warm if reading in sample.values]
            full_from = _full_from(life) if reading in _RESIDENT else life[0].at_seconds
            if full_from is not None:
                points = [point for point in points if point[0] >= full_from]
            if reading in _CLEANED:
                points = _lowest_within_a_cycle(points)
            if len(points) >= _FEWEST_SAMPLES:
                threshold = _SPREAD if reading == "rss_bytes" and HEAP_BYTES in warm[-1].values else JUDGED.get(reading)
                judged.append(_judged(subject, reading, points, None if full_from is None else threshold))
    return judged


def _lowest_within_a_cycle(points: Sequence[tuple[float, int]]) -> list[tuple[float, int]]:
    return [(at, min(value for then, value in points if abs(then - at) <= _CYCLE_SECONDS / 2)) for at, _ in points]


def _longest_lives(samples: Iterable[Sample]) -> dict[str, list[Sample]]:
    lives: dict[str, dict[str, list[Sample]]] = {}
    for sample in samples:
        lives.setdefault(sample.subject, {}).setdefault(sample.life, []).append(sample)
    return {
        subject: max(of.values(), key=lambda life: life[-1].at_seconds - life[0].at_seconds)
        for subject, of in lives.items()
    }


def _after_warm_up(life: Sequence[Sample]) -> list[Sample]:
    began, seconds = life[0].at_seconds, life[-1].at_seconds - life[0].at_seconds
    warm_from = began + min(max(_WARM_UP_SECONDS, _WARM_UP_SHARE * seconds), seconds / 2)
    return [sample for sample in life if sample.at_seconds >= warm_from]


def _full_from(life: Sequence[Sample]) -> float | None:
    """Return when the heap of a Java process was full, its begin for other processes.

    Return None if that was not in the first half of the life.
    """
    taken = [(sample.at_seconds, sample.values[HEAP_TAKEN]) for sample in life if HEAP_TAKEN in sample.values]
    if not taken:
        return life[0].at_seconds
    full = next((at for at, permille in taken if permille >= _FULL_HEAP_PERMILLE), None)
    half = life[0].at_seconds + _SHARE_WITH_FULL_HEAP * (life[-1].at_seconds - life[0].at_seconds)
    return full if full is not None and full <= half else None


def _judged(subject: str, reading: str, points: Sequence[tuple[float, int]], threshold: Threshold | None) -> Judged:
    slope = _slope(points)
    levels = [value - slope * at for at, value in points]
    middle = statistics.median(levels)
    swing = statistics.median(abs(level - middle) for level in levels)
    begin, end = points[0][0], points[-1][0]
    first = middle + slope * begin
    return Judged(
        subject=subject,
        reading=reading,
        samples=len(points),
        seconds=end - begin,
        first=first,
        last=middle + slope * end,
        an_hour=slope * 3600,
        lowest=min(value for _, value in points),
        highest=max(value for _, value in points),
        allowed=None if threshold is None else max(threshold.share * first, threshold.number, swing),
    )


def _slope(points: Sequence[tuple[float, int]]) -> float:
    """Return the slope by Theil and Sen, the median of the slopes between any two points. Outliers do not move it."""
    return statistics.median((y - x) / (b - a) for (a, x), (b, y) in combinations(points, 2) if b > a)
