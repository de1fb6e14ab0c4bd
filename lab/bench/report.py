"""What `kontrast report` costs, with one core of Spark and with two: `make bench-report`.

Each report is a process, as an operator starts it. The first row is Spark alone. The job applies changes again, with a
task a cluster. It reads outputs with a task for each part of a cluster's topics.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from rich.console import Console
from rich.table import Table

from controller.contract.metadata_rows import BeginningRow
from controller.contract.outputs import OUTPUTS, STANDING_OUTPUTS, encode_row
from controller.contract.records import RecordKind, decode_record
from controller.restore.stored_context import new_context
from controller.step import steps
from lab.bench.core import Lines
from transport.journal import JournalWriter

HEARTBEATS = 600
LINES_AT_ONCE = 1_000


@dataclass(frozen=True, slots=True)
class Measured:
    """A source, and the seconds that its report took with one core and with two."""

    source: str
    one_core_seconds: float
    two_cores_seconds: float


def life(partitions: int) -> list[bytes]:
    """Return a made-up cluster's changes, with a complete read, ISR changes, and heartbeats."""
    lines = Lines(partitions)
    status = {"session": "connected", "watch_mode": "persistent"}
    beats = [lines.record(RecordKind.HEARTBEAT, content=status) for _ in range(HEARTBEATS // 2)]
    changes = [*lines.snapshot(), *beats, *lines.isr_changes()]
    return [*changes, *(lines.record(RecordKind.HEARTBEAT, content=status) for _ in range(HEARTBEATS // 2))]


def named(lines: Iterable[bytes], cluster: str) -> list[bytes]:
    """Return the same lines for a cluster with another name."""
    return [line.replace(b'"cluster":"bench"', f'"cluster":"{cluster}"'.encode(), 1) for line in lines]


def write(directory: Path, lines: list[bytes]) -> None:
    """Write a journal of these lines."""
    with JournalWriter(directory) as writer:
        for at in range(0, len(lines), LINES_AT_ONCE):
            writer.append(lines[at : at + LINES_AT_ONCE])


def write_outputs(directory: Path, changes: list[bytes]) -> None:
    """Write the job's outputs for a cluster's changes."""
    records = [decode_record(line) for line in changes]
    effects = steps(new_context("bench"), records).effects
    beginning = BeginningRow(
        cluster="bench", generation=1, seq=0, ordinal=-1, zxid=records[0].zxid, time_ms=records[0].observed_ms
    )
    for output in OUTPUTS:
        first = [encode_row(beginning)] if output in STANDING_OUTPUTS else []
        write(directory / output, [*first, *(encode_row(row) for row in effects if row.output == output)])


def seconds(address: Path, cores: int) -> float:
    """Return the time of one report."""
    began = time.perf_counter()
    command = [sys.executable, "-m", "cli", "report", "--from", f"journal:{address}", "--format", "json"]
    done = subprocess.run([*command, "--master", f"local[{cores}]"], capture_output=True, text=True, check=False)
    assert done.returncode in (0, 2), done.stderr
    return time.perf_counter() - began


def measure(directory: Path, clusters: int, partitions: int, large: int, shown: Console) -> list[Measured]:
    """Measure Spark's start alone, many clusters' changes, and one large cluster's outputs."""
    shown.print("writing the sources …")
    write(directory / "nothing", [])
    one = life(partitions)
    write(directory / "changes", [line for at in range(clusters) for line in named(one, f"bench-{at:03}")])
    write_outputs(directory / "derived", life(large))
    sources = {
        "nothing": "Spark's start alone",
        "changes": f"changes of {clusters} clusters with {partitions:,} partitions each",
        "derived": f"outputs of one cluster with {large:,} partitions",
    }
    found = []
    for name, what in sources.items():
        shown.print(f"{what} …")
        found.append(Measured(what, seconds(directory / name, 1), seconds(directory / name, 2)))
    return found


def main() -> None:
    """Measure, and print a table or JSON."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--clusters", type=int, default=20, metavar="N")
    parser.add_argument("--partitions", type=int, default=4_000, metavar="N", help="of each of these clusters")
    parser.add_argument("--large", type=int, default=100_000, metavar="N", help="partitions of the large cluster")
    parser.add_argument("--json", action="store_true", help="print the figures as JSON")
    asked = parser.parse_args()
    shown = Console(stderr=True)
    with tempfile.TemporaryDirectory() as directory:
        measured = measure(Path(directory), asked.clusters, asked.partitions, asked.large, shown)
    if asked.json:
        print(json.dumps({row.source: [row.one_core_seconds, row.two_cores_seconds] for row in measured}, indent=2))
        return
    table = Table(title="kontrast report, seconds of a process", title_justify="left")
    for heading in ("source", "one core", "two cores", "ratio"):
        table.add_column(heading, justify="left" if heading == "source" else "right")
    for row in measured:
        ratio = row.one_core_seconds / row.two_cores_seconds
        table.add_row(row.source, f"{row.one_core_seconds:.1f}", f"{row.two_cores_seconds:.1f}", f"{ratio:.2f}")
    Console().print(table)


if __name__ == "__main__":
    main()
