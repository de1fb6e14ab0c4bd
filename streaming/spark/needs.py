"""Files that the job's own Java process needs, its jars and a directory for native libraries, and their check."""

from __future__ import annotations

import logging
from pathlib import Path

from streaming.config import StreamConfig
from streaming.java.artifacts import (
    LOCAL_FILE_SYSTEM,
    SPARK_KAFKA_CONNECTOR,
    ArtifactSet,
    cache_directory,
    jars,
    missing_jars,
)
from streaming.java.installation import library_parent
from streaming.spark.submitted import submitted

logger = logging.getLogger("kontrast.streaming")


def jars_before(config: StreamConfig) -> tuple[Path, ...]:
    """Return the jar for the fast way of writing checkpoints, if it is configured. Raise StreamError."""
    return tuple(jar for needed in _fast_files(config) for jar in jars(needed, report=logger.info))


def jars_behind(config: StreamConfig) -> tuple[Path, ...]:
    """Return the connector of Kafka and the jars of Hadoop, if they are configured. Raise StreamError."""
    if submitted():  # by --packages or --jars of spark-submit
        return ()
    connector = tuple(jar for needed in _connector(config) for jar in jars(needed, report=logger.info))
    if config.hadoop_directory is None:
        return connector
    directory = Path(config.hadoop_directory).expanduser().absolute()
    return (*connector, directory, directory / "*")  # in Java's notation, its files and its jars


def check_jars(config: StreamConfig) -> str:
    """Return whether the start has its jars or must fetch them. Raise StreamError."""
    needed = [*_fast_files(config), *_connector(config)]
    if missing := [name for each in needed for name in missing_jars(each)]:
        return f"the start fetches {len(missing)} from Maven Central into {cache_directory()}"
    return f"they are in {cache_directory()}"


def check_libraries(config: StreamConfig) -> str:
    """Return where Java unpacks native libraries. Raise StreamError if each directory is mounted noexec."""
    return f"Java can load them from {library_parent(config.library_parents)}"


def _fast_files(config: StreamConfig) -> list[ArtifactSet]:
    return [] if submitted() or config.file_system != "fast" else [LOCAL_FILE_SYSTEM]


def _connector(config: StreamConfig) -> list[ArtifactSet]:
    return [SPARK_KAFKA_CONNECTOR] if config.kafka_addresses else []
