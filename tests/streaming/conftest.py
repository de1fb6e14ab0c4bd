"""The streaming tests share one Spark session: starting one takes longer than most of what is tested in it."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from streaming.config import StreamConfig
from streaming.java.artifacts import SPARK_KAFKA_CONNECTOR, jars
from streaming.job import fast_files, prepare
from streaming.spark.session import spark_session
from tests.streaming.cluster_records import Streams
from transport.address import JournalAddress


@pytest.fixture(scope="session")
def spark(java: Path) -> Iterator[SparkSession]:
    """A session with the job's own settings and the Kafka connector."""
    anywhere = JournalAddress(Path("/unused"))
    config = StreamConfig(
        source=anywhere,
        sink=JournalAddress(Path("/unused-too")),
        checkpoint="/unused",
        master="local[2]",
        shuffle_partitions=1,
    )
    connector = jars(SPARK_KAFKA_CONNECTOR)
    with spark_session(config, threading.Event(), jars=connector, class_path=fast_files(config)) as session:
        yield session


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
