"""A running job of a benchmark, with its source and outputs, seen from the outside."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import cached_property
from itertools import count
from pathlib import Path
from types import MappingProxyType

import msgspec

from controller.contract.outputs import OUTPUTS
from lab.bench.figures import Figure
from tests.processes import descendants, program_of, proportional_bytes
from tests.waiting import eventually
from transport.journal import JournalWriter
from transport.journal_reading import end_offset, read_journal

ROOT = Path(__file__).parents[2]
READ_BYTES = 8 * 1024**2
DEADLINE_SECONDS = 600
WARM_UP = 60
SINGLE_CHANGES = 150
CHANGES_A_SECOND = 1_000
CHANGES_A_TICK = 10
KONTRAST = (sys.executable, "-m", "cli", "stream")


class Written(msgspec.Struct):
    """The fields of a row that name the place of its record, or of a record its own place."""

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

    def __init__(self, directory: Path, options: Sequence[str]) -> None:
        directory.mkdir(exist_ok=True)
        self.directory = directory
        self.outputs = {output: Output(directory / "outputs" / output) for output in (*OUTPUTS, "job")}
        self._appending = threading.Lock()
        self._command = [*KONTRAST, "--checkpoint", str(directory / "checkpoint")]
        self._command += ["--from", f"journal:{directory / 'records'}", "--to", f"journal:{directory / 'outputs'}"]
        self._command += options
        self._log = (directory / "log").open("wb")

    @cached_property
    def source(self) -> JournalWriter:
        """Return the writer of the job's source, unless a watcher writes it."""
        return JournalWriter(self.directory / "records")

    @contextmanager
    def running(self) -> Iterator[Job]:
        """Start the job, and stop it cleanly in the end."""
        self._process = subprocess.Popen(
            self._command, cwd=ROOT, stdout=self._log, stderr=self._log, start_new_session=True
        )
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

    def seconds_of(self, line: bytes, output: str) -> float:
        """Return the time from appending the record until its row can be read."""
        seq = json.loads(line)["seq"]
        began = time.perf_counter()
        self.append([line])
        self.until_row(output, lambda row: row.seq >= seq)
        return time.perf_counter() - began

    def seconds_of_restart(self, line: bytes) -> float:
        """Return the time from a start on the same checkpoint until the row of a record before it can be read."""
        self.append([line])
        seq = json.loads(line)["seq"]
        began = time.perf_counter()
        with self.running():
            self.until_row("metadata", lambda row: row.seq >= seq)
            return time.perf_counter() - began

    @property
    def pid(self) -> int:
        """Return the process id of the running job."""
        return self._process.pid

    def held(self, when: str) -> Iterator[Figure]:
        """Yield its memory and state. Memory is the processes' proportional share."""
        sizes = {"Java": 0, "Python": 0}
        for pid in (self.pid, *descendants(self.pid)):
            sizes["Java" if program_of(pid) == "java" else "Python"] += proportional_bytes(pid)
        for program, size in sizes.items():
            yield Figure(f"{program}, {when}", "MB", size / 1e6)
        yield Figure(f"checkpoint, {when}", "MB", size_of(self.directory / "checkpoint") / 1e6)

    def written(self, number: int, unit: str, before: Mapping[str, int] = MappingProxyType({})) -> Iterator[Figure]:
        """Yield the bytes of stream and outputs for each of so many partitions or changes since `before`."""
        for part, size in self.sizes().items():
            yield Figure(f"{part}, {unit}", "bytes", (size - before.get(part, 0)) / number)

    def sizes(self) -> dict[str, int]:
        """Return the bytes of stream and outputs."""
        return {"stream": size_of(self.directory / "records"), "outputs": size_of(self.directory / "outputs")}


def ticks(seconds: float) -> Iterator[int]:
    """Yield the numbers of ticks at a steady rate. After a delay the missed ticks follow at once."""
    began = time.perf_counter()
    for tick in count():
        time.sleep(max(0.0, began + tick * seconds - time.perf_counter()))
        yield tick


def size_of(directory: Path) -> int:
    """Return the bytes of all files below."""
    return sum(path.stat().st_size for path in directory.rglob("*") if path.is_file())
