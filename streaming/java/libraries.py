"""Directory for Java's native libraries, such as RocksDB's, which cannot be loaded from a mount with noexec.

Docker and Compose mount a tmpfs noexec, and hardened hosts mount /tmp so.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

from streaming.errors import StreamError


def library_parent(directories: Sequence[Path]) -> Path | None:
    """Return the first directory from which a library can be loaded, or None if there is nothing to choose.

    Raise StreamError with the remedy if each is mounted noexec.
    """
    for directory in directories:
        if not _forbids_programs(directory):
            return directory
    if not directories:
        return None
    raise StreamError(
        f"{directories[0]} is mounted noexec, so Java cannot load RocksDB from it. Mount it with exec (Compose: tmpfs "
        "/tmp:exec), or set TMPDIR to a directory without noexec"
    )


def _forbids_programs(directory: Path) -> bool:
    while not directory.exists():
        directory = directory.parent
    return bool(os.statvfs(directory).f_flag & os.ST_NOEXEC)
