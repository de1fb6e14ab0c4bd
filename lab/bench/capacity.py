"""What one machine needs for a cluster: memory and disk of `kontrast up` on a real ZooKeeper, by number of partitions.

`cli/capacity.py` has the formula that follows from these figures.
"""

from __future__ import annotations

import argparse
import json
import os
import tempfile
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from pathlib import Path

from kazoo.client import KazooClient
from rich.console import Console

from cli.embedded.process import ChildProcess, free_port, own_command
from cli.embedded.zookeeper import ZooKeeper
from controller.contract.gauges_row import GaugesRow
from controller.contract.outputs import decode_row
from lab.bench.ingest import build, connected, state, states
from lab.bench.job import size_of
from tests.processes import command_line_of, descendants, program_of, proportional_bytes
from tests.waiting import eventually
from transport.journal import read_journal

CHANGES_A_SECOND = 100
CHANGE_SECONDS = 60
IDLE_SECONDS = 30

until = partial(eventually, within_seconds=900, pause_seconds=0.2)


@contextmanager
def running(zookeeper: ZooKeeper, directory: Path) -> Iterator[ChildProcess]:
    """Run `kontrast up` over journals in the directory."""
    file = directory / "kontrast.toml"
    file.write_text(
        f'[clusters.bench]\nzookeeper = "{zookeeper.connect_string}"\n[watch]\nto = "journal:{directory}/changes"\n'
        f'[stream]\nfrom = "journal:{directory}/changes"\nto = "journal:{directory}/outputs"\n'
        f'checkpoint = "{directory}/checkpoint"\n'
        f'[serve]\nfrom = "journal:{directory}/outputs"\nlisten = "127.0.0.1:{free_port()}"\n'
    )
    command, environment = own_command("up", "--config", str(file))
    up = ChildProcess("kontrast up", command, directory / "log", environment=environment)
    up.launch()
    try:
        yield up
    finally:
        up.stop(timeout_seconds=120)


class Gauges:
    """The gauges of the outputs, as they come."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self._offset = 0
        self._partitions = 0

    def partitions(self) -> int:
        """Return the partitions in the newest row."""
        while (self._directory).is_dir() and (batch := read_journal(self._directory, self._offset, 1 << 24)).lines:
            self._offset = batch.next_offset
            for row in map(decode_row, batch.lines):
                if isinstance(row, GaugesRow) and row.ready:
                    self._partitions = row.partitions
        return self._partitions


def memory_mb(up: ChildProcess) -> dict[str, float]:
    """Return resident memory by part. Spark's Python and Java are the job's."""
    assert up.pid is not None
    sizes: dict[str, float] = {}
    for pid in descendants(up.pid):
        line = command_line_of(pid)
        name = next((name for name in ("watch", "serve") if f" {name} --config" in line), "stream, Python")
        name = "stream, Java" if program_of(pid) == "java" else name
        sizes[name] = sizes.get(name, 0) + proportional_bytes(pid) / 1e6
    return sizes


def change(client: KazooClient, paths: list[str], seconds: float) -> int:
    """Write states one after the other, at this rate. Return their number."""
    count, ends_at = 0, time.monotonic() + seconds
    while time.monotonic() < ends_at:
        client.set(paths[count % len(paths)], state(count % len(paths), 1 + count // len(paths)))
        count += 1
        time.sleep(1 / CHANGES_A_SECOND)
    return count


def figures(partitions: int, directory: Path) -> Mapping[str, float]:
    """Return all figures of one size."""
    with ZooKeeper(directory / "zookeeper", heap_mb=1024) as zookeeper:
        client = connected(zookeeper)
        build(client, partitions, Console(stderr=True))
        with running(zookeeper, directory) as up:
            gauges = Gauges(directory / "outputs" / "gauges")
            until(lambda: gauges.partitions() == partitions)
            parts = {part: directory / part for part in ("changes", "outputs", "checkpoint")}
            first = {part: size_of(path) for part, path in parts.items()}
            time.sleep(IDLE_SECONDS)
            before = {part: size_of(path) for part, path in parts.items()}
            changes = change(client, states(partitions), CHANGE_SECONDS)
            time.sleep(5)
            grown = {part: (size_of(path) - before[part]) / changes for part, path in parts.items()}
            memory = memory_mb(up)
        client.stop()
    return {
        **{f"{part}, MB": size for part, size in memory.items()},
        **{f"{part}, bytes a partition": size / partitions for part, size in first.items()},
        **{f"{part}, bytes an idle second": (before[part] - first[part]) / IDLE_SECONDS for part in parts},
        **{f"{part}, bytes a change": size for part, size in grown.items()},
        "changes a second": changes / CHANGE_SECONDS,
    }


def main() -> None:
    """Measure each size, and print a JSON object a line."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--partitions", type=int, nargs="+", default=[2_000, 20_000, 200_000], metavar="N")
    for partitions in parser.parse_args().partitions:
        with tempfile.TemporaryDirectory() as directory:
            measured = figures(partitions, Path(directory))
        print(json.dumps({"partitions": partitions, "cores": os.cpu_count(), **measured}), flush=True)


if __name__ == "__main__":
    main()
