"""Find the damaged or missing file of a checkpoint over which Spark fails.

Spark's own sentence often comes from the code that stumbled first, and may be a NullPointerException without a text.
"""

from __future__ import annotations

import re
import zipfile
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from controller.contract.decoding import JsonDecoder, UndecodableError
from streaming.checkpoint.directory import REBUILD
from streaming.checkpoint.files import agrees_with_checksum, checksum_file, is_json, numbered
from streaming.checkpoint.place import HadoopPath, Place
from streaming.errors import StreamError
from streaming.spark.failure import first_line, is_of_java, messages

# Spark 4.2's error conditions that a damaged file of the checkpoint can cause.
_CONDITIONS: Final = re.compile(
    r"\[(CANNOT_LOAD_STATE_STORE|STREAMING_CHECKPOINT_|STREAMING_STATEFUL_OPERATOR_MISSING_STATE_DIRECTORY|STDS_"
    r"|STATE_STORE_|MALFORMED_LOG_FILE|CONCURRENT_STREAM_LOG_UPDATE)"
)
_SNAPSHOT_FILES = "metadata"  # the entry of a .zip with the names of its files in SSTs/
_JSON = JsonDecoder(object)
# Errors of zipfile for arbitrary bytes, and of missing entries.
_UNREADABLE: Final = (
    *(OSError, EOFError, zipfile.BadZipFile, zlib.error, NotImplementedError, RuntimeError, ValueError),
    *(UndecodableError, KeyError, TypeError),
)


def damage_behind(failure: BaseException, spark_directory: Place) -> StreamError | None:
    """Return the error of a query that failed over a damaged checkpoint. Return None for another reason."""
    if not is_of_java(failure):
        return None
    for found in _damage(spark_directory):
        return StreamError(f"{found}. Restore the checkpoint, or {REBUILD}")
    for message in messages(failure):
        sentence = first_line(message)
        if _CONDITIONS.search(message) or str(spark_directory) in sentence:
            return StreamError(
                f"Spark cannot continue with {spark_directory} ({sentence}). Restore the checkpoint, or {REBUILD}"
            )
    return None


def _damage(spark_directory: Place) -> Iterator[str]:
    """Yield the damaged and missing files, a sentence each."""
    metadata, offsets = spark_directory / "metadata", spark_directory / "offsets"
    try:
        if not is_json(metadata.read_bytes()):
            yield f"{metadata} is damaged"
    except OSError as error:
        yield f"{metadata} cannot be read ({error.strerror})"
    there = numbered(offsets)
    for number in sorted(set(range(there[0], there[-1])) - set(there)) if there else ():
        yield f"{offsets / str(number)} is missing"
    if isinstance(spark_directory, HadoopPath):  # because a file system of Hadoop verifies its own checksums
        return
    for checksums in sorted(spark_directory.rglob(".*.crc")):
        path = checksums.with_name(checksums.name[1 : -len(".crc")])
        try:
            if not agrees_with_checksum(path):
                yield f"{path} is damaged, because its checksums differ from those beside it"
        except FileNotFoundError:
            yield f"{path} is missing"
        except OSError as error:
            yield f"{path} cannot be read ({error.strerror})"
    for snapshot in sorted((spark_directory / "state").rglob("*.zip")):
        yield from _damage_of_snapshot(snapshot)
    yield from _without_checksums(spark_directory)


def _without_checksums(spark_directory: Path) -> Iterator[str]:
    """Return a sentence for each file without checksums beside files with checksums, because it cannot be verified."""
    names = {path for path in spark_directory.rglob("*") if path.is_file()}
    files = sorted(path for path in names if not path.name.startswith("."))
    lacking = [path for path in files if checksum_file(path) not in names]
    for path in lacking if len(lacking) < len(files) else ():
        yield f"{path} has lost the checksums that were beside it, and Spark cannot read it as it is"


def _damage_of_snapshot(snapshot: Path) -> Iterator[str]:
    """Return the damage of a state store's snapshot, an archive with files of RocksDB."""
    try:
        with zipfile.ZipFile(snapshot) as archive:
            damaged = archive.testzip()
            stored = archive.read(_SNAPSHOT_FILES).partition(b"\n")[2]
        described = _JSON.decode(stored)
        names = [file["dfsSstFileName"] for file in described["sstFiles"]]  # type: ignore[index]  # else TypeError
    except _UNREADABLE:
        yield f"{snapshot} is damaged"
        return
    if damaged is not None:
        yield f"{snapshot} is damaged"
    for name in names:
        if not (snapshot.parent / "SSTs" / str(name)).exists():
            yield f"{snapshot.parent / 'SSTs' / str(name)} is missing"
