"""Fixtures of the job's tests, with a job that works off its source, and journals at both ends."""

from __future__ import annotations

import threading
from collections.abc import Callable
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from streaming.config import StreamConfig
from streaming.job import prepare
from tests.streaming.cluster_records import Streams


@pytest.fixture(scope="session")
def work_off(spark: SparkSession) -> Callable[[StreamConfig], None]:
    """Return a function that runs a job, as its own process would, to the current end of its source."""

    def work_off(config: StreamConfig, *, rebuild: bool = False) -> None:
        stop = threading.Event()
        with prepare(config, stop, lock_wait_seconds=0, rebuild=rebuild) as job:
            job.stream(spark, stop, available_now=True)

    return work_off


@pytest.fixture
def streams(tmp_path: Path) -> Streams:
    return Streams(tmp_path)
