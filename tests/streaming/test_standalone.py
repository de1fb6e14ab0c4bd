"""The job on a real Spark cluster: a master and a worker of pyspark's own, the code shipped as an archive."""

from __future__ import annotations

import contextlib
import json
import os
import re
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pyspark
import pytest

from deploy import dist
from tests.streaming.cluster_records import Streams, life_of
from tests.waiting import eventually
from transport.journal import JournalWriter, end_offset

_ROOT = Path(__file__).parents[2]
_SPARK = Path(pyspark.__file__).parent
_DEADLINE_SECONDS = 240

pytestmark = [pytest.mark.timeout(900), pytest.mark.xdist_group("spark-submit")]


def _environment(tmp_path: Path) -> dict[str, str]:
    """Nothing that leads to this checkout: the code must come with the job."""
    python = tmp_path / "python"
    if not python.exists():
        # Without the .pth files that an installation for development leaves beside the packages.
        packages = f"{_SPARK.parent}${{PYTHONPATH:+:$PYTHONPATH}}"
        python.write_text(f'#!/bin/sh\nPYTHONPATH="{packages}" exec {sys.executable} -S "$@"\n')
        python.chmod(0o755)
    kept = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    return {
        **kept,
        "JAVA_TOOL_OPTIONS": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC",  # short lives: compile quickly, not well
        "SPARK_HOME": str(_SPARK),
        "SPARK_NO_DAEMONIZE": "1",
        "SPARK_LOCAL_IP": "127.0.0.1",
        "SPARK_WORKER_DIR": str(tmp_path / "work"),
        "PYSPARK_PYTHON": str(python),
        "PYSPARK_DRIVER_PYTHON": str(python),
    }


@contextlib.contextmanager
def _daemon(tmp_path: Path, name: str, *arguments: str) -> Iterator[Path]:
    log = tmp_path / f"{name}.log"
    command = [str(_SPARK / "bin" / "spark-class"), f"org.apache.spark.deploy.{name.lower()}.{name}", *arguments]
    with log.open("wb") as written:
        process = subprocess.Popen(
            command,
            cwd=tmp_path,
            env=_environment(tmp_path),
            stdout=written,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
    try:
        yield log
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()


def _said(log: Path, pattern: str) -> str:
    return eventually(lambda: re.findall(pattern, log.read_text(errors="replace")))[0]


@pytest.fixture
def master(java: Path, tmp_path: Path) -> Iterator[str]:
    """The address of a master that has a worker with two cores."""
    ports = ("--host", "127.0.0.1", "--port", "0", "--webui-port", "0")
    with _daemon(tmp_path, "Master", *ports) as master_log:
        address = _said(master_log, r"spark://127\.0\.0\.1:[1-9][0-9]*")
        with _daemon(tmp_path, "Worker", *ports, "--cores", "2", "--memory", "1g", address):
            _said(master_log, "Registering worker")
            yield address


def test_python_on_the_cluster_has_nothing_of_the_checkout(tmp_path):
    environment = _environment(tmp_path)
    command = [environment["PYSPARK_PYTHON"], "-c", "import msgspec, streaming"]
    ended = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, check=False)
    assert b"No module named 'streaming'" in ended.stderr


@pytest.fixture
def submit(tmp_path: Path, streams: Streams) -> Callable[..., subprocess.Popen[bytes]]:
    """Starts spark-submit with what `make dist` makes, in a group of its own: `submit(master, *job_options)`."""
    code, stream, report, _jars = dist.make(tmp_path / "dist")
    checkpoint = ("--checkpoint", str(streams.checkpoint))
    programs = {
        "stream": (stream, *checkpoint, "--from", f"journal:{streams.input}", "--to", f"journal:{streams.outputs}"),
        "report": (report, "--format", "json"),
    }

    def submit(master: str, *options: str, program: str = "stream") -> subprocess.Popen[bytes]:
        command = [
            *(str(_SPARK / "bin" / "spark-submit"), "--master", master, "--py-files", str(code)),
            *("--conf", "spark.driver.host=127.0.0.1", "--conf", "spark.executor.memory=512m"),
            *map(str, programs[program]),
            *options,
        ]
        with (tmp_path / "submit.log").open("wb") as log:
            return subprocess.Popen(
                command, cwd=tmp_path, env=_environment(tmp_path), stdout=log, stderr=log, start_new_session=True
            )

    return submit


def test_a_cluster_that_has_nothing_but_the_archive_runs_job_and_report(master, streams, submit, tmp_path):
    """Ended by SIGTERM between two batches, gone on with on other executors, and reported on."""
    life = life_of("east", topics=20, losses=8)
    streams.append(life.lines)
    process = submit(master, "--max-batch-bytes=4096")
    try:
        eventually(lambda: end_offset(streams.outputs / "metadata") > 0 or process.poll() is not None)
        process.terminate()  # as an operator's `kill` does: it reaches Java alone
        assert process.wait(_DEADLINE_SECONDS) == 128 + signal.SIGTERM  # Java's own answer to it
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
    said = (tmp_path / "submit.log").read_text(errors="replace")
    assert "the job finishes the running batch first" in said
    assert "stopped between two batches" in said
    assert "not finished" not in said
    written = len(streams.read("metadata"))
    assert 0 < written < len(life.rows()["metadata"]), "it was not stopped in the middle"
    spark_directory = streams.checkpoint / "spark"
    begun, committed = (_batches(spark_directory / name) for name in ("offsets", "commits"))
    with JournalWriter(streams.outputs / "metadata", batches=True) as writer:
        assert writer.last_batch_id in committed
    assert begun - committed <= {max(committed) + 1}

    ended = submit(master, "--available-now").wait(_DEADLINE_SECONDS)
    assert ended == 0, (tmp_path / "submit.log").read_text(errors="replace")[-4000:]
    assert streams.read_all() == life.rows()

    report = tmp_path / "report.json"
    reporting = submit(master, "--from", f"journal:{streams.outputs}", "--out", str(report), program="report")
    assert reporting.wait(_DEADLINE_SECONDS) == 0, (tmp_path / "submit.log").read_text(errors="replace")[-4000:]
    (east,) = json.loads(report.read_text())["clusters"]
    assert {topic["topic"] for topic in east["topics"]} == {f"topic-{number}" for number in range(20)}
    assert 0 < east["offline_partition_minutes"] < east["partition_minutes"]


def _batches(directory: Path) -> set[int]:
    return {int(path.name) for path in directory.iterdir() if path.name.isdigit()}
