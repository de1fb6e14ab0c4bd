"""Java's classes as they are after their loading: an archive that halves what the start of a program costs.

Here belongs where archives are, when they go, and how Spark's is made. Java checks that one fits (its own version, the
jars, their times) and does without where it does not; whether it is whole, its name says by its digest.
`python -m streaming.class_archive` makes Spark's, where it is not there yet.
"""

from __future__ import annotations

import hashlib
import logging
import sys
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

import pyspark

from controller.contract.records import Record, RecordKind, encode_record
from streaming.artifacts import cache_directory
from streaming.config import StreamConfig
from streaming.errors import StreamError
from streaming.java import find_java
from transport.address import JournalAddress
from transport.disk import make_private
from transport.journal import JournalWriter
from transport.scratch import scratch_directory

_LOG = logging.getLogger("kontrast.streaming")

_NEEDS = ".needs"  # beside an archive: the files without which nobody can use it, one a line
_DIGEST_CHARACTERS = 64
_PIECE_BYTES = 1024**2


def spark_jars() -> list[Path]:
    """Spark's own jars but its machine learning, which takes a second of each start to say that it is there."""
    jars = Path(pyspark.__file__).absolute().parent / "jars"
    return sorted(jar for jar in jars.glob("*.jar") if not jar.name.startswith("spark-mllib_"))


def archive_options(class_path: Sequence[Path]) -> tuple[str, ...]:
    """What tells Java to use the archive of this class path; nothing where there is none."""
    remove_unusable()
    archive = find_archive(class_path)
    return () if archive is None else (f"-XX:SharedArchiveFile={archive}", "-XX:+VerifySharedSpaces")


def find_archive(class_path: Sequence[Path]) -> Path | None:
    """The archive that was made for this Java and this class path, None where there is none that is whole."""
    for archive in _directory().glob(f"{_key(class_path)}-*.jsa"):
        stated = archive.stem.partition("-")[2]
        if len(stated) != _DIGEST_CHARACTERS:
            continue
        with suppress(OSError):  # another start may remove it now
            if _digest(archive) == stated:  # of one that is cut off or changed, Java might crash
                return archive
            _LOG.warning("%s is damaged and not used: starts take seconds longer until `make install`", archive)
    return None


def _key(class_path: Sequence[Path]) -> str:
    java = find_java().resolve()
    fits = [str(java), str(java.stat().st_mtime_ns), pyspark.__version__, *map(str, class_path)]
    return hashlib.sha256("\n".join(fits).encode()).hexdigest()[:16]


def _digest(archive: Path) -> str:
    digest = hashlib.sha256()
    with archive.open("rb") as file:
        while piece := file.read(_PIECE_BYTES):
            digest.update(piece)
    return digest.hexdigest()


def _directory() -> Path:
    return cache_directory() / "class-archives"


@contextmanager
def written(class_path: Sequence[Path]) -> Iterator[Path]:
    """Gives the file that a Java with this class path writes its classes into as it ends; raises StreamError."""
    directory, key = _directory(), _key(class_path)
    try:
        make_private(directory)
        remove_unusable()
        with scratch_directory(directory) as scratch:
            draft, needs = scratch.directory / "archive", scratch.directory / "needs"
            yield draft
            digest = _digest(draft)
            needs.write_text("".join(f"{path}\n" for path in (find_java().resolve(), *class_path)))
            for old in directory.glob(f"{key}-*.jsa"):
                old.unlink(missing_ok=True)
            needs.replace(directory / f"{key}{_NEEDS}")
            draft.replace(directory / f"{key}-{digest}.jsa")
    except OSError as error:
        raise StreamError(f"no class archive could be made, which costs some seconds at each start: {error}") from error


def remove_unusable() -> None:
    """Remove the archives of installations that are gone: whose Java, or a jar, is no longer where it was."""
    for needs in _directory().glob(f"*{_NEEDS}"):
        with suppress(OSError):
            if not all(Path(path).exists() for path in needs.read_text().splitlines()):
                for archive in needs.parent.glob(f"{needs.name.removesuffix(_NEEDS)}-*.jsa"):
                    archive.unlink(missing_ok=True)
                needs.unlink(missing_ok=True)


def make() -> Path:
    """The archive for a job with the default settings, made by a small job; raises StreamError."""
    from streaming.job import fast_files, prepare
    from streaming.session import spark_session

    with scratch_directory() as scratch:
        directory = scratch.directory
        source, sink = directory / "records", directory / "outputs"
        config = StreamConfig(
            source=JournalAddress(source), sink=JournalAddress(sink), checkpoint=str(directory / "checkpoint")
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
