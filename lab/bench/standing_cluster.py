"""The job on a standing Spark cluster: ready time by executors, a change, a lost worker, and more shuffle partitions.

Master, workers and driver are processes of this machine, so executors share its cores. After each run the rows of all
clusters are compared with the replica's outside Spark. Clusters change in turn while a worker is lost.
"""

from __future__ import annotations

import argparse
import json
import os
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from itertools import cycle
from multiprocessing import get_context
from pathlib import Path

import msgspec
from rich.console import Console

from controller.contract.outputs import OUTPUTS
from controller.contract.records import decode_record
from deploy import dist
from lab.bench.figures import Figure, by_size, latencies, machine
from lab.bench.fleet import Fleet, fleet_of, name_of
from lab.bench.job import READ_BYTES, SINGLE_CHANGES, WARM_UP, Job, Written, ticks
from lab.bench.placement import add_options, shape_of
from tests.processes import descendants, program_of, proportional_bytes
from tests.streaming.cluster_records import rows_of
from tests.streaming.standalone_cluster import SparkCluster, environment, submit_command
from tests.waiting import eventually
from transport.journal import read_journal

TICK_SECONDS = 0.05
LOSS_SECONDS = 30.0  # of changes after the kill
KILLED_AFTER_TICKS = 100
SETTINGS = ("spark.executor.cores=1", "spark.executor.memory=1g", "spark.ui.enabled=false")


class FleetOnSpark:
    """A fleet's job on a Spark cluster, with all records that it was given."""

    def __init__(self, directory: Path, fleet: Fleet, cluster: SparkCluster) -> None:
        self._directory, self._fleet, self._cluster = directory, fleet, cluster
        self._code, self._program, *_ = dist.make(directory / "dist")
        self.sent = {name_of(number): list(read) for number, read in enumerate(fleet.complete_reads())}
        self.job = self._job(len(cluster.workers))
        for read in self.sent.values():
            self.job.source.append(read)

    def _job(self, tasks: int) -> Job:
        settings = (*SETTINGS, f"spark.cores.max={len(self._cluster.workers)}")
        command = [*submit_command(self._cluster.master, self._code, settings), str(self._program)]
        options = ["--shuffle-partitions", str(tasks)]
        return Job(self._directory / "job", options, command, environment(self._directory))

    def with_more_tasks(self) -> Job:
        """Return a job on the same checkpoint with twice as many shuffle partitions."""
        self.job.source.close()
        job = self._job(2 * len(self._cluster.workers))
        for _ in job.outputs["gauges"].read():
            pass  # skip rows of the earlier job
        return job

    def change(self) -> float:
        """Return the time of a change of the fleet's healthy cluster."""
        name, line = self._fleet.next_change()
        self.sent[name].append(line)
        return self.job.seconds_of(line, "metadata", name)

    def memory(self) -> Iterator[Figure]:
        """Yield the memory of the processes by role."""
        below = descendants(self.job.pid)
        roles = {
            "driver, Java": [self.job.pid],
            "driver, Python": [pid for pid in below if program_of(pid) != "java"],
            "master and workers": [daemon.pid for daemon in self._cluster.daemons],
            "executors, Java": [],
            "executors, Python": [],
        }
        for worker in self._cluster.workers:
            for pid in descendants(worker.pid):
                roles["executors, Java" if program_of(pid) == "java" else "executors, Python"].append(pid)
        for role, pids in roles.items():
            yield Figure(f"memory, {role}", "MB", sum(map(proportional_bytes, pids)) / 1e6)

    def lose_a_worker(self) -> Iterator[Figure]:
        """Kill a worker that runs tasks, while all clusters change in turn, and yield the pause."""
        appended: dict[tuple[str, int], float] = {}
        done: list[tuple[float, float]] = []  # times of append and of the row
        killed: list[float] = []
        all_sent = threading.Event()
        sender = threading.Thread(target=self._change_all, args=(appended, killed, all_sent))
        sender.start()

        def take() -> bool:
            rows = list(self.job.outputs["metadata"].read())
            now = time.perf_counter()
            done.extend((appended.pop(key), now) for row in rows if (key := (row.cluster, row.seq)) in appended)
            return all_sent.is_set() and not appended

        self.job.until(take)
        sender.join()
        (killed_at,) = killed
        out = sorted({now for _, now in done})
        pauses = [(later - earlier, later) for earlier, later in zip(out, out[1:], strict=False) if later > killed_at]
        longest, until = max(pauses)
        yield Figure("after the loss: longest pause without a row", "s", longest)
        yield Figure("after the loss: rows flow again, from the kill", "s", until - killed_at)
        yield Figure("after the loss: latest change", "s", max(now - then for then, now in done if now > killed_at))
        before = [now - then for then, now in done if now < killed_at]
        after = [now - then for then, now in done if then > until]
        yield from latencies("changes in turn, before the loss", before)
        yield from latencies("changes in turn, after the pause", after)

    def _change_all(
        self, appended: dict[tuple[str, int], float], killed: list[float], all_sent: threading.Event
    ) -> None:
        for tick, number in zip(ticks(TICK_SECONDS), cycle(range(self._fleet.clusters)), strict=False):
            if tick == KILLED_AFTER_TICKS:
                killed.append(time.perf_counter())
                eventually(self._cluster.workers_with_tasks)[-1].kill()
            if killed and time.perf_counter() > killed[0] + LOSS_SECONDS:
                break
            name, line = self._fleet.next_change(number)
            appended[name, msgspec.json.decode(line, type=Written).seq] = time.perf_counter()
            self.sent[name].append(line)
            self.job.append([line])
        all_sent.set()

    def compared(self) -> Iterator[Figure]:
        """Compare the rows with the replica's outside Spark, for each cluster and output."""
        found: dict[tuple[str, str], list[bytes]] = {}
        for output in OUTPUTS:
            offset = 0
            while (batch := read_journal(self.job.directory / "outputs" / output, offset, READ_BYTES)).lines:
                offset = batch.next_offset
                for line in batch.lines:
                    name = msgspec.json.decode(line, type=Written).cluster
                    found.setdefault((name, output), []).append(line)
        rows = lost = doubled = moved = 0
        with ProcessPoolExecutor(os.cpu_count(), get_context("spawn")) as others:
            for name, expected in zip(self.sent, others.map(expected_rows, self.sent.values()), strict=True):
                for output, wanted in expected.items():
                    there = found.pop((name, output), [])
                    rows += len(wanted)
                    lost += (Counter(wanted) - Counter(there)).total()
                    doubled += (Counter(there) - Counter(wanted)).total()
                    moved += sorted(there) == sorted(wanted) and there != wanted
        yield Figure("rows of the replica outside Spark", "rows", rows)
        yield Figure("rows lost", "rows", lost, "0")
        yield Figure("rows doubled or others", "rows", doubled + sum(map(len, found.values())), "0")
        yield Figure("outputs of a cluster in another order", "", moved, "0")


def expected_rows(lines: Sequence[bytes]) -> dict[str, list[bytes]]:
    """Return the replica's rows for the records of one cluster, by output."""
    return rows_of([decode_record(line) for line in lines])


def figures(workers: int, fleet: Fleet, screen: Console) -> Iterator[Figure]:
    """Yield all scenarios for so many workers with one core each."""
    with (
        tempfile.TemporaryDirectory(prefix="bench-") as name,
        SparkCluster(Path(name), workers=workers, cores=1, memory="2g") as cluster,
    ):
        run = FleetOnSpark(Path(name), fleet, cluster)
        began = time.perf_counter()
        with run.job.running():
            fleet.until_ready(run.job)
            yield Figure("ready, from spark-submit", "s", time.perf_counter() - began)
            screen.print(f"{workers} workers: single changes")
            for _ in range(WARM_UP):
                run.change()
            yield from latencies("one change at a time", [run.change() for _ in range(SINGLE_CHANGES)])
            yield from run.memory()
            if workers > 1:
                screen.print(f"{workers} workers: a worker lost")
                yield from run.lose_a_worker()
        screen.print(f"{workers} workers: comparing rows")
        yield from run.compared()
        screen.print(f"{workers} workers: more shuffle partitions")
        again = run.with_more_tasks()
        began = time.perf_counter()
        with again.running():
            fleet.until_ready(again)
            yield Figure("ready again with twice the shuffle partitions", "s", time.perf_counter() - began)


def main() -> None:
    """Measure, and print a table or JSON."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--workers", type=int, nargs="+", default=[1, 2, 3], metavar="N")
    parser.add_argument("--fleet", type=fleet_of, default=(200, 2_000), metavar="CLUSTERSxPARTITIONS")
    parser.add_argument("--json", action="store_true", help="print the figures as JSON")
    add_options(parser)
    asked = parser.parse_args()
    clusters, partitions = asked.fleet
    screen = Console(stderr=True)
    os.environ.setdefault("JAVA_TOOL_OPTIONS", "")  # Java chooses its options itself, not those for short tests
    columns = [list(figures(count, Fleet(clusters, partitions, shape_of(asked)), screen)) for count in asked.workers]
    for count, column in zip(asked.workers, columns, strict=True):
        if asked.json:
            print(json.dumps({"workers": count, "machine": machine(), **{each.name: each.value for each in column}}))
        else:
            title = f"{clusters} clusters of {partitions:,} partitions; load average {os.getloadavg()[0]:.1f}"
            Console(width=140).print(by_size(title, [f"{count} workers"], [column]))


if __name__ == "__main__":
    main()
