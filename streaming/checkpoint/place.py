"""Place of a checkpoint: a local path, or a path on a file system of Hadoop (hdfs, s3a)."""

from __future__ import annotations

import errno
import shutil
from collections.abc import Iterator
from contextlib import closing, contextmanager
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any, Final, TypeAlias

from py4j.protocol import Py4JJavaError
from pyspark.sql import SparkSession

from streaming.errors import StreamError
from streaming.spark.failure import first_line, messages
from transport.disk import force

_MANAGERS: Final = "org.apache.spark.sql.execution.streaming.checkpointing.CheckpointFileManager"
DRAFT: Final = ".new"  # ends the name of a local file that is not whole yet
_LACKS: Final = ("No FileSystem for scheme", "ClassNotFoundException", "NoClassDefFoundError", "No AbstractFileSystem")


class HadoopPath:
    """A path with the methods of pathlib that a checkpoint needs. Raise OSError, as pathlib does.

    Spark's own manager of checkpoint files does the work, so a file is whole or missing as Spark's files are.
    """

    def __init__(self, manager: Any, session: SparkSession, uri: str) -> None:  # noqa: ANN401 (an object of Java's)
        self._manager, self._session, self._uri = manager, session, uri
        java: Any = session
        self._path = java._jvm.org.apache.hadoop.fs.Path(uri)

    def __truediv__(self, name: str) -> HadoopPath:
        return HadoopPath(self._manager, self._session, f"{self._uri}/{name}")

    def __str__(self) -> str:
        return self._uri

    @property
    def name(self) -> str:
        """Return the last part."""
        return self._uri.rpartition("/")[2]

    def with_name(self, name: str) -> HadoopPath:
        """Return the path of this name in the same directory."""
        return HadoopPath(self._manager, self._session, f"{self._uri.rpartition('/')[0]}/{name}")

    def exists(self) -> bool:
        """Return whether there is a file or directory."""
        with self._os_errors():
            return bool(self._manager.exists(self._path))

    def glob(self, pattern: str) -> Iterator[HadoopPath]:
        """Yield the entries of a directory whose names match. A missing directory has no entries."""
        try:
            with self._os_errors():
                found = [str(status.getPath().getName()) for status in self._manager.list(self._path)]
        except FileNotFoundError:
            return
        yield from (self / name for name in found if fnmatchcase(name, pattern))

    def read_bytes(self) -> bytes:
        """Return the content of a file."""
        java: Any = self._session
        with self._os_errors(), closing(self._manager.open(self._path)) as stream:
            return bytes(java._jvm.org.apache.commons.io.IOUtils.toByteArray(stream))

    def replace_content(self, content: bytes) -> None:
        """Write a file all at once, in place of an earlier file."""
        with self._os_errors():
            stream = self._manager.createAtomic(self._path, True)  # noqa: FBT003 (Java has no names)
            stream.write(bytearray(content))
            stream.close()

    def create_directory(self) -> None:
        """Make the directory with its missing parents."""
        with self._os_errors():
            self._manager.mkdirs(self._path)

    def unlink(self, *, missing_ok: bool = False) -> None:  # noqa: ARG002 (Spark's manager takes a missing file)
        """Remove the file, or the directory with everything below it."""
        with self._os_errors():
            self._manager.delete(self._path)

    @contextmanager
    def _os_errors(self) -> Iterator[None]:
        try:
            yield
        except Py4JJavaError as error:
            if error.java_exception.getClass().getSimpleName() == "FileNotFoundException":
                raise FileNotFoundError(errno.ENOENT, "no such file", self._uri) from error
            said = next((message for message in messages(error) if message.strip()), "it does not answer")
            raise OSError(errno.EIO, first_line(said), self._uri) from error


def hadoop_path(session: SparkSession, uri: str) -> HadoopPath:
    """Return the path, once Hadoop has found its file system. Raise StreamError."""
    java: Any = session
    try:
        path = java._jvm.org.apache.hadoop.fs.Path(uri)
        manager = getattr(java._jvm, _MANAGERS).create(path, java._jsparkSession.sessionState().newHadoopConf())
    except Py4JJavaError as error:
        said = [message for message in messages(error) if message.strip()]
        lacks = any(sign in f"{error.java_exception} {' '.join(said)}" for sign in _LACKS)
        scheme = uri.partition(":")[0]
        advice = (
            f"No jar has Hadoop's file system {scheme}. Put its jars into hadoop_directory, for s3a hadoop-aws in "
            "Spark's Hadoop release"
            if lacks
            else "Check the settings in hadoop_directory"
        )
        raise StreamError(f"checkpoint {uri} cannot be used ({first_line(said[-1])}). {advice}") from error
    return HadoopPath(manager, session, uri)


Place: TypeAlias = Path | HadoopPath


def replace_content(path: Place, content: bytes) -> None:
    """Write a file all at once, in place of an earlier file. Raise OSError."""
    if isinstance(path, HadoopPath):
        path.replace_content(content)
        return
    draft = path.with_name(f"{path.name}{DRAFT}")
    draft.write_bytes(content)
    force(draft)
    draft.replace(path)
    force(path.parent)


def remove_directory(directory: Place) -> None:
    """Remove a directory with everything below it. Raise OSError."""
    if isinstance(directory, HadoopPath):
        directory.unlink()
    else:
        shutil.rmtree(directory)
