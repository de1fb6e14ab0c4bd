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
    def kill(self) -> None:
        """End everything as a crash does."""

    def stop(self) -> None:
        """End everything, as cleanly as it can."""
        self.kill()

    def __enter__(self: _Started) -> _Started:
        try:
            self.start()
        except BaseException:
            self.kill()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()


class EmbeddedServer(ChildProcess, StartedByWith):
    """A server in a process of its own, which can be started again after its end."""

    @abstractmethod
    def wait_until_ready(self) -> None:
        """Wait until the server serves. Raise EmbeddedError."""

    def start(self) -> None:
        """Start the server, always on the same port and data, and wait until it serves. Raise EmbeddedError."""
        self.launch()
        self.wait_until_ready()


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
