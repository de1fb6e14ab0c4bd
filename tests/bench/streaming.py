"""What the Spark job costs: a `kontrast stream` of its own over a made-up cluster, seen from the outside.

The scenarios and their measurement belong here, without a verdict, because the figures depend on the machine. The time
of a change is from before its append to the job's journal until its row can be read from the outputs.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from itertools import islice
from pathlib import Path
from statistics import median

import msgspec
from rich.console import Console

from controller.contract.outputs import OUTPUTS
from controller.contract.records import RecordKind, decode_record
from controller.contract.row import Row
from controller.restore.stored_context import new_context
from controller.step import step, steps
from tests.bench.core import CHUNKS, Lines
from tests.bench.figures import Figure, by_size
from tests.bench.placement import Shape, add_options, shape_of
from tests.processes import descendants
from tests.waiting import eventually
from transport.journal import JournalWriter, end_offset, read_journal

ROOT = Path(__file__).parents[2]
READ_BYTES = 8 * 1024**2
DEADLINE_SECONDS = 600
WARM_UP = 60
SINGLE_CHANGES = 150
HEARTBEATS = 60
FLEET, FLEET_PARTITIONS = 50, 4_000
FORCING_PARTITIONS = 20_000
KONTRAST = (sys.executable, "-m", "cli")
# A job without forced writes shows the cost of forcing a checkpoint to disk. Users cannot run such a job.
WITHOUT_FORCING = (
    sys.executable,
    "-c",
    "from streaming.checkpoint.files import CheckpointFiles; CheckpointFiles.force = lambda self: None; "
    "from cli.start import main; main()",
)
CHANGES_A_SECOND, LOADED_SECONDS = 1_000, 10


class Written(msgspec.Struct):
    """The fields of a row that identify its record, and of a record its place."""

    seq: int
    cluster: str = ""
    ready: bool = False


class Output:
    """One output of the job, read as it grows."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self._offset = 0
        self._decoder = msgspec.json.Decoder(Written)
        self.rows = 0

    def read(self) -> Iterator[Written]:
        """Yield the new rows."""
        while end_offset(self._directory) > self._offset:
            batch = read_journal(self._directory, self._offset, READ_BYTES)
            self._offset = batch.next_offset
            self.rows += len(batch.lines)
            yield from map(self._decoder.decode, batch.lines)


class Job:
    """A running job, its source and its outputs, in a directory."""

    def __init__(self, directory: Path, options: Sequence[str], program: Sequence[str] = KONTRAST) -> None:
        directory.mkdir(exist_ok=True)
        self.directory = directory
        self.source = JournalWriter(directory / "records")
        self.outputs = {output: Output(directory / "outputs" / output) for output in (*OUTPUTS, "job")}
        self._appending = threading.Lock()
        self._command = [*program, "stream", "--checkpoint", str(directory / "checkpoint")]
        self._command += ["--from", f"journal:{directory / 'records'}", "--to", f"journal:{directory / 'outputs'}"]
        self._command += options
        self._log = (directory / "log").open("wb")

    @contextmanager
    def running(self) -> Iterator[Job]:
        """Start the job, and stop it in order."""
        self._process = subprocess.Popen(self._command, cwd=ROOT, stderr=self._log, start_new_session=True)
        try:
            yield self
        finally:
            self._process.send_signal(signal.SIGTERM)
            try:
                self._process.wait(60)
            finally:
                self._process.kill()

    def until(self, holds: Callable[[], bool]) -> None:
        """Wait for a condition, about every millisecond."""

        def still_runs() -> None:
            if self._process.poll() is not None:
                raise SystemExit((self.directory / "log").read_text()[-3000:])

        eventually(holds, meanwhile=still_runs, within_seconds=DEADLINE_SECONDS, pause_seconds=0.001)

    def until_row(self, output: str, wanted: Callable[[Written], bool]) -> None:
        """Wait until a wanted row can be read. Skip rows before it."""
        self.until(lambda: any([wanted(row) for row in self.outputs[output].read()]))

    def append(self, lines: Sequence[bytes]) -> None:
        """Append lines to the job's source, safely from several threads."""
        with self._appending:
            self.source.append(lines)

    def seconds_of(self, line: bytes, output: str, cluster: str = "bench") -> float:
        """Return the time from appending the record until its row can be read."""
        seq = json.loads(line)["seq"]
        began = time.perf_counter()
        self.append([line])
        self.until_row(output, lambda row: row.seq >= seq and row.cluster == cluster)
        return time.perf_counter() - began

    def memory_bytes(self) -> dict[str, int]:
        """Return the current resident memory of its processes, by program. Shared memory counts in each."""
        sizes: dict[str, int] = {}
        for pid in (self._process.pid, *descendants(self._process.pid)):
            with suppress(OSError):
                status = dict(
                    line.split(":", 1) for line in Path(f"/proc/{pid}/status").read_text().splitlines() if ":" in line
                )
                name = "Java" if status["Name"].strip() == "java" else "Python"
                sizes[name] = sizes.get(name, 0) + int(status.get("VmRSS", "0 kB").split()[0]) * 1024
        return sizes


def size_of(directory: Path) -> int:
    """Return the bytes of all files below."""
    return sum(path.stat().st_size for path in directory.rglob("*") if path.is_file())


def changes_of(lines: Lines) -> Iterator[bytes]:
    """Yield endless changes in which followers of random partitions leave the ISR and return."""
    version, chosen, partitions = 1, random.Random(1), list(lines._hosts.items())
    while True:
        tp, hosts = chosen.choice(partitions)
        yield lines.state(*tp, hosts[0], 0, hosts[:2], version)
        yield lines.state(*tp, hosts[0], 0, hosts, version + 1)
        version += 2


def latencies(name: str, seconds: Sequence[float], goals: tuple[str, str] = ("", "")) -> Iterator[Figure]:
    ordered = sorted(seconds)
    yield Figure(f"{name}, p50", "s", median(ordered), goals[0])
    yield Figure(f"{name}, p99", "s", ordered[int(0.99 * (len(ordered) - 1))], goals[1])


def under_load(job: Job, changes: Iterator[bytes]) -> list[float]:
    """Return the time of each change at a steady rate, with ten changes a tick."""
    appended: dict[int, float] = {}
    took: list[float] = []
    all_sent = threading.Event()

    def send() -> None:
        began = time.perf_counter()
        ticks = LOADED_SECONDS * 100
        for tick in range(ticks):
            lines = list(islice(changes, CHANGES_A_SECOND // 100))
            time.sleep(max(0.0, began + tick / 100 - time.perf_counter()))
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


def rows_of_death(lines: Lines) -> tuple[Row, ...]:
    """Return the replica's rows for the broker's death, outside Spark. This consumes the lines."""
    context = steps(
        new_context("bench", chunk_count=CHUNKS), [decode_record(line) for line in lines.snapshot()]
    ).context
    (death,) = lines.death()
    return step(context, decode_record(death)).effects


def figures(partitions: int, shape: Shape, options: Sequence[str], say: Callable[[str], None]) -> Iterator[Figure]:
    """Yield all scenarios for one size of cluster."""
    lines = Lines(partitions, shape)
    yield Figure("distinct replica lists", "", lines.distinct_replica_lists)
    snapshot = lines.snapshot()
    heartbeat = {"session": "connected", "watch_mode": "persistent"}
    expected = rows_of_death(Lines(partitions, shape))
    with tempfile.TemporaryDirectory(prefix="bench-") as directory:
        job = Job(Path(directory), options)
        job.source.append(snapshot)
        began = time.perf_counter()
        with job.running():
            job.until(lambda: end_offset(job.directory / "outputs" / "metadata") > 0)
            first = time.perf_counter() - began
            job.until_row("gauges", lambda row: row.ready)
            yield Figure("ready, from the process's start", "s", time.perf_counter() - began, "at most 10")
            yield Figure("of that, until the first batch is out", "s", first)
            yield Figure("Java after that", "MB", job.memory_bytes().get("Java", 0) / 1e6)
            yield Figure("Python after that", "MB", job.memory_bytes().get("Python", 0) / 1e6)
            changes = changes_of(lines)
            say("single changes")
            for line in islice(changes, WARM_UP):
                job.seconds_of(line, "metadata")
            took = [job.seconds_of(line, "metadata") for line in islice(changes, SINGLE_CHANGES)]
            yield from latencies("one change at a time", took, ("at most 0.2", "at most 0.4"))
            took = [
                job.seconds_of(lines.record(RecordKind.HEARTBEAT, content=heartbeat), "gauges")
                for _ in range(HEARTBEATS)
            ]
            yield from latencies("a heartbeat alone", took, ("below 0.15", ""))
            say("1,000 changes a second")
            yield from latencies("under 1,000 changes a second", under_load(job, changes))
            say("a broker's death")
            # Rows of a batch are written output by output, metadata behind transitions and requests.
            (death,) = lines.death()
            yield Figure("a broker's loss, all its rows out", "s", job.seconds_of(death, "metadata"), "at most 1.5")
            yield Figure("rows of this loss", "rows", len(expected))
            writes = lines.writes_after(expected)
            began, last = time.perf_counter(), json.loads(writes[-1])["seq"]
            job.source.append(writes)
            job.until_row("metadata", lambda row: row.seq >= last)
            yield Figure("the writes that confirm it, all out", "s", time.perf_counter() - began)
            yield Figure("checkpoint on disk", "MB", size_of(job.directory / "checkpoint") / 1e6)
            memory = job.memory_bytes()
            yield Figure("Java at the end", "MB", memory.get("Java", 0) / 1e6)
            yield Figure("Python at the end", "MB", memory.get("Python", 0) / 1e6)


def of_cluster(number: int, line: bytes) -> bytes:
    """Return the line for another cluster."""
    return line.replace(b'"cluster":"bench"', b'"cluster":"bench-%02d"' % number, 1)


def fleet_figures(shape: Shape, options: Sequence[str], say: Callable[[str], None]) -> Iterator[Figure]:
    """Yield figures of many clusters in one job, and the effect of a sick one on the others."""
    clusters = [Lines(FLEET_PARTITIONS, shape) for _ in range(FLEET)]
    with tempfile.TemporaryDirectory(prefix="bench-") as directory:
        job = Job(Path(directory), ["--shuffle-partitions", str(os.cpu_count()), *options])
        for number, lines in enumerate(clusters):
            job.source.append([of_cluster(number, line) for line in lines.snapshot()])
        ready: set[str] = set()
        began = time.perf_counter()
        with job.running():

            def all_ready() -> bool:
                ready.update(row.cluster for row in job.outputs["gauges"].read() if row.ready)
                return len(ready) == FLEET

            job.until(all_ready)
            yield Figure("ready, from the process's start", "s", time.perf_counter() - began)
            changes = changes_of(clusters[-1])

            def seconds_of_healthy() -> float:
                return job.seconds_of(of_cluster(FLEET - 1, next(changes)), "metadata", f"bench-{FLEET - 1:02}")

            for _ in range(WARM_UP):
                seconds_of_healthy()
            say("single changes of a healthy cluster")
            yield from latencies("one change of one cluster", [seconds_of_healthy() for _ in range(SINGLE_CHANGES)])
            say("the same beside a sick cluster")
            healed = threading.Event()
            sick = threading.Thread(target=flood, args=(job, clusters[0], healed))
            sick.start()
            took = [seconds_of_healthy() for _ in range(SINGLE_CHANGES // 2)]
            healed.set()
            sick.join()
            yield from latencies("the same beside a sick cluster", took)


def forcing_figures(shape: Shape, options: Sequence[str], say: Callable[[str], None]) -> Iterator[Figure]:
    """Yield single changes of two jobs in turn, of which one does not force its checkpoint to disk."""
    programs = {"forced": KONTRAST, "not forced": WITHOUT_FORCING}
    clusters = {name: Lines(FORCING_PARTITIONS, shape) for name in programs}
    took: dict[str, list[float]] = {name: [] for name in programs}
    with tempfile.TemporaryDirectory(prefix="bench-") as directory, ExitStack() as running:
        jobs = {name: Job(Path(directory) / name, options, program) for name, program in programs.items()}
        for name, job in jobs.items():
            say(name)
            job.source.append(clusters[name].snapshot())
            running.enter_context(job.running())
            job.until_row("gauges", lambda row: row.ready)
        changes = {name: changes_of(lines) for name, lines in clusters.items()}
        say("single changes in turn")
        for number in range(WARM_UP + SINGLE_CHANGES):
            for name, job in jobs.items():
                seconds = job.seconds_of(next(changes[name]), "metadata")
                took[name] += [seconds] if number >= WARM_UP else []
    for name, all_seconds in took.items():
        yield from latencies(f"one change, checkpoint {name}", all_seconds)


def flood(job: Job, lines: Lines, healed: threading.Event) -> None:
    """Send a thousand lines a second to one cluster, of which every tenth is no record."""
    changes = changes_of(lines)
    began, ticks = time.perf_counter(), 0
    while not healed.is_set():
        block = [of_cluster(0, line) for line in islice(changes, CHANGES_A_SECOND // 100 - 1)]
        job.append([*block, b'{"v":1,"cluster":"bench-00","seq":'])
        ticks += 1
        time.sleep(max(0.0, began + ticks / 100 - time.perf_counter()))


def show(of: str, sizes: Sequence[int], columns: Sequence[Sequence[Figure]]) -> None:
    """Print the figures by size."""
    title = f"The Spark job, {of}; load average {os.getloadavg()[0]:.1f}"
    Console(width=140).print(by_size(title, sizes, columns))


def main() -> None:
    """Measure, and print a table or JSON."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--partitions", type=int, nargs="+", default=[20_000, 200_000, 1_000_000], metavar="N")
    parser.add_argument(
        "--option", action="append", default=[], help="of `kontrast stream`, like --option=--master=local[1]"
    )
    parser.add_argument("--no-fleet", dest="fleet", action="store_false", help="leave the many clusters out")
    parser.add_argument("--forcing", action="store_true", help="only what forcing the checkpoint to disk costs")
    parser.add_argument("--json", action="store_true", help="print the figures as JSON")
    add_options(parser)
    asked = parser.parse_args()
    shape = shape_of(asked)
    screen = Console(stderr=True)
    if asked.forcing:
        forcing = list(forcing_figures(shape, asked.option, lambda word: screen.print(f"forcing: {word}")))
        show("two at a time; by partitions", [FORCING_PARTITIONS], [forcing])
        return
    columns = []
    for size in asked.partitions:

        def say(word: str, size: int = size) -> None:
            screen.print(f"{size:,}: {word}")

        columns.append(list(figures(size, shape, asked.option, say)))
    fleet = list(fleet_figures(shape, asked.option, lambda word: screen.print(f"fleet: {word}"))) if asked.fleet else []
    if asked.json:
        named = [{figure.name: figure.value for figure in column} for column in columns]
        sizes = dict(zip(map(str, asked.partitions), named, strict=True))
        print(json.dumps({**sizes, "fleet": {figure.name: figure.value for figure in fleet}}, indent=2))
    else:
        show(f"one cluster, {shape}; by partitions", asked.partitions, columns)
        if fleet:
            show(f"clusters of {FLEET_PARTITIONS:,} partitions; by clusters", [FLEET], [fleet])


if __name__ == "__main__":
    main()
