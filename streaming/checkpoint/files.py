"""Checkpoint files of Spark that must reach the disk before the outputs that depend on them, and fruitless starts.

Spark does not force files to disk. After a power cut the newest may be missing, empty or full of zeros.
"""

from __future__ import annotations

import contextlib
import logging
import os
from collections.abc import Iterator
from contextlib import suppress
from struct import Struct
from zlib import crc32

import msgspec

from controller.contract.decoding import JsonDecoder, UndecodableError
from streaming.checkpoint.directory import REBUILD, STARTS_FILE
from streaming.checkpoint.place import HadoopPath, Place, remove_directory, replace_content
from streaming.errors import StreamError
from transport.disk import force

logger = logging.getLogger("kontrast.streaming")

_VERSION = "v"  # how Spark begins a file of a log
_LOGS = ("offsets", "commits")
_NO_OFFSET = "-"
_CHECKSUMS = b"crc\0"  # how Hadoop begins a file of checksums
_CHECKSUMS_HEADER = Struct(">4xI")  # the mark, then the number of bytes that each sum covers
# Hadoop allocates memory for one chunk, 512 bytes by default. A flipped bit in the size would exhaust Java's memory.
_LARGEST_CHUNK_BYTES = 1024**2
_ANYTHING = JsonDecoder(object)


class _JournalOffset(msgspec.Struct):
    offset: int


_JOURNAL_OFFSET = JsonDecoder(_JournalOffset)


class CheckpointFiles:
    """Files below a checkpoint's directory, with a memory of those that are on disk in their current form.

    The memory has only files that exist, because Spark replaces a dozen with each batch.

    A file system of Hadoop stores a file as soon as Spark has closed it, in as many copies as it is set up for.
    """

    def __init__(self, directory: Place) -> None:
        self._directory = directory
        self._forced: dict[str, tuple[int, int, int]] = {}

    def force(self) -> None:
        """Force all files to disk. Raise StreamError.

        When a batch's rows are written, its offsets, the state after it and the commit of the previous batch exist.
        """
        if isinstance(self._directory, HadoopPath):
            return
        try:
            self._forced = dict(self._force_below(str(self._directory)))
        except OSError as error:
            raise StreamError(
                f"checkpoint {self._directory} cannot be forced to disk: {error.strerror}. Check the disk"
            ) from error

    def _force_below(self, directory: str) -> Iterator[tuple[str, tuple[int, int, int]]]:
        """Force the new files, and yield every path with its identity."""
        has_new = False
        with os.scandir(directory) as entries:
            for entry in entries:
                with contextlib.suppress(FileNotFoundError):  # Spark may remove old files meanwhile
                    status = entry.stat(follow_symlinks=False)
                    is_directory = entry.is_dir(follow_symlinks=False)
                    seen = (status.st_ino, 0, 0) if is_directory else _identity(status)
                    is_new = self._forced.get(entry.path) != seen
                    if is_directory:
                        yield from self._force_below(entry.path)
                    elif is_new:
                        force(entry.path)
                    yield entry.path, seen
                    has_new = has_new or is_new
        if has_new:
            force(directory)


def drop_torn(spark_directory: Place) -> None:
    """Remove the incomplete newest entries of Spark's logs, so that their batches repeat. Raise StreamError.

    A batch with a commit but without offsets repeats too.
    """
    try:
        _drop_torn(spark_directory)
    except OSError as error:
        raise StreamError(f"{error.filename}: {error.strerror}. Check the disk, or {REBUILD}") from error


def _drop_torn(spark_directory: Place) -> None:
    for log in _LOGS:
        for number in reversed(numbered(spark_directory / log)):
            path = spark_directory / log / str(number)
            if _is_whole(path):
                break
            _drop(path, "was not written whole before the machine went down, or is damaged")
    newest = max(numbered(spark_directory / "offsets"), default=-1)
    for number in numbered(spark_directory / "commits"):
        if number > newest:
            _drop(spark_directory / "commits" / str(number), "has no offsets beside it")
    if spark_directory.exists() and not _has_begun(spark_directory):
        logger.info("%s has no batch that rows rest on, and begins again", spark_directory)
        remove_directory(spark_directory)


def require_checksums(spark_directory: Place) -> None:
    """Raise StreamError for a file of checksums that would end Java before it can name the file."""
    if isinstance(spark_directory, HadoopPath):
        return
    for checksums in sorted(spark_directory.rglob(".*.crc")):
        try:
            with checksums.open("rb") as file:
                header = file.read(_CHECKSUMS_HEADER.size)
        except OSError as error:
            raise StreamError(f"{checksums} cannot be read: {error.strerror}. Check the disk, or {REBUILD}") from error
        if not _is_sound(header):
            raise StreamError(f"{checksums} is damaged. Restore the checkpoint, or {REBUILD}")


def numbered(log: Place) -> list[int]:
    """Return the numbers of the entries of one of Spark's logs, in their order."""
    return sorted(int(path.name) for path in log.glob("[0-9]*") if path.name.isdigit())


def agrees_with_checksum(path: Place) -> bool:
    """Return whether a file matches Hadoop's checksum file beside it. Return True without a valid checksum file."""
    try:
        sums = checksum_file(path).read_bytes()
    except FileNotFoundError:
        return True
    if not _has_header(sums):
        return True
    if not _is_sound(sums):
        return False
    (chunk_bytes,) = _CHECKSUMS_HEADER.unpack_from(sums)
    content = path.read_bytes()
    chunks = (content[begin : begin + chunk_bytes] for begin in range(0, len(content), chunk_bytes))
    return sums[_CHECKSUMS_HEADER.size :] == b"".join(crc32(chunk).to_bytes(4, "big") for chunk in chunks)


def checksum_file(path: Place) -> Place:
    """Return the file in which Hadoop keeps the checksums of this file."""
    return path.with_name(f".{path.name}.crc")


def _has_header(sums: bytes) -> bool:
    """Return whether these bytes begin a file of checksums. Otherwise Hadoop reads the checked file without them."""
    return sums.startswith(_CHECKSUMS) and len(sums) >= _CHECKSUMS_HEADER.size


def _is_sound(sums: bytes) -> bool:
    """Return whether Hadoop can use the size of a chunk, if there is one."""
    return not _has_header(sums) or 0 < _CHECKSUMS_HEADER.unpack_from(sums)[0] <= _LARGEST_CHUNK_BYTES


def _has_begun(spark_directory: Place) -> bool:
    """Return whether rows may depend on the checkpoint. The first batch's offsets are on disk before its rows."""
    if numbered(spark_directory / "commits"):
        return True
    metadata = spark_directory / "metadata"
    return bool(numbered(spark_directory / "offsets")) and metadata.exists() and is_json(metadata.read_bytes())


def source_of(spark_directory: Place, batch: int) -> bytes:
    """Return the name of the part of the source that a batch covers, from the end of the previous batch to its own."""
    ends = []
    for number in (batch - 1, batch):
        path = spark_directory / "offsets" / str(number)
        try:
            # The version, then Spark's notes on the batch, which differ between runs, then one offset per source.
            ends.append(b"\n".join(path.read_bytes().split(b"\n")[2:]) if number >= 0 else b"")
        except OSError as error:
            raise StreamError(f"{path} cannot be read: {error.strerror}. Check the disk, or {REBUILD}") from error
    return b"\n\n".join(ends)


def end_of_source(spark_directory: Place, batch: int) -> int:
    """Return the journal's offset at which a planned batch ends, 0 before the first batch. Raise OSError."""
    if batch < 0:
        return 0
    *_, offset = (spark_directory / "offsets" / str(batch)).read_bytes().strip().split(b"\n")
    try:
        return _JOURNAL_OFFSET.decode(offset).offset
    except UndecodableError:
        return 0


def _identity(status: os.stat_result) -> tuple[int, int, int]:
    return status.st_ino, status.st_size, status.st_mtime_ns


def _is_whole(path: Place) -> bool:
    version, *lines = path.read_bytes().split(b"\n")
    return (
        agrees_with_checksum(path)
        and version.startswith(_VERSION.encode())
        and bool(lines)
        and all(map(is_json, lines))
    )


def is_json(line: bytes) -> bool:
    """Return whether the line is JSON, or Spark's placeholder for a missing offset."""
    try:
        _ANYTHING.decode(line)
    except UndecodableError:
        return line == _NO_OFFSET.encode()
    return True


def _drop(path: Place, why: str) -> None:
    logger.warning("%s %s. Kontrast removes it and repeats its batch", path, why)
    path.unlink()
    checksum_file(path).unlink(missing_ok=True)


class FruitlessStarts(msgspec.Struct, frozen=True, rename={"count": "starts"}):
    """The starts of one of Spark's directories that finished no batch, and the newest batch before them (-1: none)."""

    directory: str = ""
    finished: int = -1
    count: int = 0


_FRUITLESS_STARTS = JsonDecoder(FruitlessStarts)


def fruitless_starts(directory: Place, spark_directory: Place) -> FruitlessStarts:
    """Count this start of a checkpoint, and return the earlier starts since the newest finished batch.

    A file that cannot be read or written counts no start, because the job itself fails at the same disk.
    """
    finished = max(numbered(spark_directory / "commits"), default=-1)
    earlier = 0
    with suppress(OSError, UndecodableError):
        stored = _FRUITLESS_STARTS.decode((directory / STARTS_FILE).read_bytes())
        if (stored.directory, stored.finished) == (spark_directory.name, finished):
            earlier = stored.count
    known = FruitlessStarts(spark_directory.name, finished, earlier)
    with suppress(OSError):
        counted = msgspec.structs.replace(known, count=earlier + 1)
        replace_content(directory / STARTS_FILE, msgspec.json.encode(counted) + b"\n")
    return known
