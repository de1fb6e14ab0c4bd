"""The archive of Java's classes: found where it fits, and no start fails because of it."""

from __future__ import annotations

import threading
from pathlib import Path

import pytest

from streaming import class_archive
from streaming.class_archive import find_archive, make, spark_jars
from streaming.config import StreamConfig
from streaming.job import fast_files
from streaming.session import spark_session
from transport.address import JournalAddress

# In the process that has the shared session, and before it: a process has one session at a time.
pytestmark = pytest.mark.xdist_group("spark")


@pytest.fixture
def archives(java, tmp_path, monkeypatch):
    """An empty directory of archives beside the jars that are in the cache."""
    monkeypatch.setattr(class_archive, "_directory", lambda: tmp_path / "archives")
    (tmp_path / "archives").mkdir()
    return tmp_path / "archives"


def _config() -> StreamConfig:
    places = {"source": JournalAddress(Path("/in")), "sink": JournalAddress(Path("/out")), "checkpoint": "/c"}
    return StreamConfig(**places, shuffle_partitions=1)


def _class_path() -> tuple[Path, ...]:
    return (*fast_files(_config()), *spark_jars())


def test_it_is_made_once_and_fits_the_job_that_is_started_after_it(archives):
    made = make()
    assert made.stat().st_size > 10_000_000
    assert find_archive(_class_path()) == made
    assert find_archive(spark_jars()) is None, "other jars in front of Spark's"
    before = made.stat().st_mtime_ns
    assert make() == made
    assert made.stat().st_mtime_ns == before
    assert list(archives.iterdir()) == [made]
    with spark_session(_config(), threading.Event(), class_path=fast_files(_config())) as session:
        assert session.range(3).count() == 3
    made.chmod(0o600)
    with made.open("r+b") as file:
        file.truncate(5_000_000)
    assert find_archive(_class_path()) is None


def test_an_archive_that_is_none_is_passed_over(archives):
    (archives / f"{class_archive._key(_class_path())}-8.jsa").write_bytes(b"garbage\n")
    assert find_archive(_class_path()) is not None
    with spark_session(_config(), threading.Event(), class_path=fast_files(_config())) as session:
        assert session.range(3).count() == 3
