"""Jumps of the wall clock under `watch` and `stream`, an hour ahead and two back. Each opens exactly one alert."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from kazoo.client import KazooClient

from cli.embedded.process import ChildProcess
from controller.contract.alert_row import AlertRow
from controller.contract.job_row import JobRow
from controller.contract.metadata_rows import PartitionRow
from controller.contract.outputs import OUTPUTS, OutputRow, decode_row
from controller.contract.records import Record, RecordKind, decode_record
from tests.clients import zookeeper_client
from tests.integration.conftest import lines_of
from tests.integration.test_pipeline import expected_rows
from tests.programs import program
from tests.waiting import eventually

pytestmark = [pytest.mark.nightly, pytest.mark.xdist_group("pipelines")]

_HOUR_SECONDS = 3600
_STEP_SECONDS = 30  # more than a test takes between two records
_COMPARED_BATCHES = 4  # after so many batches the job has surely compared its clock with the forwarder's
# The loader puts the directory of the machine's libraries in place of $LIB.
_LIBRARY = "/usr/$LIB/faketime/libfaketimeMT.so.1"


class Clock:
    """The wall clock of the processes with its environment. Steady clocks go on unchanged."""

    def __init__(self, file: Path) -> None:
        program("faketime")
        self._file = file
        self.set(0)
        own = {name: value for name, value in os.environ.items() if not name.startswith("KONTRAST_")}
        self.environment = {
            **own,
            "LD_PRELOAD": _LIBRARY,
            "FAKETIME_TIMESTAMP_FILE": str(file),
            "FAKETIME_NO_CACHE": "1",
            "FAKETIME_DONT_FAKE_MONOTONIC": "1",
            "FAKETIME_FORCE_MONOTONIC_FIX": "0",  # because Java's waits end too early with it
            "NO_FAKE_STAT": "1",
            "PYTHONPATH": str(Path(__file__).with_name("steady_sleep")),
        }

    def set(self, ahead_seconds: int) -> None:
        """Set the clock atomically, because a reader in between would find an empty file."""
        new = self._file.with_suffix(".new")
        new.write_text(f"{ahead_seconds:+d}\n")
        new.replace(self._file)


@pytest.fixture
def kafka(shared_chroot: str) -> Iterator[KazooClient]:
    """Yield a client that writes like Kafka, for a cluster with two brokers."""
    with zookeeper_client(shared_chroot, 30) as client:
        write(client, "/cluster/id", {"version": "1", "id": "c"})
        write(client, "/controller_epoch", 1)
        write(client, "/controller", {"version": 1, "brokerid": 1, "timestamp": "1"}, ephemeral=True)
        for broker in (1, 2):
            endpoints = [f"PLAINTEXT://broker-{broker}:9092"]
            value = {"version": 4, "host": f"broker-{broker}", "port": 9092, "jmx_port": -1, "endpoints": endpoints}
            write(client, f"/brokers/ids/{broker}", value | {"timestamp": "1"}, ephemeral=True)
        write(client, "/brokers/topics/t", {"version": 2, "partitions": {"0": [1, 2]}})
        write(client, "/brokers/topics/t/partitions/0/state", state([1, 2]))
        yield client


def write(client: KazooClient, path: str, value: object, *, ephemeral: bool = False) -> None:
    client.create(path, json.dumps(value).encode(), makepath=True, ephemeral=ephemeral)


def state(isr: list[int]) -> dict[str, object]:
    return {"controller_epoch": 1, "leader": 1, "version": 1, "leader_epoch": 0, "isr": isr}


class Pipeline:
    """`kontrast watch` and `kontrast stream` in a directory, by this clock."""

    def __init__(self, directory: Path, zookeeper: str, clock: Clock) -> None:
        self.changes, self.derived = directory / "changes", directory / "derived"
        commands = {
            "watch": ("--cluster", "c", "--zookeeper", zookeeper, "--to", f"journal:{self.changes}"),
            "stream": (
                *("--from", f"journal:{self.changes}", "--to", f"journal:{self.derived}", "--master", "local[2]"),
                *("--checkpoint", str(directory / "checkpoint")),
            ),
        }
        self.parts = [
            ChildProcess(
                name,
                (sys.executable, "-m", "cli", name, *options),
                directory / f"{name}.log",
                environment=clock.environment,
            )
            for name, options in commands.items()
        ]

    def rows(self, output: str) -> list[OutputRow]:
        return [decode_row(line) for line in lines_of(self.derived / output)] if self.derived.exists() else []

    def records(self) -> list[Record]:
        return [decode_record(line) for line in lines_of(self.changes)]

    def alerts(self) -> list[tuple[str, str]]:
        return [(row.alert, row.state) for row in self.rows("alerts") if isinstance(row, AlertRow)]

    def lags_ms(self) -> list[int]:
        jobs = [row for row in self.rows("job") if isinstance(row, JobRow)]
        return [job.clusters["c"].lag_ms for job in jobs if "c" in job.clusters]

    def isr(self) -> tuple[int, ...]:
        rows = [row for row in self.rows("metadata") if isinstance(row, PartitionRow)]
        return rows[-1].isr if rows else ()


@pytest.fixture
def clock(tmp_path: Path) -> Clock:
    return Clock(tmp_path / "clock")


@pytest.fixture
def pipeline(java: Path, kafka: KazooClient, shared_chroot: str, clock: Clock, tmp_path: Path) -> Iterator[Pipeline]:
    pipeline = Pipeline(tmp_path, shared_chroot, clock)
    try:
        for part in pipeline.parts:
            part.launch()
        yield pipeline
    finally:
        for part in pipeline.parts:
            part.kill()


def test_an_hour_ahead_and_two_back_are_told_and_change_nothing(
    pipeline: Pipeline, kafka: KazooClient, clock: Clock
) -> None:
    eventually(lambda: pipeline.isr() == (1, 2))
    eventually(lambda: len(pipeline.lags_ms()) >= _COMPARED_BATCHES)
    for jump, ahead_seconds in enumerate((_HOUR_SECONDS, -_HOUR_SECONDS), 1):
        clock.set(ahead_seconds)
        eventually(lambda: pipeline.alerts().count(("ClockStepped", "open")) == jump)  # noqa: B023
        isr = [[2, 1], [1]][jump - 1]
        kafka.set("/brokers/topics/t/partitions/0/state", json.dumps(state(isr)).encode())
        eventually(lambda: pipeline.isr() == tuple(isr))  # noqa: B023
    watch, stream = pipeline.parts
    watch.stop()
    records = pipeline.records()
    eventually(
        lambda: {output: pipeline.rows(output) for output in OUTPUTS} == expected_rows(lines_of(pipeline.changes))
    )
    assert {alert for alert, _ in pipeline.alerts()} == {"ClockStepped"}, "a jump makes nothing overdue"
    assert [record.seq for record in records] == list(range(records[0].seq, records[0].seq + len(records)))
    assert sum(record.kind is RecordKind.SESSION for record in records) == 1, "the session outlives a jump"
    wall_ms, steady_ms = ([getattr(record, name) for record in records] for name in ("observed_ms", "steady_ms"))
    assert steady_ms == sorted(steady_ms)
    steps = [(after - before) / 1000 for before, after in zip(wall_ms, wall_ms[1:], strict=False)]
    jumps = [round(step / _HOUR_SECONDS) for step in steps if abs(step) > _STEP_SECONDS]
    assert jumps == [1, -2]
    late = [lag_ms for lag_ms in pipeline.lags_ms()[_COMPARED_BATCHES:] if lag_ms > 1000 * _STEP_SECONDS]
    assert not late, "a jump makes nothing late"
    stream.stop()
    assert stream.exit_status == 0, stream.log.read_text()
    assert not [part.name for part in pipeline.parts if "Traceback" in part.log.read_text()]
