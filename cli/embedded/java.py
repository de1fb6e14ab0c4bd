"""An embedded Java server: its command line, with jars from pyspark, its logging configuration, and its life."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TypeVar

import pyspark

from cli.embedded.process import ChildProcess, EmbeddedError
from streaming.java.class_archive import archive_options
from streaming.java.installation import find_java

_Started = TypeVar("_Started", bound="StartedByWith")


class StartedByWith(ABC):
    """Something that `with` starts and stops. A failed start kills it."""

    @abstractmethod
    def start(self) -> None:
        """Start everything and wait until it serves. Raise EmbeddedError."""

    @abstractmethod
    def stop(self) -> None:
        """End everything cleanly."""

    @abstractmethod
    def kill(self) -> None:
        """End everything as a crash does."""

    def __enter__(self: _Started) -> _Started:
        try:
            self.start()
        except BaseException:
            self.kill()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()


class OneProcess:
    """A server that is one child process."""

    def __init__(self, process: ChildProcess) -> None:
        self._process = process

    @property
    def log(self) -> Path:
        """Return the file with the server's output."""
        return self._process.log

    @property
    def running(self) -> bool:
        """Return whether the server's process exists, even if it is paused."""
        return self._process.running

    @property
    def pid(self) -> int | None:
        """Return the process id while the server runs."""
        return self._process.pid

    def kill(self) -> None:
        """End the server as a crash does (SIGKILL)."""
        self._process.kill()

    def pause(self) -> None:
        """Freeze the server. Its connections stay open without an answer, and its sessions expire."""
        self._process.pause()

    def resume(self) -> None:
        """Let the server go on after a pause."""
        self._process.resume()

    def describe(self, sentence: str) -> str:
        """Return the sentence about the server, with the end of its log."""
        return self._process.describe(sentence)


class EmbeddedServer(OneProcess, StartedByWith):
    """A server in a process of its own, which can be started again after its end."""

    @abstractmethod
    def launch(self) -> None:
        """Start the server without waiting for it. Raise EmbeddedError."""

    @abstractmethod
    def wait_until_ready(self) -> None:
        """Wait until the server serves. Raise EmbeddedError."""

    def start(self) -> None:
        """Start the server, always on the same port and data, and wait until it serves. Raise EmbeddedError."""
        self.launch()
        self.wait_until_ready()

    def stop(self) -> None:
        """End the server cleanly (SIGTERM). A broker moves its leaderships first."""
        self._process.stop()


# Both servers log through SLF4J, which pyspark binds to Log4j 2.
LOGGING_JARS = (
    "slf4j-api-*.jar",
    "log4j-api-*.jar",
    "log4j-core-*.jar",
    "log4j-1.2-api-*.jar",
    "log4j-slf4j2-impl-*.jar",
)
_LOGGING = """\
appender.console.type = Console
appender.console.name = console
appender.console.layout.type = PatternLayout
appender.console.layout.pattern = %d %p %c{1}: %m%n
rootLogger.level = info
rootLogger.appenderRef.console.ref = console
"""


def java_command(
    main_class: str,
    configuration: Path,
    *,
    class_path: Sequence[Path],
    heap_mb: int,
    system_properties: Mapping[str, str] | None = None,
) -> list[str | Path]:
    """Return the command line of a small server that logs to its standard output."""
    return [
        find_java(),
        f"-Xmx{heap_mb}m",
        "-XX:+UseSerialGC",
        "-XX:TieredStopAtLevel=1",  # for a short life, compile quickly rather than well
        *archive_options(class_path),
        f"-Dlog4j2.configurationFile={_logging_file(configuration)}",
        *(f"-D{name}={value}" for name, value in (system_properties or {}).items()),
        "-cp",
        ":".join(str(jar) for jar in class_path),
        main_class,
        configuration,
    ]


def write_configuration(configuration: Path, properties: dict[str, str]) -> None:
    """Write the server's properties, and its logging configuration in the same directory."""
    configuration.parent.mkdir(parents=True, exist_ok=True)
    configuration.write_text("".join(f"{key}={value}\n" for key, value in properties.items()))
    _logging_file(configuration).write_text(_LOGGING)


def pyspark_jars(patterns: Sequence[str]) -> list[Path]:
    """Return the jars of these names in pyspark. Raise EmbeddedError."""
    directory = Path(pyspark.__file__).parent / "jars"
    jars: list[Path] = []
    for pattern in patterns:
        found = sorted(directory.glob(pattern))
        if not found:
            raise EmbeddedError(f"{directory} has no {pattern}. Install the pinned pyspark again")
        jars += found
    return jars


def _logging_file(configuration: Path) -> Path:
    return configuration.with_name("log4j2.properties")
