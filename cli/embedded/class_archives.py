"""Make archives of the classes of ZooKeeper and of a Kafka broker, because servers start with them in half the time.

`python -m cli.embedded.class_archives` starts and ends each server once if its archive is missing.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from cli.embedded.java import EmbeddedServer
from cli.embedded.kafka import KafkaBroker, kafka_class_path
from cli.embedded.process import EmbeddedError
from cli.embedded.zookeeper import ZooKeeper, zookeeper_class_path
from cli.printing import standard_error
from streaming.errors import StreamError
from streaming.java.artifacts import KAFKA_BROKER, jars
from streaming.java.class_archive import find_archive, written
from streaming.scratch import scratch_directory

_JAVA_OPTIONS = "JAVA_TOOL_OPTIONS"  # Java adds these options to its command line


def make() -> None:
    """Make the missing archives. Raise EmbeddedError or StreamError."""
    with scratch_directory() as scratch:
        directory = scratch.directory
        _make(zookeeper_class_path(), lambda: ZooKeeper(directory / "archived"))
        broker_jars = kafka_class_path(jars(KAFKA_BROKER))
        with ZooKeeper(directory / "zookeeper") as zookeeper:
            _make(broker_jars, lambda: KafkaBroker(1, zookeeper.connect_string, directory / "broker"))


def _make(class_path: Sequence[Path], server: Callable[[], EmbeddedServer]) -> None:
    if find_archive(class_path) is None:
        with written(class_path) as archive, _archiving_to(archive), server():
            pass


@contextmanager
def _archiving_to(archive: Path) -> Iterator[None]:
    before = os.environ.get(_JAVA_OPTIONS)
    os.environ[_JAVA_OPTIONS] = f"-XX:ArchiveClassesAtExit={archive}"
    try:
        yield
    finally:
        del os.environ[_JAVA_OPTIONS]
        if before is not None:
            os.environ[_JAVA_OPTIONS] = before


if __name__ == "__main__":
    standard_error.configure()
    try:
        make()
    except (EmbeddedError, StreamError) as error:
        standard_error.complain(str(error))
