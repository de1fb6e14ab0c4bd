"""What the Spark job costs: a `kontrast stream` of its own over a made-up cluster, seen from the outside.

The scenarios and their measurement belong here, without a verdict, because the figures depend on the machine. The time
of a change is from before its append to the job's journal until its row can be read from the outputs.
"""

from __future__ import annotations

import argparse
import json
import os
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from itertools import islice
from multiprocessing import get_context
from operator import itemgetter
from pathlib import Path

import msgspec
from rich.console import Console

from controller.contract.records import decode_record
from controller.contract.row import Row
from controller.restore.stored_context import new_context
from controller.step import step, steps
from lab.bench import floor
from lab.bench.core import Lines
from lab.bench.figures import Figure, by_size, latencies
from lab.bench.fleet import fleet_figures, fleet_of
from lab.bench.job import CHANGES_A_SECOND, CHANGES_A_TICK, SINGLE_CHANGES, WARM_UP, Job, Written, ticks
from streaming.spark_class_archive import make as make_class_archive
from tests.processes import command_line_of, descendants, program_of
from transport.journal import end_offset

HEARTBEATS = 60
TIMES = "times"
FLOOR_WARM_UP, FLOOR_ROUNDS = 20, 80
FLOOR_PARTITIONS = 1_000  # the number does not matter, because the floor passes each record through
# A job's time as a multiple of the floor's, at the median and at the 99th percentile.
FLOOR_GOALS = {"change": ("at most 1.15", "at most 1.4"), "heartbeat": ("at most 1.1", "")}
LOADED_SECONDS = 10
READY = "the gauges are complete"
_STAGE_LOOK_SECONDS = 0.02  # a look at all processes takes 3 ms, which a busier loop would take from the start


def under_load(job: Job, changes: Iterator[bytes]) -> list[float]:
    """Return the time of each change at a steady rate."""
    appended: dict[int, float] = {}
    took: list[float] = []
    all_sent = threading.Event()

    def send() -> None:
        for _ in islice(ticks(CHANGES_A_TICK / CHANGES_A_SECOND), LOADED_SECONDS * CHANGES_A_SECOND // CHANGES_A_TICK):
            lines = list(islice(changes, CHANGES_A_TICK))
            now = time.perf_counter()
            appended.update((msgspec.json.decode(line, type=Written).seq, now) for line in lines)
            job.append(lines)
        all_sent.set()

    sender = threading.Thread(target=send)
    sender.start()

    def take() -> bool:
        rows = list(job.outputs["metadata"].read())
        now = time.perf_counter()
        took.extend(now - appended.pop(row.seq) for row in rows if row.seq in appended)
        return all_sent.is_set() and not appended

    job.until(take)
    sender.join()
    return took


def rows_of_death(partitions: int) -> tuple[Row, ...]:
    """Return the replica's rows for the broker's death, outside Spark."""
    lines = Lines(partitions)
    context = steps(new_context("bench"), [decode_record(line) for line in lines.snapshot()]).context
    (death,) = lines.death()
    return step(context, decode_record(death)).effects


def figures(partitions: int, options: Sequence[str], say: Callable[[str], None]) -> Iterator[Figure]:
    """Yield all scenarios for one size of cluster."""
    with ProcessPoolExecutor(1, get_context("spawn")) as other:  # so that its memory is free for the job
        expected = other.submit(rows_of_death, partitions).result()
    lines = Lines(partitions)
    yield Figure("distinct replica lists", "", lines.distinct_replica_lists)
    with tempfile.TemporaryDirectory(prefix="bench-") as directory:
        job = Job(Path(directory), options)
        job.source.append(lines.snapshot())
        began = time.perf_counter()
        with job.running():
            over_after = stages(job, began)
            yield Figure("ready, from the process's start", "s", over_after[READY], "at most 9")
            for stage, seconds in over_after.items():
                yield Figure(f"a start, until {stage}", "s", seconds)
            yield from job.held("when ready")
            yield from job.written(partitions, "a partition")
            changes = lines.endless_changes()
            say("single changes")
            for line in islice(changes, WARM_UP):
                job.seconds_of(line, "metadata")
            took = [job.seconds_of(line, "metadata") for line in islice(changes, SINGLE_CHANGES)]
            yield from latencies("one change at a time", took)
            took = [job.seconds_of(lines.heartbeat(), "gauges") for _ in range(HEARTBEATS)]
            yield from latencies("a heartbeat alone", took)
            say("a job that passes records through")
            yield from ratios_to_floor(job, lines, changes, options)
            say("1,000 changes a second")
            before = job.sizes()
            yield from latencies("under 1,000 changes a second", under_load(job, changes))
            yield from job.written(LOADED_SECONDS * CHANGES_A_SECOND, "a change", before)
            say("a broker's death")
            yield from death_figures(job, lines, expected)
            yield from job.held("at the end")
        yield Figure("restarted, until the first new row", "s", job.seconds_of_restart(next(changes)), "at most 6")


def stages(job: Job, began: float) -> dict[str, float]:
    """Return the seconds until each stage of a start was over, in this order, as files and processes show it."""
    spark, outputs = job.directory / "checkpoint" / "spark", job.directory / "outputs"
    is_over: dict[str, Callable[[], bool]] = {
        "Java runs": lambda: any(program_of(pid) == "java" for pid in descendants(job.pid)),
        "the batch is planned": lambda: any((spark / "offsets").glob("[0-9]*")),
        "a Python worker runs": lambda: any("pyspark.daemon" in command_line_of(pid) for pid in descendants(job.pid)),
        "the first rows of partitions are out": lambda: end_offset(outputs / "metadata") > 0,
        READY: lambda: any([row.ready for row in job.outputs["gauges"].read()]),
        "the batch is committed": lambda: any((spark / "commits").glob("[0-9]*")),
    }
    seconds: dict[str, float] = {}

    def are_over() -> bool:
        time.sleep(_STAGE_LOOK_SECONDS)
        for stage in is_over.keys() - seconds.keys():
            if is_over[stage]():
                seconds[stage] = time.perf_counter() - began
        return seconds.keys() == is_over.keys()

    job.until(are_over)
    return dict(sorted(seconds.items(), key=itemgetter(1)))


def ratios_to_floor(job: Job, lines: Lines, changes: Iterator[bytes], options: Sequence[str]) -> Iterator[Figure]:
    """Yield the times of changes and heartbeats as multiples of those of a job without the core.

    The two take turns, so that other work of the machine slows both.
    """
    with tempfile.TemporaryDirectory(prefix="bench-") as directory:
        passing = Job(Path(directory), options, floor.PROGRAM)
        own = Lines(FLOOR_PARTITIONS)
        passing.source.append(own.snapshot())
        jobs = {"job": (job, lines, changes), "floor": (passing, own, own.endless_changes())}
        with passing.running():
            passing.until_row("metadata", lambda _: True)
            took: dict[tuple[str, str], list[float]] = {}
            for number in range(-FLOOR_WARM_UP, FLOOR_ROUNDS):
                for name, (each, its_lines, its_changes) in jobs.items():
                    for kind, line, output in (
                        ("change", next(its_changes), "metadata"),
                        ("heartbeat", its_lines.heartbeat(), "gauges"),
                    ):
                        seconds = each.seconds_of(line, output)
                        took.setdefault((kind, name), []).extend([seconds] if number >= 0 else [])
    for kind, goals in FLOOR_GOALS.items():
        of_job, of_floor = (list(latencies("", took[kind, name])) for name in ("job", "floor"))
        for percentile, above, below, goal in zip(("p50", "p99"), of_job, of_floor, goals, strict=True):
            yield Figure(f"a {kind} of the floor, {percentile}", "s", below.value)
            yield Figure(f"a {kind} / the floor's, {percentile}", TIMES, above.value / below.value, goal)


def death_figures(job: Job, lines: Lines, expected: Sequence[Row]) -> Iterator[Figure]:
    """Yield a broker's loss, and the writes that confirm its expected rows."""
    # Metadata is the longest of the outputs that are written together, and only alerts precede them.
    (death,) = lines.death()
    yield Figure("a broker's loss, all its rows out", "s", job.seconds_of(death, "metadata"), "at most 0.4")
    yield Figure("rows of this loss", "rows", len(expected))
    writes = lines.writes_after(expected)
    began, last = time.perf_counter(), json.loads(writes[-1])["seq"]
    job.source.append(writes)
    job.until_row("metadata", lambda row: row.seq >= last)
    yield Figure("the writes that confirm it, all out", "s", time.perf_counter() - began)


def show(of: str, sizes: Sequence[int | str], columns: Sequence[Sequence[Figure]]) -> None:
    """Print the figures by size."""
    title = f"The Spark job, {of}; load average {os.getloadavg()[0]:.1f}"
    Console(width=140).print(by_size(title, sizes, columns))


def options() -> argparse.Namespace:
    """Read the command line."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--partitions", type=int, nargs="*", default=[20_000, 200_000, 1_000_000], metavar="N")
    parser.add_argument(
        "--fleet",
        type=fleet_of,
        nargs="*",
        default=[],
        metavar="CLUSTERSxPARTITIONS",
        help="also many clusters at once",
    )
    parser.add_argument(
        "--option", action="append", default=[], help="of `kontrast stream`, like --option=--master=local[1]"
    )
    parser.add_argument("--json", action="store_true", help="print the figures as JSON")
    return parser.parse_args()


def main() -> None:
    """Measure, and print a table or JSON."""
    asked = options()
    make_class_archive()  # an installation has the archive, too
    screen = Console(stderr=True)

    def saying(size: str) -> Callable[[str], None]:
        return lambda word: screen.print(f"{size}: {word}")

    clusters = {str(size): list(figures(size, asked.option, saying(f"{size:,}"))) for size in asked.partitions}
    fleets = {}
    for count, partitions in asked.fleet:
        name = f"{count}x{partitions}"
        fleets[name] = list(fleet_figures(count, partitions, asked.option, saying(name)))
    if asked.json:
        columns = {**clusters, **fleets}.items()
        print(json.dumps({size: {figure.name: figure.value for figure in found} for size, found in columns}, indent=2))
        return
    if clusters:
        show("one cluster; by partitions", asked.partitions, list(clusters.values()))
    if fleets:
        show("many clusters; clusters x partitions", list(fleets), list(fleets.values()))


if __name__ == "__main__":
    main()
