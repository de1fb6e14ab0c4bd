"""Spark's files in a checkpoint across a power cut: forced to disk before the outputs that rest on them.

Here belongs what is done with the files from outside. Spark itself forces none of them: after a power cut any of the
newest may be missing, empty or full of zeros.
"""

from __future__ import annotations

import contextlib
import logging
import os
import shutil
from pathlib import Path

from controller.contract.decoding import JsonDecoder, UndecodableError
from streaming.errors import StreamError

logger = logging.getLogger("kontrast.streaming")

_VERSION = "v"  # how Spark begins a file of a log
_LOGS = ("offsets", "commits")
_NO_OFFSET = "-"
_ANYTHING = JsonDecoder(object)


class CheckpointFiles:
    """The files below a checkpoint's directory, and which of them are on disk as they are now."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self._forced: dict[str, tuple[int, int, int]] = {}

    def force(self) -> None:
        """Return when all files are on disk; raises StreamError.

        Offsets of a batch and the state after it are there when its rows are written, and the commit of the one before.
        """
        try:
            self._force_below(str(self._directory))
        except OSError as error:
            raise StreamError(
                f"checkpoint {self._directory} cannot be forced to disk: {error.strerror}: check the disk"
            ) from error

    def _force_below(self, directory: str) -> None:
        has_new = False
        with os.scandir(directory) as entries:
            for entry in entries:
                with contextlib.suppress(FileNotFoundError):  # Spark tidies up meanwhile
                    status = entry.stat(follow_symlinks=False)
                    is_directory = entry.is_dir(follow_symlinks=False)
                    seen = (status.st_ino, 0, 0) if is_directory else _identity(status)
                    is_new = self._forced.get(entry.path) != seen
                    if is_directory:
                        self._force_below(entry.path)
                    elif is_new:
                        _force(entry.path)
                    self._forced[entry.path] = seen
                    has_new = has_new or is_new
        if has_new:
            _force(directory)


def drop_torn(spark_directory: Path) -> None:
    """Remove the newest entries of Spark's logs that a power cut left half written; nothing rests on them."""
    for log in _LOGS:
        entries = [path for path in (spark_directory / log).glob("*") if path.name.isdigit()]
        for path in sorted(entries, key=lambda path: int(path.name), reverse=True):
            if _is_whole(path):
                break
            _drop(path)
    if spark_directory.exists() and not _has_begun(spark_directory):
        logger.info("%s has no batch that rows rest on: it is begun again", spark_directory)
        shutil.rmtree(spark_directory)


def _has_begun(spark_directory: Path) -> bool:
    """Whether rows may rest on what is there: the first batch's offsets are forced to disk before its rows are."""
    if any((spark_directory / "commits").glob("[0-9]*")):
        return True
    metadata = spark_directory / "metadata"
    return any((spark_directory / "offsets").glob("[0-9]*")) and metadata.exists() and _is_json(metadata.read_bytes())


def source_of(spark_directory: Path, batch: int) -> bytes:
    """What names the part of the source that a batch covers: where the batch before it ended, and where it ends."""
    ends = []
    for number in (batch - 1, batch):
        path = spark_directory / "offsets" / str(number)
        try:
            # The version, then what Spark notes of the batch, which differs from run to run, then an offset a source.
            ends.append(b"\n".join(path.read_bytes().split(b"\n")[2:]) if number >= 0 else b"")
        except OSError as error:
            raise StreamError(f"{path} cannot be read: {error.strerror}: check the disk") from error
    return b"\n\n".join(ends)


def _force(path: str) -> None:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _identity(status: os.stat_result) -> tuple[int, int, int]:
    return status.st_ino, status.st_size, status.st_mtime_ns


def _is_whole(path: Path) -> bool:
    version, *lines = path.read_bytes().split(b"\n")
    return version.startswith(_VERSION.encode()) and bool(lines) and all(map(_is_json, lines))


def _is_json(line: bytes) -> bool:
    try:
        _ANYTHING.decode(line)
    except UndecodableError:
        return line == _NO_OFFSET.encode()
    return True


def _drop(path: Path) -> None:
    logger.warning("%s was not written whole before the machine went down: it is removed, nothing rests on it", path)
    path.unlink()
    path.with_name(f".{path.name}.crc").unlink(missing_ok=True)
