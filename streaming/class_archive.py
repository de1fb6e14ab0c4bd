"""Java's classes as they are after their loading: an archive that halves what the start of a program costs.

Here belongs where archives are, and how Spark's is made. Java checks that one fits (its own version, the jars, their
times) and does without where it does not. `python -m streaming.class_archive` makes Spark's, where it is not there yet.
"""

from __future__ import annotations

import hashlib
import os
import sys
import tempfile
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import pyspark

from controller.records import Record, RecordKind, encode_record
from streaming.artifacts import cache_directory
from streaming.config import StreamConfig
from streaming.errors import StreamError
from streaming.java import find_java
from transport.address import JournalAddress
from transport.disk import make_private
from transport.journal import JournalWriter


def spark_jars() -> list[Path]:
    """Spark's own jars but its machine learning, which takes a second of each start to say that it is there."""
    jars = Path(pyspark.__file__).absolute().parent / "jars"
    return sorted(jar for jar in jars.glob("*.jar") if not jar.name.startswith("spark-mllib_"))


def archive_options(class_path: Sequence[Path]) -> tuple[str, ...]:
    """What tells Java to use the archive of this class path; nothing where there is none."""
    archive = find_archive(class_path)
    return () if archive is None else (f"-XX:SharedArchiveFile={archive}", "-XX:+VerifySharedSpaces")


def find_archive(class_path: Sequence[Path]) -> Path | None:
    """The archive that was made for this Java and this class path, or the beginning of one."""
    for archive in _directory().glob(f"{_key(class_path)}-*.jsa"):
        if archive.stem.endswith(f"-{archive.stat().st_size}"):  # of one that is cut off, Java would crash
            return archive
    return None


def _key(class_path: Sequence[Path]) -> str:
    java = find_java().resolve()
    fits = [str(java), str(java.stat().st_mtime_ns), pyspark.__version__, *map(str, class_path)]
    return hashlib.sha256("\n".join(fits).encode()).hexdigest()[:16]


def _directory() -> Path:
    return cache_directory() / "class-archives"


@contextmanager
def written(class_path: Sequence[Path]) -> Iterator[Path]:
    """Gives the file that a Java with this class path writes its classes into as it ends; raises StreamError."""
    draft = _directory() / f".{_key(class_path)}.{os.getpid()}"
    try:
        make_private(_directory())
        yield draft
        draft.replace(_directory() / f"{_key(class_path)}-{draft.stat().st_size}.jsa")
    except OSError as error:
        raise StreamError(f"no class archive could be made, which costs some seconds at each start: {error}") from error
    finally:
        draft.unlink(missing_ok=True)


def make() -> Path:
    """The archive for a job with the default settings, made by a small job; raises StreamError."""
    from streaming.job import fast_files, prepare
    from streaming.session import spark_session

    with tempfile.TemporaryDirectory(prefix="kontrast-") as directory:
        source, sink = Path(directory, "records"), Path(directory, "outputs")
        config = StreamConfig(
            source=JournalAddress(source), sink=JournalAddress(sink), checkpoint=str(Path(directory, "checkpoint"))
        )
        fast = fast_files(config)
        class_path = (*fast, *spark_jars())
        if find_archive(class_path) is None:
            with JournalWriter(source) as writer:
                writer.append([encode_record(record) for record in _records()])
            with (
                written(class_path) as draft,
                prepare(config, threading.Event()) as job,
                spark_session(job.config, threading.Event(), class_path=fast, archive_to=draft) as session,
            ):
                job.stream(session, threading.Event(), available_now=True)
        archive = find_archive(class_path)
        assert archive is not None, "Java ended in order and wrote no archive"
        return archive


def _records() -> list[Record]:
    fields = {"cluster": "none", "generation": 1, "observed_ms": 0}
    kinds = (RecordKind.SNAPSHOT_BEGIN, RecordKind.SNAPSHOT_END, RecordKind.HEARTBEAT)
    return [Record(seq=seq, kind=kind, **fields) for seq, kind in enumerate(kinds)]


if __name__ == "__main__":
    try:
        make()
    except StreamError as error:
        sys.stderr.write(f"{error}\n")
