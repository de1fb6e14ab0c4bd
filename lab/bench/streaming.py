"""What the Spark job costs: a `kontrast stream` of its own over a made-up cluster, seen from the outside.

The scenarios and their measurement belong here, without a verdict, because the figures depend on the machine. The time
of a change is from before its append to the job's journal until its row can be read from the outputs.
"""

from __future__ import annotations

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
from lab.bench.core import Lines
from lab.bench.figures import Figure, latencies, options, print_by_size
from lab.bench.job import CHANGES_A_SECOND, CHANGES_A_TICK, SINGLE_CHANGES, WARM_UP, Job, Written, ticks
from streaming.spark_class_archive import make as make_class_archive
from tests.processes import command_line_of, descendants, program_of
from transport.journal_reading import end_offset

HEARTBEATS = 60
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


def main() -> None:
    """Measure, and print a table or JSON."""
    parser = options(__doc__, 20_000, 200_000, 1_000_000)
    help_text = "of `kontrast stream`, like --option=--master=local[1]"
    parser.add_argument("--option", action="append", default=[], help=help_text)
    asked = parser.parse_args()
    make_class_archive()  # an installation has the archive, too
    screen = Console(stderr=True)

    def saying(size: str) -> Callable[[str], None]:
        return lambda word: screen.print(f"{size}: {word}")

    columns = [list(figures(size, asked.option, saying(f"{size:,}"))) for size in asked.partitions]
    title = f"The Spark job; by partitions; load average {os.getloadavg()[0]:.1f}"
    print_by_size(title, asked.partitions, columns, as_json=asked.json)


if __name__ == "__main__":
    main()
