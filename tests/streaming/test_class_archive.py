"""The archive of Java's classes, used if it fits, and without any failed start."""

from __future__ import annotations

import hashlib
import shutil
import threading
from pathlib import Path

import pytest

from streaming.config import StreamConfig
from streaming.java import class_archive
from streaming.java.class_archive import find_archive, spark_jars
from streaming.spark.needs import jars_before
from streaming.spark.session import spark_session
from streaming.spark_class_archive import make
from transport.address import JournalAddress

GARBAGE = b"garbage\n"

# In the process with the shared session, and before that session starts, because a process can have only one.
pytestmark = pytest.mark.xdist_group("spark")


@pytest.fixture
def archives(java, tmp_path, monkeypatch):
    """Return an empty directory of archives beside the jars in the cache."""
    monkeypatch.setattr(class_archive, "_directory", lambda: tmp_path / "archives")
    (tmp_path / "archives").mkdir()
    return tmp_path / "archives"


def _config() -> StreamConfig:
    places = {"source": JournalAddress(Path("/in")), "sink": JournalAddress(Path("/out")), "checkpoint": "/c"}
    return StreamConfig(**places, shuffle_partitions=1)


def _class_path() -> tuple[Path, ...]:
    return (*jars_before(_config()), *spark_jars())


@pytest.mark.nightly
def test_it_is_made_once_and_fits_the_job_that_is_started_after_it(java, tmp_path, monkeypatch):
    made = make()  # made now, or already by the installation
    assert made.stat().st_size > 10_000_000
    assert find_archive(_class_path()) == made
    assert find_archive(spark_jars()) is None, "other jars in front of Spark's"
    before = made.stat().st_mtime_ns
    assert make() == made
    assert made.stat().st_mtime_ns == before
    assert made.with_name(f"{made.name[:16]}.needs").is_file()
    with spark_session(_config(), threading.Event(), class_path=jars_before(_config())) as session:
        assert session.range(3).count() == 3
    damaged = Path(shutil.copy(made, tmp_path))
    monkeypatch.setattr(class_archive, "_directory", lambda: tmp_path)
    assert find_archive(_class_path()) == damaged
    damaged.chmod(0o600)
    with damaged.open("r+b") as file:
        file.seek(5_000_000)
        (byte,) = file.read(1)
        file.seek(5_000_000)
        file.write(bytes([byte ^ 1]))
    assert find_archive(_class_path()) is None, "a byte is another"


@pytest.mark.nightly
def test_an_archive_that_is_none_is_passed_over(archives):
    name = f"{class_archive._key(_class_path())}-{hashlib.sha256(GARBAGE).hexdigest()}.jsa"
    (archives / name).write_bytes(GARBAGE)
    assert find_archive(_class_path()) is not None
    with spark_session(_config(), threading.Event(), class_path=jars_before(_config())) as session:
        assert session.range(3).count() == 3


def test_those_of_installations_that_are_gone_are_removed_by_the_next_start_of_any(archives, tmp_path):
    jars = [tmp_path / "gone" / "one.jar", tmp_path / "there" / "one.jar"]
    for jar in jars:
        jar.parent.mkdir()
        jar.write_bytes(b"jar")
        with class_archive.written([jar]) as draft:
            draft.write_bytes(b"classes")
    gone, there = (find_archive([jar]) for jar in jars)
    with class_archive.written(jars[1:]) as draft:
        draft.write_bytes(b"other classes")
    assert not there.exists(), "the one before of the same installation"
    there = find_archive(jars[1:])
    jars[0].unlink()
    assert class_archive.archive_options(jars[1:])[0] == f"-XX:SharedArchiveFile={there}"
    assert sorted(archives.iterdir()) == sorted([there, there.with_name(f"{there.name[:16]}.needs")])
    assert not gone.exists()
