"""Find, write and remove archives of loaded Java classes, which halve the start of a program.

Java checks whether an archive fits its version, the jars and their times, and ignores it otherwise. The digest in its
name shows whether it is whole. `streaming.spark_class_archive` makes the archive of Spark's classes.
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
from streaming.scratch import scratch_directory

_LOG = logging.getLogger("kontrast.streaming")

_NEEDS = ".needs"  # beside an archive, the files it depends on, one per line
_DIGEST_CHARACTERS = 64
_PIECE_BYTES = 1024**2


def spark_jars() -> list[Path]:
    """Return Spark's own jars without machine learning, which costs a second of each start."""
    jars = Path(pyspark.__file__).absolute().parent / "jars"
    return sorted(jar for jar in jars.glob("*.jar") if not jar.name.startswith("spark-mllib_"))


def archive_options(class_path: Sequence[Path]) -> tuple[str, ...]:
    """Return Java's options for the archive of this class path, empty without an archive."""
    remove_unusable()
    archive = find_archive(class_path)
    return () if archive is None else (f"-XX:SharedArchiveFile={archive}",)


def find_archive(class_path: Sequence[Path]) -> Path | None:
    """Return the whole archive for this Java and class path, if there is one."""
    for archive in _directory().glob(f"{_key(class_path)}-*.jsa"):
        stated = archive.stem.partition("-")[2]
        if len(stated) != _DIGEST_CHARACTERS:
            continue
        with suppress(OSError):  # another start may remove the archive now
            if _digest(archive) == stated:  # a cut or changed archive might crash Java
                return archive
            _LOG.warning("%s is damaged and not used. Starts take seconds longer until `make install`", archive)
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
    """Yield the file into which a Java with this class path writes its classes at its end. Raise StreamError."""
    directory, key = _directory(), _key(class_path)
    try:
        directory.mkdir(parents=True, exist_ok=True)
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
    """Remove the archives of removed installations, whose Java or jars are gone."""
    for needs in _directory().glob(f"*{_NEEDS}"):
        with suppress(OSError):
            if not all(Path(path).exists() for path in needs.read_text().splitlines()):
                for archive in needs.parent.glob(f"{needs.name.removesuffix(_NEEDS)}-*.jsa"):
                    archive.unlink(missing_ok=True)
                needs.unlink(missing_ok=True)
