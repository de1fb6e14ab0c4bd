"""Hadoop's own programs, and the files of settings that reach them."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

from cli.embedded.process import ChildProcess
from streaming.java.artifacts import SHORT_LIFE, spark_home
from streaming.java.installation import find_java
from tests.older_releases import HADOOP_MINICLUSTER, older_jars

_START_SECONDS = 240


def hadoop_command(*before: Path) -> list[str]:
    """Return Java's command with Hadoop on the class path, behind these directories."""
    class_path = (*before, *older_jars(HADOOP_MINICLUSTER), spark_home() / "jars" / "*")
    return [str(find_java()), *SHORT_LIFE, "-cp", os.pathsep.join(map(str, class_path))]


def write_settings(file: Path, settings: Mapping[str, str]) -> None:
    """Write a file of Hadoop's settings."""
    properties = (f"<property><name>{key}</name><value>{value}</value></property>" for key, value in settings.items())
    file.write_text(f"<configuration>{''.join(properties)}</configuration>")


@contextlib.contextmanager
def running(*children: ChildProcess, until: Callable[[], bool]) -> Iterator[None]:
    """Run these programs until the end of the `with`, and wait until they are ready."""
    with contextlib.ExitStack() as stack:
        for child in children:
            child.launch()
            stack.callback(child.stop)
        children[-1].wait_until(until, timeout_seconds=_START_SECONDS)
        yield
