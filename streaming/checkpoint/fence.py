"""Fence that keeps a zombie driver from writing after another driver has started.

If a network file system gives up a machine, its locks on checkpoint and journals end, but the machine may come back.
"""

from __future__ import annotations

import os
import socket
import uuid
from collections.abc import Sequence

from streaming.checkpoint.place import Place, replace_content
from streaming.errors import StreamError

EPOCH_FILE = "kontrast.epoch"


class Fence:
    """The epoch of this driver in directories that one driver at a time may write. Raise StreamError.

    An epoch is a name without order, because a checkpoint that was restored from a backup may hold an older epoch.
    """

    def __init__(self, directories: Sequence[Place]) -> None:
        self._directories = directories
        self._epoch = f"process {os.getpid()} on {socket.gethostname()} ({uuid.uuid4().hex})"
        for directory in directories:
            try:
                replace_content(directory / EPOCH_FILE, self._epoch.encode())
            except OSError as error:
                raise StreamError(f"{directory} cannot be written: {error.strerror}") from error

    def require(self) -> None:
        """Raise StreamError if another driver has started in a directory since."""
        for directory in self._directories:
            try:
                newest = (directory / EPOCH_FILE).read_bytes().decode()
            except (OSError, ValueError) as error:
                raise StreamError(f"{directory / EPOCH_FILE} cannot be read: {error}. Check the disk") from error
            if newest != self._epoch:
                raise StreamError(
                    f"another job has started on {directory}: {newest}. This one ends and writes no more rows"
                )
