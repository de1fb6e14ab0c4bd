"""Lock of a journal for one writing process, even if someone removes the lock's file."""

from __future__ import annotations

import errno
import fcntl
import os
from collections.abc import Iterable
from pathlib import Path

from transport.disk import NO_ROOM, make_private, no_room
from transport.holders import holders
from transport.segments import JournalError, JournalFullError, JournalLockedError

_LOCK_FILE = "journal.lock"
_NO_DIRECTORY_LOCK = {errno.EBADF, errno.EINVAL, errno.ENOTSUP, errno.ENOLCK}  # of a network file system


def lock(directory: Path) -> tuple[int, ...]:
    """Lock the directory, which survives the removal of a file. The file serves older releases.

    Raise JournalError or JournalLockedError.
    """
    held: list[int] = []
    try:
        make_private(directory)
        held.append(os.open(directory, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC))
        held.append(os.open(directory / _LOCK_FILE, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600))
    except OSError as error:
        unlock(held)
        if error.errno in NO_ROOM:
            raise JournalFullError(f"journal {directory} cannot be created: {no_room(directory.parent)}") from error
        raise JournalError(f"journal {directory} cannot be created: {error.strerror}") from error
    for descriptor in held:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            if descriptor == held[0] and error.errno in _NO_DIRECTORY_LOCK:
                continue
            owner = holders(held[-1]) or "another process"
            unlock(held)
            raise JournalLockedError(f"journal {directory} is being written by {owner}. End that one first") from error
    return tuple(held)


def unlock(descriptors: Iterable[int]) -> None:
    """Let another process write."""
    for descriptor in descriptors:
        os.close(descriptor)
