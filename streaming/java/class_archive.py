"""Find, write and remove archives of loaded Java classes, which halve what the start of a program costs.

Java checks that an archive fits (its own version, the jars, their times) and does without where it does not; whether it
is whole, its name says by its digest. `streaming.spark_class_archive` makes Spark's.
"""

from __future__ import annotations

import hashlib
import logging
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

import pyspark

from streaming.errors import StreamError
from streaming.java.artifacts import cache_directory
from streaming.java.installation import find_java
from transport.disk import make_private
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
    """Java's options to use the archive of this class path; nothing where there is none."""
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
