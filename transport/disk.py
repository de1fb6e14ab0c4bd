"""Make directories that only their owner reads, decide when lines reach the disk, and describe a full disk."""

from __future__ import annotations

import errno
import os
import shutil
from enum import Enum
from pathlib import Path

RETAIN_BYTES = 4 * 1024**3  # of a journal
NO_ROOM = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EFBIG})


class Fsync(Enum):
    """Policy for forcing lines to disk. Only a crash of the machine, not of a process, can lose unforced lines."""

    ALWAYS = "always"  # before an append returns
    INTERVAL = "interval"  # by the first append after the interval, and at close
    NEVER = "never"  # whenever the operating system likes


def make_private(directory: Path) -> None:
    """Create the directory and its missing parents with access for the owner only. Raise OSError."""
    for missing in reversed([above for above in (directory, *directory.parents) if not above.exists()]):
        missing.mkdir(mode=0o700, exist_ok=True)
    if not directory.is_dir():
        raise NotADirectoryError(errno.ENOTDIR, os.strerror(errno.ENOTDIR), str(directory))


def force(path: Path | str) -> None:
    """Force a file, or a directory's list of files, to disk. Raise OSError."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def no_room(directory: Path) -> str:
    """Describe a full file system: its size, its free space and the next step."""
    try:
        usage = shutil.disk_usage(directory)
    except OSError:
        return "no room left. Free some or add some"
    return f"no room left: {_size(usage.free)} of its disk's {_size(usage.total)} are free. Free some or add some"


def _size(count: float) -> str:
    for unit in ("bytes", "KiB", "MiB", "GiB"):
        if count < 1024:
            return f"{count:.3g} {unit}"
        count /= 1024
    return f"{count:.1f} TiB"
