"""What tests of the job have in common: a job that is worked off, and journals at both of its ends."""

from __future__ import annotations

import threading
from collections.abc import Callable
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from streaming.config import StreamConfig
from streaming.job import prepare
from tests.streaming.cluster_records import Streams


@pytest.fixture
def work_off(spark: SparkSession) -> Callable[[StreamConfig], None]:
    """Runs a job, as a process of its own would, until it has read what its source holds now."""

    def work_off(config: StreamConfig, *, rebuild: bool = False) -> None:
        stop = threading.Event()
        with prepare(config, stop, lock_wait_seconds=0, rebuild=rebuild) as job:
            job.stream(spark, stop, available_now=True)

    return work_off


@pytest.fixture
def streams(tmp_path: Path) -> Streams:
    return Streams(tmp_path)
