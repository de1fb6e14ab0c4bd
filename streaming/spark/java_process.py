"""Start and end Spark's Java process beside the job, and forward its output to the log.

Spark's shell scripts are avoided, because they cost a second Java process and set SPARK_HOME. With SPARK_HOME, each of
seven Python processes would import pyspark from an archive of sources and compile it again in 0.7 seconds of CPU time.
"""

from __future__ import annotations

import importlib
import logging
import os
import re
import signal
import subprocess
import sys
import threading
import time
import warnings
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from py4j.clientserver import ClientServer
from py4j.protocol import Py4JError, Py4JJavaError
from pyspark import SparkConf, SparkContext
from pyspark.java_gateway import launch_gateway
from pyspark.serializers import UTF8Deserializer, read_int
from pyspark.sql import SparkSession

from streaming.errors import StreamError
from streaming.java.artifacts import LOOPBACK
from streaming.java.class_archive import archive_options, spark_jars
from streaming.java.installation import find_java
from streaming.processes import descendants, die_with, kill
from streaming.scratch import scratch_directory

logger = logging.getLogger("kontrast.streaming.spark")

_CODE = Path(__file__).absolute().parents[2]
_LOG_SETTINGS = Path(__file__).absolute().with_name("log4j2.properties")
_OPTIONS = (
    # This option halves the start of the job. A batch costs no more, because Java has little to optimise in it.
    "-XX:TieredStopAtLevel=1",
    "-XX:+UseSerialGC",
    "-XX:+ExitOnOutOfMemoryError",
    # Hadoop starts a process a file. By default Java needs a program of its installation, which no longer fits
    # after an upgrade of Java under a running job.
    "-Djdk.lang.Process.launchMechanism=VFORK",
    f"-Dlog4j2.configurationFile={_LOG_SETTINGS.as_uri()}",
)
# The options of Spark's own scripts (`org.apache.spark.launcher.JavaModuleOptions`). A test compares them.
_OPENED = (
    *(f"java.base/java.{name}" for name in ("lang", "lang.invoke", "lang.reflect", "io", "net", "nio", "util")),
    "java.base/java.util.concurrent",
    "java.base/java.util.concurrent.atomic",
    "java.base/jdk.internal.ref",
    "java.base/sun.nio.ch",
    "java.base/sun.nio.cs",
    "java.base/sun.security.action",
    "java.base/sun.util.calendar",
    "java.security.jgss/sun.security.krb5",
)
SPARK_OPTIONS = (
    "-XX:+IgnoreUnrecognizedVMOptions",
    "--add-modules=jdk.incubator.vector",
    *(f"--add-opens={package}=ALL-UNNAMED" for package in _OPENED),
    "-Dio.netty.tryReflectionSetAccessible=true",
    "-Dio.netty.allocator.type=pooled",
    "-Dio.netty.handler.ssl.defaultEndpointVerificationAlgorithm=NONE",
    "--sun-misc-unsafe-memory-access=allow",
    "--enable-native-access=ALL-UNNAMED",
)
_GATEWAY = "org.apache.spark.api.python.PythonGatewayServer"
_START_SECONDS = 120
_EXIT_SECONDS = 20
# Python workers may outlive Java for a moment, and they hold the pipe open that Java wrote into.
_LAST_WORDS_SECONDS = 2
_ARCHIVING_SECONDS = 180
_OUT_OF_MEMORY = "java.lang.OutOfMemoryError"
_STACK = re.compile(r"\s+at |\s*\.\.\. \d+ more")  # lines of a stack trace, which name no cause


@dataclass(frozen=True, slots=True, kw_only=True)
class JavaProcess:
    """A Java process to start, with memory in Java's notation and the jars around Spark's own.

    It holds `inherited_files` open until it ends. With `archive_to` it leaves the archive of its classes there. It
    unpacks native libraries into `temporary`, which therefore must not be mounted noexec.
    """

    memory: str
    temporary: Path | None = None
    jars_before: Sequence[Path] = ()
    jars_behind: Sequence[Path] = ()
    inherited_files: Sequence[int] = ()
    archive_to: Path | None = None

    @contextmanager
    def running(self) -> Iterator[ClientServer]:
        """Start the process, and end it cleanly, so that no process remains. Raise StreamError."""
        words = _Words()
        with scratch_directory() as scratch:
            address_file = scratch.directory / "gateway"
            process = self._start(address_file, words)
            try:
                importlib.import_module("pandas")  # Pyspark needs it soon, and Java takes longer to start.
                gateway = _connect(process, address_file)
            except BaseException as error:
                ended = self._how_it_ended(process, words) if isinstance(error, Py4JError | OSError) else ""
                _kill(process)
                if ended:
                    raise StreamError(f"Spark's Java process did not start: {ended}") from error
                raise
        try:
            yield gateway
        except (Py4JError, ConnectionError) as error:
            if isinstance(error, Py4JJavaError):
                raise
            raise StreamError(f"Spark's Java process is gone: {self._how_it_ended(process, words)}") from error
        finally:
            SparkContext._gateway = None
            SparkContext._jvm = None
            gateway.shutdown()
            assert process.stdin is not None
            process.stdin.close()
            try:
                process.wait(_EXIT_SECONDS if self.archive_to is None else _ARCHIVING_SECONDS)
            except subprocess.TimeoutExpired:
                _kill(process)

    def command(self) -> list[str]:
        """Return the program and its arguments."""
        # The archive fits any class path with this beginning. Jars after Spark's own do not count.
        class_path = [str(jar) for jar in (*self.jars_before, *spark_jars(), *self.jars_behind)]
        options = [*_OPTIONS, *SPARK_OPTIONS, f"-Xmx{self.memory}", *self._archive_options()]
        if self.temporary is not None:
            options.append(f"-Djava.io.tmpdir={self.temporary}")  # Java does not read TMPDIR
        return [str(find_java()), *options, "-cp", os.pathsep.join(class_path), _GATEWAY]

    def _archive_options(self) -> tuple[str, ...]:
        if self.archive_to is not None:
            return (f"-XX:ArchiveClassesAtExit={self.archive_to}",)
        return archive_options((*self.jars_before, *spark_jars()))

    def _how_it_ended(self, process: subprocess.Popen[bytes], words: _Words) -> str:
        """Name the signal that killed Java, or the memory that ran out, else Java's exit code and last line."""
        try:
            code = process.wait(_EXIT_SECONDS)
        except subprocess.TimeoutExpired:
            return "it does not answer"
        if code == -signal.SIGKILL:
            return "SIGKILL ended it. The kernel sends that signal when memory runs out (`journalctl -k`)"
        if code < 0:
            return f"{signal.Signals(-code).name} ended it"
        last = words.last()
        if _OUT_OF_MEMORY in last:
            return f"its memory of {self.memory} ran out. Give it more with --driver-memory ({last})"
        return f"it ended with exit code {code}, its last line was: {last}"

    def _start(self, address_file: Path, words: _Words) -> subprocess.Popen[bytes]:
        parent = os.getpid()
        try:
            return subprocess.Popen(
                self.command(),
                stdin=subprocess.PIPE,  # Java ends when this is closed, even by our death
                stdout=words.write_end,
                stderr=words.write_end,
                pass_fds=tuple(self.inherited_files),
                env=_environment(address_file),
                # A signal to the whole process group must reach only this process, which then ends Java cleanly.
                start_new_session=True,
                # A stopped Java would not notice that its input is closed, and would keep the checkpoint.
                preexec_fn=lambda: die_with(parent),
            )
        except OSError as error:
            raise StreamError(f"Spark's Java process did not start: {error}") from error
        finally:
            os.close(words.write_end)


def _kill(process: subprocess.Popen[bytes]) -> None:
    """Kill Java with the Python workers below it, because stopped workers would outlive it."""
    kill([process.pid, *descendants(process.pid)])
    process.wait()


def _environment(address_file: Path) -> dict[str, str]:
    os.environ["PYSPARK_PYTHON"] = sys.executable
    paths = os.environ.get("PYTHONPATH", "").split(os.pathsep)
    path = os.pathsep.join([str(_CODE), *(path for path in paths if path not in {"", str(_CODE)})])
    return {
        **{name: value for name, value in os.environ.items() if name != "SPARK_HOME"},
        "PYTHONPATH": path,
        "PYTHONHASHSEED": "0",
        # Without this program Spark skips its search for others' data sources, a chain of three Python processes.
        "PYSPARK_DRIVER_PYTHON": "/nonexistent",
        "SPARK_LOCAL_IP": LOOPBACK,
        "_PYSPARK_DRIVER_CONN_INFO_PATH": str(address_file),
    }


def _connect(process: subprocess.Popen[bytes], address_file: Path) -> ClientServer:
    """Return the gateway to the process, as soon as it has written its address. Raise Py4JError or OSError."""
    deadline = time.monotonic() + _START_SECONDS
    while not address_file.exists():
        if process.poll() is not None or time.monotonic() > deadline:
            raise TimeoutError
        time.sleep(0.01)
    with address_file.open("rb") as answer:
        port, secret = read_int(answer), UTF8Deserializer().loads(answer)
    os.environ.update({"PYSPARK_GATEWAY_PORT": str(port), "PYSPARK_GATEWAY_SECRET": secret})
    try:
        return launch_gateway()
    finally:
        del os.environ["PYSPARK_GATEWAY_PORT"], os.environ["PYSPARK_GATEWAY_SECRET"]


@contextmanager
def session_of(gateway: ClientServer, conf: SparkConf, settings: Mapping[str, str]) -> Iterator[SparkSession]:
    """Yield a session in the gateway's process and stop it at the end. Raise Py4JJavaError."""
    with _signal_handlers_kept():
        context = SparkContext(conf=conf.setAll(list(settings.items())), gateway=gateway)
    # The default handler prints a traceback when Java is gone.
    context._accumulatorServer.handle_error = lambda *_: logger.debug(  # type: ignore[method-assign]
        "a connection from Spark's Java process failed", exc_info=True
    )
    try:
        yield SparkSession(context)
    finally:
        with suppress(Py4JError, ConnectionError), warnings.catch_warnings():
            # Pyspark warns on standard error when Java was killed and its port still accepts a connection.
            warnings.simplefilter("ignore", RuntimeWarning)
            context.stop()


@contextmanager
def _signal_handlers_kept() -> Iterator[None]:
    """Keep the signal handlers, because a SparkContext would replace the one for SIGINT."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    handler = signal.getsignal(signal.SIGINT)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, handler)


class _Words:
    """The lines that the Java process and its Python workers print, on their way to the log."""

    def __init__(self) -> None:
        read_end, self.write_end = os.pipe()
        self._last = ""
        self._thread = threading.Thread(target=self._forward, args=(read_end,), name="spark-words", daemon=True)
        self._thread.start()

    def last(self) -> str:
        """Wait a moment for the last line outside stack traces, which best shows why the process ended."""
        self._thread.join(_LAST_WORDS_SECONDS)
        return self._last

    def _forward(self, read_end: int) -> None:
        with open(read_end, encoding="utf-8", errors="replace") as lines:
            for line in lines:
                if line.strip() and not _STACK.match(line):
                    self._last = line.strip()
                # Spark logs as errors the failures that the job reports in its own sentence, so these are details.
                logger.debug("%s", line.rstrip())
