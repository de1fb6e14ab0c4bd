"""A job at work beside a test, and waiting for its results."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager

from pyspark.sql import SparkSession

from streaming.config import StreamConfig
from streaming.job import prepare

DEADLINE_SECONDS = 240


@contextmanager
def running(spark: SparkSession, config: StreamConfig) -> Iterator[None]:
    """Run a job in a thread until the `with` ends, and raise its errors here."""
    stop = threading.Event()
    failures: list[Exception] = []

    def run() -> None:
        try:
            with prepare(config, stop) as job:
                job.stream(spark, stop)
        except Exception as error:
            failures.append(error)

    thread = threading.Thread(target=run)
    thread.start()
    try:
        yield
    finally:
        stop.set()
        thread.join(DEADLINE_SECONDS)
    assert not thread.is_alive(), "it did not end in time"
    assert not failures, failures[0]
