"""Lock of a journal for one writing process, even if someone removes the lock's file."""

from __future__ import annotations

import errno
import fcntl
import os
from collections.abc import Iterable, Iterator
from contextlib import suppress
from pathlib import Path

from transport.disk import NO_ROOM, make_private, no_room
from transport.segments import JournalError, JournalFullError, JournalLockedError

_PROCESSES = Path("/proc")
_STOPPED = ("T", "t")


def holders(opened: int) -> str:
    """Name the other processes that have this open file open, such as "process 7 (java), which is stopped".

    Return an empty text if no such process is visible. Another user's processes are not visible.
    """
    return " and ".join(_described(process) for process in sorted(_holding(os.fstat(opened))))


def _holding(file: os.stat_result) -> Iterator[int]:
    for process in _PROCESSES.glob("[0-9]*"):
        if int(process.name) == os.getpid():
            continue
        with suppress(OSError):
            if any(_is(descriptor, file) for descriptor in (process / "fd").iterdir()):
                yield int(process.name)


def _is(descriptor: Path, file: os.stat_result) -> bool:
    with suppress(OSError):
        return os.path.samestat(descriptor.stat(), file)
    return False


def _described(process: int) -> str:
    try:
        # The name stands in brackets and may hold any character. The state follows.
        name, _, rest = (_PROCESSES / str(process) / "stat").read_text().partition("(")[2].rpartition(")")
    except OSError:
        return f"process {process}"
    stopped = ", which is stopped" if rest.split()[0] in _STOPPED else ""
    return f"process {process} ({name}){stopped}"


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
