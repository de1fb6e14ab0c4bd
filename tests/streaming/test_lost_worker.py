"""One of three workers of a Spark cluster is lost in the middle of a job, which goes on without losing a row."""

from __future__ import annotations

import contextlib
import os
import random
import signal
import time
from pathlib import Path

import pytest

from tests.processes import holders_of
from tests.streaming.cluster_records import Streams, life_of
from tests.streaming.standalone_cluster import SparkCluster, Submitted
from tests.waiting import eventually
from transport.journal_reading import end_offset

pytestmark = [pytest.mark.nightly, pytest.mark.xdist_group("spark-submit")]

_SEED = int(os.environ.get("KONTRAST_FAULTS_SEED", "20261124"))
_DEADLINE_SECONDS = 240
# A state store does not move to another executor within these batches. So the lost worker has the store.
_ONE_EXECUTOR_A_WORKER = ("spark.executor.cores=1", "spark.cores.max=3")


def test_the_loss_of_a_worker_costs_a_pause_and_no_row(java: Path, tmp_path: Path, streams: Streams) -> None:
    life = life_of("east", topics=20, losses=8)
    streams.append(life.lines)
    chance = random.Random(_SEED)
    with SparkCluster(tmp_path, workers=3, cores=1) as cluster:
        submitted = Submitted(tmp_path, streams)
        job = submitted.start(cluster.master, "--max-batch-bytes=4096", conf=_ONE_EXECUTOR_A_WORKER)
        try:
            eventually(lambda: end_offset(streams.outputs / "metadata") > 0 or job.poll() is not None)
            working = eventually(cluster.workers_with_tasks)
            victim = chance.choice(working)
            time.sleep(chance.uniform(0, 0.5))
            victim.kill()
            before = end_offset(streams.outputs / "metadata")
            assert len(streams.read("metadata")) < len(life.rows()["metadata"]), "all of it was in the middle"
            eventually(lambda: end_offset(streams.outputs / "metadata") > before or job.poll() is not None)
            assert job.poll() is None, submitted.log.read_text(errors="replace")[-4000:]
            eventually(lambda: len(streams.read("metadata")) == len(life.rows()["metadata"]) or job.poll() is not None)
            job.terminate()
            assert job.wait(_DEADLINE_SECONDS) == 128 + signal.SIGTERM
        finally:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(job.pid, signal.SIGKILL)
        assert streams.read_all() == life.rows()
    eventually(lambda: holders_of(streams.checkpoint) == [])
