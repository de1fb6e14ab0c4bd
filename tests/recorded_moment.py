"""A bad moment of a recorded cluster, with brokers away, partitions offline, and a ghost controller."""

from __future__ import annotations

from pathlib import Path

from ingest.files.data_directory import Until
from ingest.files.history import FileHistory
from tests.archives import extract

MOMENT_MS = 1_795_373_068_853
_NAME = "operator39"
_RECORDINGS = Path(__file__).parent / "conformance" / "recordings"


def zk_data(directory: Path) -> Path:
    """Unpack the recorded cluster's ZooKeeper, and return its dataDir."""
    extract(_RECORDINGS / f"{_NAME}.tar.xz", directory, f"{_NAME}/zk/")
    return directory / _NAME / "zk"


def history(directory: Path, cluster: str) -> FileHistory:
    """Return the unpacked history up to the moment."""
    return FileHistory((directory,), cluster, chroot="/", until=Until(time_ms=MOMENT_MS))
