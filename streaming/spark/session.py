"""Open the Spark session of the job with the settings that make it fast on one machine, each with its reason."""

from __future__ import annotations

import contextlib
import tempfile
import threading
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from py4j.protocol import Py4JJavaError
from pyspark import SparkConf
from pyspark.sql import SparkSession

from streaming.config import StreamConfig
from streaming.java.artifacts import LOOPBACK
from streaming.java.installation import library_parent
from streaming.scratch import scratch_directory
from streaming.spark.failure import stream_error
from streaming.spark.java_process import JavaProcess, session_of
from streaming.spark.submitted import submitted, submitted_session

_FAST_FILES = "com.globalmentor.apache.hadoop.fs.BareLocalFileSystem"
_ROCKSDB = "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider"
# With the run's directory this makes 50 characters. The whole path of a Unix domain socket may have about 100.
_LONGEST_PARENT = 28


def job_settings(config: StreamConfig) -> dict[str, str]:
    """Return Spark's settings that the job needs wherever it runs."""
    return {
        "spark.app.name": "kontrast",
        "spark.sql.session.timeZone": "UTC",
        "spark.sql.shuffle.partitions": str(config.shuffle_partitions or 1),
        "spark.sql.adaptive.enabled": "false",
        "spark.sql.streaming.noDataMicroBatches.enabled": "false",
        "spark.sql.streaming.minBatchesToRetain": "10",
        # Without this setting about three shuffle files per batch stay until a garbage collection finds them.
        "spark.sql.classic.shuffleDependency.fileCleanup.enabled": "true",
        "spark.sql.streaming.stateStore.providerClass": _ROCKSDB,
        "spark.sql.streaming.stateStore.rocksdb.changelogCheckpointing.enabled": "true",
        # With the default encoding the state's schema cannot get a new field.
        "spark.sql.streaming.stateStore.encodingFormat": "avro",
        # Over TCP each exchange with a Python worker waits some 40 ms without need.
        "spark.python.unix.domain.socket.enabled": "true",
    }


def own_settings(config: StreamConfig, run_directory: Path) -> dict[str, str]:
    """Return Spark's settings for the job's own Java process. `run_directory` is for temporary files."""
    # Hadoop's own file system starts processes that set or read a file's permissions, for 60 ms a batch.
    files = {"spark.hadoop.fs.file.impl": _FAST_FILES} if config.file_system == "fast" else {}
    return {
        **job_settings(config),
        **files,
        "spark.master": config.master,
        "spark.driver.host": LOOPBACK,
        "spark.driver.bindAddress": LOOPBACK,
        "spark.local.dir": str(run_directory),
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.python.unix.domain.socket.dir": str(run_directory),
    }


@contextlib.contextmanager
def spark_session(
    config: StreamConfig,
    stop: threading.Event,
    *,
    jars: Sequence[Path] = (),
    class_path: Sequence[Path],
    inherited_files: Sequence[int] = (),
    archive_to: Path | None = None,
) -> Iterator[SparkSession]:
    """Yield a session with its own Java process, which ends with the session and holds `inherited_files` open.

    `jars` follow Spark's own, `class_path` precedes them. With `archive_to` the process leaves the archive of its
    classes there at its end (see `class_archive`). Under spark-submit the session uses spark-submit's process and its
    cluster settings. If that process is asked to end, it sets `stop` and waits for the session's end.
    """
    with contextlib.ExitStack() as stack:
        try:
            if submitted():
                yield stack.enter_context(submitted_session(job_settings(config), stop))
                return
            parent = Path("/tmp") if len(tempfile.gettempdir()) > _LONGEST_PARENT else None
            scratch = stack.enter_context(scratch_directory(parent))
            libraries = stack.enter_context(scratch_directory(library_parent(config.library_parents)))
            process = JavaProcess(
                memory=config.driver_memory,
                temporary=libraries.directory,
                jars_before=class_path,
                jars_behind=jars,
                inherited_files=(*inherited_files, scratch.lock, libraries.lock),
                archive_to=archive_to,
            )
            gateway = stack.enter_context(process.running())
            yield stack.enter_context(
                session_of(gateway, SparkConf(loadDefaults=False), own_settings(config, scratch.directory))
            )
        except Py4JJavaError as error:
            raise stream_error(error) from error


def log_nothing_more(session: SparkSession) -> None:
    """Silence Spark's log of streams, which would report a batch that is left out at a stop as an error of 70 lines."""
    java: Any = session
    log4j = java._jvm.org.apache.logging.log4j
    log4j.core.config.Configurator.setLevel("org.apache.spark.sql.execution.streaming", log4j.Level.OFF)


def java_process(session: SparkSession) -> int:
    """Return the number of the session's Java process."""
    java: Any = session
    return int(java._jvm.java.lang.ProcessHandle.current().pid())
