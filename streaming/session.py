"""The Spark session of the job: Spark's settings, and its Java process from start to end.

Here belongs what Spark must be told to be fast on one machine; each setting that is not obvious says why it is there.
"""

from __future__ import annotations

import contextlib
import logging
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterator, Sequence
from pathlib import Path

import pyspark
from py4j.clientserver import ClientServer
from py4j.protocol import Py4JError, Py4JJavaError
from pyspark import SparkConf, SparkContext
from pyspark.errors import PySparkRuntimeError
from pyspark.java_gateway import launch_gateway
from pyspark.sql import SparkSession

from streaming.class_archive import find_archive
from streaming.config import StreamConfig
from streaming.errors import StreamError
from streaming.failure import stream_error
from streaming.java import find_java

logger = logging.getLogger("kontrast.streaming.spark")

_CHECKPOINTING = "org.apache.spark.sql.execution.streaming.checkpointing.FileSystemBasedCheckpointFileManager"
_FAST_FILES = "com.globalmentor.apache.hadoop.fs.BareLocalFileSystem"
_ROCKSDB = "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider"
_LOG_SETTINGS = "log4j2.configurationFile"
_JAVA_OPTIONS = (
    # The job is up in half the time, and a batch costs no more: what takes long in it is not Java's to optimise.
    "-XX:TieredStopAtLevel=1",
    "-XX:+UseSerialGC",
    "-XX:+ExitOnOutOfMemoryError",
    # Hadoop starts a process a file. The default way needs a program of the Java installation, which no longer fits
    # after an upgrade of Java under a running job.
    "-Djdk.lang.Process.launchMechanism=VFORK",
)
_LONGEST_RUN_DIRECTORY = 50  # a Unix domain socket's whole path may have about 100 characters
_JAVA_EXIT_SECONDS = 20
_ARCHIVING_SECONDS = 180


def submitted() -> bool:
    """Whether spark-submit started this process: then Spark's Java process is there, and its cluster is chosen."""
    return "PYSPARK_GATEWAY_PORT" in os.environ


def job_settings(config: StreamConfig) -> dict[str, str]:
    """Spark's settings that the job needs wherever it runs."""
    return {
        "spark.app.name": "kontrast",
        "spark.sql.session.timeZone": "UTC",
        "spark.sql.shuffle.partitions": str(config.shuffle_partitions),
        "spark.sql.adaptive.enabled": "false",
        "spark.sql.streaming.noDataMicroBatches.enabled": "false",
        "spark.sql.streaming.minBatchesToRetain": "10",
        # The default one starts processes (readlink, chmod) for every file: a third of a batch's time.
        "spark.sql.streaming.checkpointFileManagerClass": _CHECKPOINTING,
        "spark.sql.streaming.stateStore.providerClass": _ROCKSDB,
        "spark.sql.streaming.stateStore.rocksdb.changelogCheckpointing.enabled": "true",
        # The default encoding cannot gain a field.
        "spark.sql.streaming.stateStore.encodingFormat": "avro",
        # Over TCP each exchange with a Python worker waits some 40 ms for nothing.
        "spark.python.unix.domain.socket.enabled": "true",
    }


def own_settings(config: StreamConfig, run_directory: Path, *java_options: str) -> dict[str, str]:
    """Spark's settings of a Java process that is the job's own; `run_directory` is for what need not outlive it."""
    options = (*_JAVA_OPTIONS, *java_options, f'"-D{_LOG_SETTINGS}={_log_settings().as_uri()}"')
    # Hadoop's own starts processes that set or ask for a file's permissions: 60 ms a batch.
    files = {"spark.hadoop.fs.file.impl": _FAST_FILES} if config.file_system == "fast" else {}
    return {
        **job_settings(config),
        **files,
        "spark.master": config.master,
        "spark.driver.memory": config.driver_memory,
        "spark.driver.host": "127.0.0.1",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.driver.extraJavaOptions": " ".join(options),
        "spark.local.dir": str(run_directory),
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.python.unix.domain.socket.dir": str(run_directory),
    }


@contextlib.contextmanager
def spark_session(
    config: StreamConfig,
    *,
    jars: Sequence[Path] = (),
    class_path: Sequence[Path] = (),
    inherited_files: Sequence[int] = (),
    archive_to: Path | None = None,
) -> Iterator[SparkSession]:
    """A session with a Java process of its own, which ends with it and holds `inherited_files` open until then.

    With `archive_to` the process leaves the archive of its classes there when it ends (see `class_archive`).
    Under spark-submit it is spark-submit's process, and what was told to it of the cluster holds.
    """
    logging.getLogger("py4j").setLevel(logging.CRITICAL)  # the job itself says what failed
    if submitted():
        yield from _submitted_session(config)
        return
    find_java()
    run_directory = _make_run_directory()
    settings = own_settings(config, run_directory, *_class_options(class_path, archive_to))
    if jars:
        settings["spark.jars"] = ",".join(jar.absolute().as_uri() for jar in jars)
    if class_path:
        settings["spark.driver.extraClassPath"] = os.pathsep.join(str(jar.absolute()) for jar in class_path)
    words = _SparkWords()
    try:
        gateway = _launch(settings, inherited_files, words)
        try:
            with _signal_handlers_kept():
                context = SparkContext(conf=_conf(settings), gateway=gateway)
            try:
                yield SparkSession(context)
            finally:
                with contextlib.suppress(Py4JError, ConnectionError):
                    context.stop()
        except Py4JJavaError as error:
            raise stream_error(error) from error
        except (Py4JError, ConnectionError) as error:
            raise StreamError(f"Spark's Java process is gone, its last words were: {words.last()}") from error
        finally:
            _end(gateway, _JAVA_EXIT_SECONDS if archive_to is None else _ARCHIVING_SECONDS)
    finally:
        shutil.rmtree(run_directory, ignore_errors=True)


def _class_options(class_path: Sequence[Path], archive_to: Path | None) -> tuple[str, ...]:
    if archive_to is not None:
        return (f"-XX:ArchiveClassesAtExit={archive_to}",)
    archive = find_archive(class_path)
    return () if archive is None else (f'"-XX:SharedArchiveFile={archive}"', "-XX:+VerifySharedSpaces")


def _submitted_session(config: StreamConfig) -> Iterator[SparkSession]:
    try:
        gateway = launch_gateway()
        SparkContext._ensure_initialized(gateway=gateway)
        given = SparkConf(loadDefaults=True, _jvm=gateway.jvm)
        with _signal_handlers_kept():
            context = SparkContext(conf=given.setAll(list(job_settings(config).items())), gateway=gateway)
        # Spark's Python beside the driver that prepares transformWithState is not given what --py-files has.
        context.environment["PYTHONPATH"] = str(Path(__file__).absolute().parent.parent)
        try:
            yield SparkSession(context)
        finally:
            with contextlib.suppress(Py4JError, ConnectionError):
                context.stop()
    except Py4JJavaError as error:
        raise stream_error(error) from error
    except (Py4JError, ConnectionError) as error:
        raise StreamError("Spark's Java process is gone; the log of spark-submit says why") from error


def _log_settings() -> Path:
    return Path(__file__).absolute().with_name("log4j2.properties")


def _make_run_directory() -> Path:
    directory = tempfile.mkdtemp(prefix="kontrast-")
    if len(directory) > _LONGEST_RUN_DIRECTORY:
        os.rmdir(directory)
        directory = tempfile.mkdtemp(prefix="kontrast-", dir="/tmp")
    return Path(directory)


def _conf(settings: dict[str, str]) -> SparkConf:
    return SparkConf(loadDefaults=False).setAll(list(settings.items()))


def _launch(settings: dict[str, str], inherited_files: Sequence[int], words: _SparkWords) -> ClientServer:
    code = str(Path(__file__).absolute().parent.parent)
    paths = os.environ.get("PYTHONPATH", "").split(os.pathsep)
    os.environ["PYTHONPATH"] = os.pathsep.join([code, *(path for path in paths if path not in {"", code})])
    os.environ["PYSPARK_PYTHON"] = sys.executable
    os.environ["SPARK_HOME"] = str(Path(pyspark.__file__).parent)  # not another Spark that is installed here
    try:
        return launch_gateway(
            _conf(settings),
            {
                "stdout": words.write_end,
                "stderr": words.write_end,
                "pass_fds": tuple(inherited_files),
                # A signal to the whole group is for this process, which then ends the other in order.
                "start_new_session": True,
            },
        )
    except PySparkRuntimeError as error:
        raise StreamError(f"Spark's Java process did not start: {words.last() or error}") from error
    finally:
        os.close(words.write_end)


def _end(gateway: ClientServer, exit_seconds: float) -> None:
    """End the Java process, so that the next session starts its own and none is left behind."""
    SparkContext._gateway = None
    SparkContext._jvm = None
    gateway.shutdown()
    process = gateway.proc
    if process is None:  # spark-submit started it, and will end it
        return
    process.stdin.close()
    try:
        process.wait(exit_seconds)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()


class _SparkWords:
    """What the Java process and its Python workers print, on its way to the log."""

    def __init__(self) -> None:
        read_end, self.write_end = os.pipe()
        self._last = ""
        self._thread = threading.Thread(target=self._forward, args=(read_end,), name="spark-words", daemon=True)
        self._thread.start()

    def last(self) -> str:
        """The last line, which tells best why the process ended."""
        return self._last

    def _forward(self, read_end: int) -> None:
        with open(read_end, encoding="utf-8", errors="replace") as lines:
            for line in lines:
                self._last = line.strip() or self._last
                # Spark writes as errors what the job reports in a sentence of its own, so these are details.
                logger.debug("%s", line.rstrip())


@contextlib.contextmanager
def _signal_handlers_kept() -> Iterator[None]:
    """A SparkContext takes SIGINT for itself; what the process does then is not Spark's decision."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    handler = signal.getsignal(signal.SIGINT)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, handler)
