"""The job on a real Spark cluster, with a master and a worker of pyspark's own, and the code as an archive."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import socket
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from cli.running import ExitCode
from tests.streaming.cluster_records import Streams, life_of
from tests.streaming.standalone_cluster import SparkCluster, Submitted, environment
from tests.waiting import eventually
from transport.journal import JournalWriter
from transport.journal_reading import end_offset

_DEADLINE_SECONDS = 240

pytestmark = [pytest.mark.xdist_group("spark-submit")]


@pytest.fixture
def master(java: Path, tmp_path: Path) -> Iterator[str]:
    """Yield the address of a master that has a worker with two cores."""
    with SparkCluster(tmp_path) as cluster:
        yield cluster.master


@pytest.fixture
def submit(tmp_path: Path, streams: Streams):
    return Submitted(tmp_path, streams).start


def test_python_on_the_cluster_has_nothing_of_the_checkout(tmp_path):
    without = environment(tmp_path)
    command = [without["PYSPARK_PYTHON"], "-c", "import msgspec, streaming"]
    ended = subprocess.run(command, cwd=tmp_path, env=without, capture_output=True, check=False)
    assert b"No module named 'streaming'" in ended.stderr


@pytest.mark.nightly
def test_a_cluster_that_has_nothing_but_the_archive_runs_the_job(master, streams, submit, tmp_path):
    """SIGTERM ends the job between two batches, and other executors go on."""
    life = life_of("east", topics=20, losses=8)
    streams.append(life.lines)
    process = submit(master, "--max-batch-bytes=4096")
    try:
        eventually(lambda: end_offset(streams.outputs / "metadata") > 0 or process.poll() is not None)
        process.terminate()  # the signal reaches only Java, as after an operator's `kill`
        assert process.wait(_DEADLINE_SECONDS) == 128 + signal.SIGTERM  # Java's own exit code after SIGTERM
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
    said = (tmp_path / "submit.log").read_text(errors="replace")
    assert "The job finishes the running batch first" in said
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


@pytest.mark.nightly
def test_clusters_share_the_cores_of_the_executors_and_not_of_the_driver(master, streams, submit, tmp_path):
    streams.append(life_of("east", topics=1).lines)
    file = tmp_path / "kontrast.toml"
    file.write_text("".join(f'[clusters.{name}]\nzookeeper = "zk:2181"\n' for name in ("east", "west", "north")))
    options = ("--config", str(file), "--master", "local[1]", "--available-now")
    ended = submit(master, *options, conf=("spark.cores.max=2",)).wait(_DEADLINE_SECONDS)
    assert ended == 0, (tmp_path / "submit.log").read_text(errors="replace")[-4000:]
    assert json.loads((streams.checkpoint / "kontrast.json").read_text())["shuffle partitions"] == 2


@pytest.mark.nightly
def test_a_submission_without_the_connector_of_kafka_is_told_how_to_give_it(master, submit, tmp_path):
    with socket.create_server(("127.0.0.1", 0)) as kafka:
        address = f"kafka://127.0.0.1:{kafka.getsockname()[1]}"
        ended = submit(master, "--from", f"{address}/changes", "--to", f"{address}/out").wait(_DEADLINE_SECONDS)
    said = (tmp_path / "submit.log").read_text(errors="replace")
    assert ended == ExitCode.UNAVAILABLE, said[-4000:]
    assert "Spark has no connector of Kafka. Give spark-submit --jars" in said
    assert "Traceback" not in said


def _batches(directory: Path) -> set[int]:
    return {int(path.name) for path in directory.iterdir() if path.name.isdigit()}
