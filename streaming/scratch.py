"""Temporary directories of a process. The next start removes the directories of killed processes.

A lock shows that a directory is in use. The kernel releases the lock when its last holder ends.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import shutil
import tempfile
from collections.abc import Iterator
from enum import Enum
from pathlib import Path
from typing import NamedTuple

_PREFIX = "kontrast-run-"  # unique to Kontrast, because a directory with this name and without a lock is removed


_AS_IT_IS = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW


class NoScratchError(OSError):
    """A temporary directory cannot be made, or not be used, in one sentence."""

    def __str__(self) -> str:
        return str(self.strerror)


class _Lock(Enum):
    OURS = "ours"
    HELD = "held"
    NONE_HERE = "the file system has none"


class Scratch(NamedTuple):
    """A directory and the open file with its lock. A child process that inherits the file keeps the lock."""

    directory: Path
    lock: int


@contextlib.contextmanager
def scratch_directory(parent: Path | None = None) -> Iterator[Scratch]:
    """Provide a new directory in `parent`, by default the system's for temporary files, until the block ends.

    Raise NoScratchError. First remove directories of this user's dead processes there.
    """
    try:
        parent = Path(tempfile.gettempdir()) if parent is None else parent
        remove_abandoned(parent)
        scratch = _made(parent)
    except OSError as error:
        what = f"no temporary directory can be made in {parent or 'any usual place'}: {os.strerror(error.errno or 0)}"
        raise NoScratchError(error.errno, f"{what}. Set TMPDIR to a directory with room that you may write") from error
    try:
        yield scratch
    finally:
        shutil.rmtree(scratch.directory, ignore_errors=True)
        os.close(scratch.lock)


def remove_abandoned(parent: Path) -> None:
    """Remove the directories of dead processes in `parent`. Directories that cannot be removed stay."""
    for directory in parent.glob(f"{_PREFIX}*"):
        with contextlib.suppress(OSError), contextlib.ExitStack() as stack:  # it may be another user's, or gone
            opened = os.open(directory, _AS_IT_IS)
            stack.callback(os.close, opened)
            if os.fstat(opened).st_uid == os.geteuid() and _lock(opened) is _Lock.OURS:
                shutil.rmtree(directory, ignore_errors=True)


def _made(parent: Path) -> Scratch:
    while True:
        directory = Path(tempfile.mkdtemp(prefix=_PREFIX, dir=parent))
        with contextlib.suppress(FileNotFoundError), contextlib.ExitStack() as stack:
            opened = os.open(directory, _AS_IT_IS)
            stack.callback(os.close, opened)
            # Another start may have removed the directory before it was locked. Without locks, the directory stays.
            if _lock(opened) is not _Lock.HELD and directory.exists():
                stack.pop_all()
                return Scratch(directory, opened)


def _lock(opened: int) -> _Lock:
    try:
        fcntl.flock(opened, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return _Lock.HELD
    except OSError:
        return _Lock.NONE_HERE
    return _Lock.OURS
