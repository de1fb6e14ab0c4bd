"""Resources of each process of Kontrast, and its files on disk, at one moment.

Readings from /proc, from directories and from a Java process belong here. `verdict` judges their growth.
"""

from __future__ import annotations

import json
import math
import re
import subprocess
import time
from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path

import httpx

from dashboards.serving.metrics import LiveMemory
from lab.soak.kontrast import PARTS, STREAM, WATCHERS, Kontrast
from tests.processes import command_line_of, descendants

JAVA, WORKERS, STORES = "stream: Java", "stream: Python workers", "on disk"
_PROC = Path("/proc")
_ROLLUP = re.compile(r"^(Rss|Pss|Anonymous):\s+(\d+) kB", re.MULTILINE)
_THREADS = re.compile(r"^Threads:\s+(\d+)", re.MULTILINE)
_HEAP = re.compile(r"(?:new generation|tenured generation)\s+total (\d+)K")
_LIVE_OBJECTS = re.compile(r"^Total +\d+ +(\d+)", re.MULTILINE)
_MOST_HEAP = re.compile(r"-Xmx(\d+)([kmgKMG])")
_SHIFTS: Mapping[str, int] = {"k": 10, "m": 20, "g": 30}
HEAP_TAKEN = "heap_taken_permille"
SMALL_OBJECTS, HEAP_BYTES = LiveMemory._fields
_JCMD_SECONDS = 60
_LEADS = re.compile(r"^kontrast_watch_leads\{.*\} 1", re.MULTILINE)
# Spark removes old files of its checkpoint once a minute. Between two cleanings their number follows the number of
# batches, which follows the load: the same job had 190 or 350 just after a cleaning. A leak adds files that stay.
_OLD_SECONDS = 300.0


@dataclass(frozen=True, slots=True)
class Sample:
    """The readings of one subject. `life` changes when the process is started again."""

    at_seconds: float  # since the soak's begin
    subject: str
    life: str
    values: Mapping[str, int]


class Meter:
    """Reads all subjects at once, and keeps the samples in a file as well."""

    def __init__(self, kontrast: Kontrast, file: Path) -> None:
        self._kontrast = kontrast
        self._file = file
        self._began = time.monotonic()
        self.samples: list[Sample] = []

    def take(self) -> list[Sample]:
        """Take a sample of each subject now."""
        at = time.monotonic() - self._began
        found = [*self._processes(at), *self._job(at), self._stores(at)]
        self.samples += found
        with self._file.open("a") as file:
            file.writelines(json.dumps(asdict(sample)) + "\n" for sample in found)
        return found

    def _processes(self, at: float) -> Iterable[Sample]:
        for name in PARTS:
            pid = self._kontrast.parts[name].pid
            if pid is not None and (values := self._python_process(pid)) is not None:
                temporary = old_files(self._kontrast.temporary_directory(name), "temporary")
                yield Sample(at, self._subject(name), _life(pid), {**values, **temporary})

    def _subject(self, name: str) -> str:
        if name not in WATCHERS:
            return name
        # A watcher has 24 open files and 277,000 objects while it waits for its turn, and 32 and 320,000 afterwards.
        with suppress(httpx.HTTPError):
            page = httpx.get(f"http://{self._kontrast.pages[name]}/metrics", timeout=5).text
            return f"{name} (forwards {len(_LEADS.findall(page))})"
        return f"{name} (starts)"

    def _job(self, at: float) -> Iterable[Sample]:
        pid = self._kontrast.parts[STREAM].pid
        started = descendants(pid) if pid is not None else []
        for java in (each for each in started if "java" in command_line_of(each).partition(" ")[0]):
            values = _process(java)
            if values is not None:
                yield Sample(at, JAVA, _life(java), {**values, **_committed_heap(java), **_live_heap(java)})
            workers = [each for each in started if "pyspark" in command_line_of(each) and each != java]
            readings = [found for each in workers if (found := self._python_process(each)) is not None]
            if readings:
                common = set.intersection(*map(set, readings))
                total = {key: sum(reading[key] for reading in readings) for key in readings[0] if key in common}
                yield Sample(at, WORKERS, _life(java), {**total, "processes": len(readings)})

    def _python_process(self, pid: int) -> Mapping[str, int] | None:
        """Return the readings of a process and its live memory, or None after its end."""
        values = _process(pid)
        if values is not None:
            with suppress(OSError):  # it has begun just now
                told = json.loads((self._kontrast.live_memory / str(pid)).read_text())
                values |= {reading: value for reading, value in told.items() if value is not None}
        return values

    def _stores(self, at: float) -> Sample:
        values = old_files(self._kontrast.checkpoint, "checkpoint")
        if self._kontrast.outputs.is_dir():
            for output in sorted(self._kontrast.outputs.iterdir()):
                _, values[f"journal_{output.name}_bytes"] = _files(output)
        return Sample(at, STORES, "", values)


def _life(pid: int) -> str:
    with suppress(OSError):
        began = (_PROC / str(pid) / "stat").read_text().rpartition(")")[2].split()[19]
        return f"{pid}@{began}"
    return str(pid)


def _process(pid: int) -> dict[str, int] | None:
    """Return memory, open files and threads, or None after its end."""
    directory = _PROC / str(pid)
    try:
        memory = dict(_ROLLUP.findall((directory / "smaps_rollup").read_text()))
        threads = _THREADS.search((directory / "status").read_text())
        open_files = len(list((directory / "fd").iterdir()))
    except OSError:
        return None
    if threads is None or not memory:
        return None
    sizes = {f"{key.lower()}_bytes": int(kilobytes) * 1024 for key, kilobytes in memory.items()}
    return {**sizes, "open_files": open_files, "threads": int(threads[1])}


def _committed_heap(java: int) -> Mapping[str, int]:
    """Return how much of its heap Java has taken from the system, in a thousandth of the most that it may take."""
    most = _MOST_HEAP.search(command_line_of(java))
    sizes = _HEAP.findall(_jcmd(java, "GC.heap_info"))
    if most is None or not sizes:
        return {}
    most_bytes = int(most[1]) << _SHIFTS[most[2].lower()]
    return {HEAP_TAKEN: sum(map(int, sizes)) * 1024 * 1000 // most_bytes}


def _live_heap(java: int) -> Mapping[str, int]:
    """Return the size of all live objects of Java. Java collects its heap for it, and stands still meanwhile.

    It has the objects of the batch that goes on, and swung between 77 and 151 MB. Such readings, drawn at random, grew
    beyond their bound in 17 of 100 hours of 15 readings, and in 2 of 100 hours of 69.
    """
    total = _LIVE_OBJECTS.search(_jcmd(java, "GC.class_histogram"))
    return {} if total is None else {"live_heap_bytes": int(total[1])}


def _jcmd(java: int, *command: str) -> str:
    asked = ["jcmd", str(java), *command]
    return subprocess.run(asked, capture_output=True, text=True, check=False, timeout=_JCMD_SECONDS).stdout


def old_files(directory: Path, kind: str) -> dict[str, int]:
    """Return the number of files below a directory that no cleaning took for five minutes, and their bytes."""
    count, size = _files(directory, written_before=time.time() - _OLD_SECONDS)
    return {f"{kind}_files": count, f"{kind}_bytes": size}


def _files(directory: Path, written_before: float = math.inf) -> tuple[int, int]:
    """Return the number of files below a directory, and their bytes. Files may come and go meanwhile."""
    count = size = 0
    waiting = [directory]
    while waiting:
        with suppress(OSError):
            for entry in list(waiting.pop().iterdir()):
                if entry.is_dir() and not entry.is_symlink():
                    waiting.append(entry)
                    continue
                with suppress(OSError):
                    status = entry.lstat()
                    count += status.st_mtime < written_before
                    size += status.st_size if status.st_mtime < written_before else 0
    return count, size
