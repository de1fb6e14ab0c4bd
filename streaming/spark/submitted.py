"""Open the session under spark-submit, whose Java process is not the job's own and may be stopped before the job is.

SIGTERM to spark-submit reaches Java alone, which by itself would stop Spark in the middle of a batch.
"""

from __future__ import annotations

import logging
import os
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from py4j.protocol import Py4JError, Py4JJavaError
from pyspark import SparkConf, SparkContext
from pyspark.java_gateway import ensure_callback_server_started, launch_gateway
from pyspark.sql import SparkSession

from streaming.errors import StreamError
from streaming.spark.java_process import session_of

logger = logging.getLogger("kontrast.streaming.spark")

_BEFORE_SPARKS_OWN = 100  # Spark stops its context at 40
_LONGEST_BATCH_SECONDS = 900


def submitted() -> bool:
    """Return whether spark-submit started this process, with its Java process and cluster."""
    return "PYSPARK_GATEWAY_PORT" in os.environ


def executors_cores(session: SparkSession) -> int:
    """Return the cores of all executors, as asked for or as they are by now."""
    conf = session.sparkContext.getConf()
    asked = int(conf.get("spark.executor.instances") or 0) * int(conf.get("spark.executor.cores") or 1)
    return max(asked, int(conf.get("spark.cores.max") or 0), session.sparkContext.defaultParallelism)


@contextmanager
def submitted_session(settings: Mapping[str, str], stop: threading.Event) -> Iterator[SparkSession]:
    """Yield a session in the process of spark-submit. Raise StreamError if the process is gone.

    If that process is asked to end, it sets `stop` and waits for the session's end.
    """
    try:
        gateway = launch_gateway()
        SparkContext._ensure_initialized(gateway=gateway)
        conf = SparkConf(loadDefaults=True, _jvm=gateway.jvm)
        # The path of a container's own directory on YARN is longer than a socket's may be.
        conf.setIfMissing("spark.python.unix.domain.socket.dir", "/tmp")  # noqa: S108 (Spark's own default elsewhere)
        with _ends_after_us(gateway, stop), session_of(gateway, conf, settings) as session:
            # Spark's Python process that prepares transformWithState does not get the files of --py-files.
            session.sparkContext.setLogLevel("WARN")  # else 30 idle clusters log 22 kB a second
            session.sparkContext.environment["PYTHONPATH"] = str(Path(__file__).absolute().parents[2])
            yield session
    except (Py4JError, ConnectionError) as error:
        if isinstance(error, Py4JJavaError):
            raise
        raise StreamError("Spark's Java process is gone. The log of spark-submit shows the reason") from error


@contextmanager
def _ends_after_us(gateway: Any, stop: threading.Event) -> Iterator[None]:  # noqa: ANN401 (py4j's, without types)
    """Let Java, when it is to end while the body runs, ask the job to stop, and wait until the body has ended."""
    ensure_callback_server_started(gateway)
    end = _JavasEnd(stop)
    hooks = gateway.jvm.org.apache.hadoop.util.ShutdownHookManager.get()
    hook = gateway.jvm.java.lang.Thread(end)  # an object of Java's, by which the hook can be removed again
    hooks.addShutdownHook(
        hook, _BEFORE_SPARKS_OWN, _LONGEST_BATCH_SECONDS, gateway.jvm.java.util.concurrent.TimeUnit.SECONDS
    )
    try:
        yield
    finally:
        end.is_ours.set()
        with suppress(Py4JError, ConnectionError):  # Java is ending
            hooks.removeShutdownHook(hook)


class _JavasEnd:
    """A hook that Java runs before it ends."""

    def __init__(self, stop: threading.Event) -> None:
        self._stop = stop
        self.is_ours = threading.Event()

    def run(self) -> None:
        """Ask the job to stop, and return when it has stopped."""
        logger.info("spark-submit was stopped. The job finishes the running batch first")
        self._stop.set()
        self.is_ours.wait()

    class Java:
        """The interface, as py4j reads it."""

        implements = ["java.lang.Runnable"]  # noqa: RUF012 (as py4j reads it)
