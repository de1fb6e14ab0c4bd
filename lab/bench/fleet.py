"""Many clusters in one job: ready, changes, a loss, and the effect of a sick cluster on the others."""

from __future__ import annotations

import os
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from lab.bench.core import Lines
from lab.bench.figures import Figure, latencies
from lab.bench.job import CHANGES_A_SECOND, CHANGES_A_TICK, SINGLE_CHANGES, WARM_UP, Job, ticks


class Fleet:
    """Clusters of equal size, each with a placement of its own, whose records one job reads.

    The last cluster is healthy and changes, the first can be sick.
    """

    def __init__(self, clusters: int, partitions: int) -> None:
        self.clusters, self.partitions = clusters, partitions
        self._lines = [Lines(partitions, number) for number in range(clusters)]
        self.sick, self.healthy = self._lines[0], self._lines[-1]
        self._changes = [lines.endless_changes() for lines in self._lines]

    def complete_reads(self) -> Iterator[list[bytes]]:
        """Yield a complete read of each cluster."""
        for number, lines in enumerate(self._lines):
            yield [of_cluster(number, line) for line in lines.snapshot()]

    def next_change(self, number: int = -1) -> tuple[str, bytes]:
        """Return the name of a cluster and its next change."""
        place = number % self.clusters
        return name_of(place), of_cluster(place, next(self._changes[place]))

    def until_ready(self, job: Job) -> None:
        """Wait until the gauges of all clusters are ready."""
        ready: set[str] = set()

        def all_ready() -> bool:
            ready.update(row.cluster for row in job.outputs["gauges"].read() if row.ready)
            return len(ready) == self.clusters

        job.until(all_ready)

    def seconds_of(self, job: Job, line: bytes) -> float:
        """Return the time from appending a record of the healthy cluster until its row can be read."""
        number = self.clusters - 1
        return job.seconds_of(of_cluster(number, line), "metadata", name_of(number))

    def seconds_of_change(self, job: Job) -> float:
        """Return the time of the next change of the healthy cluster."""
        name, line = self.next_change()
        return job.seconds_of(line, "metadata", name)

    def flood(self, job: Job, healed: threading.Event) -> None:
        """Send a thousand lines a second for the sick cluster until it is healed. Every tenth line is no record."""
        for _ in ticks(CHANGES_A_TICK / CHANGES_A_SECOND):
            if healed.is_set():
                break
            block = [self.next_change(0)[1] for _ in range(CHANGES_A_TICK - 1)]
            job.append([*block, b'{"v":1,"cluster":"bench-00","seq":'])


def name_of(number: int) -> str:
    """Return a cluster's name."""
    return f"bench-{number:02}"


def of_cluster(number: int, line: bytes) -> bytes:
    """Return the line for another cluster."""
    return line.replace(b'"cluster":"bench"', b'"cluster":"%s"' % name_of(number).encode(), 1)


def fleet_of(text: str) -> tuple[int, int]:
    """Read clusters and their partitions, like 50x2000. Raise ValueError."""
    clusters, partitions = map(int, text.split("x"))
    return clusters, partitions


def fleet_figures(
    clusters: int, partitions: int, options: Sequence[str], say: Callable[[str], None]
) -> Iterator[Figure]:
    """Yield all scenarios for one fleet."""
    fleet = Fleet(clusters, partitions)
    with tempfile.TemporaryDirectory(prefix="bench-") as directory:
        job = Job(Path(directory), ["--shuffle-partitions", str(os.cpu_count()), *options])
        for read in fleet.complete_reads():
            job.source.append(read)
        began = time.perf_counter()
        with job.running():
            fleet.until_ready(job)
            yield Figure("ready, from the process's start", "s", time.perf_counter() - began)
            yield from job.held("when ready")
            yield from job.written(clusters * partitions, "a partition")
            say("single changes of a healthy cluster")
            for _ in range(WARM_UP):
                fleet.seconds_of_change(job)
            before = job.sizes()
            took = [fleet.seconds_of_change(job) for _ in range(SINGLE_CHANGES)]
            yield from latencies("one change at a time", took)
            yield from job.written(SINGLE_CHANGES, "a change", before)
            say("the same beside a sick cluster")
            healed = threading.Event()
            sick = threading.Thread(target=fleet.flood, args=(job, healed))
            sick.start()
            took = [fleet.seconds_of_change(job) for _ in range(SINGLE_CHANGES // 2)]
            healed.set()
            sick.join()
            yield from latencies("the same beside a sick cluster", took)
            say("a broker's death")
            (death,) = fleet.healthy.death()
            yield Figure("a broker's loss, all its rows out", "s", fleet.seconds_of(job, death))
            yield from job.held("at the end")
