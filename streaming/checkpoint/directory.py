"""A checkpoint directory with its lock, its fence, and the settings of its first start.

Spark's own files are in a subdirectory. A checkpoint on a file system of Hadoop has no lock, only the fence. It keeps a
zombie driver from writing after another driver has started: if a network file system gives up a machine, its locks on
checkpoint and journals end, but the machine may come back. Some changes of settings let the checkpoint begin again.
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import re
import socket
import time
import uuid
from collections.abc import Mapping, Sequence
from itertools import count
from pathlib import Path
from typing import Final

from controller.restore.stored_context import STATE_VERSION
from streaming.checkpoint.place import DRAFT, HadoopPath, Place, remove_directory, replace_content
from streaming.config import StreamConfig
from streaming.errors import StreamError
from transport.address import Address, JournalAddress
from transport.disk import force, make_private
from transport.journal_lock import holders

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


CHECKPOINT_FORMAT = 1
STATE_FORMAT = "state format"  # a value that no user can give
LOCK_WAIT_SECONDS = 10.0  # a job that was killed a moment ago may still be on its way out

REBUILDS = "rebuilds"
REBUILD = (
    "begin again with `kontrast stream --rebuild`, which goes back to the newest complete read that the source holds"
)

_SPARK = "spark"
_SPARKS = re.compile(r"spark(-[0-9]+)?")
_DRAFTS_OF_SPARK = re.compile(r"\.kontrast\..*\.tmp")
_SETTINGS_FILE = "kontrast.json"
_LOCK_FILE = "kontrast.lock"
STARTS_FILE = "kontrast.starts"
_FORMAT = "format"

Settings = Mapping[str, int | str]


class Checkpoint:
    """A checkpoint directory that this job holds until it closes it. Raise StreamError.

    Kontrast rejects a directory that is neither empty nor a checkpoint, before anything is written into it.
    """

    def __init__(self, directory: Place, *, lock_wait_seconds: float = LOCK_WAIT_SECONDS) -> None:
        self.directory = directory
        _create(directory)
        self._lock = None if isinstance(directory, HadoopPath) else _lock(directory / _LOCK_FILE, lock_wait_seconds)

    @property
    def locks(self) -> tuple[int, ...]:
        """Return the open files that hold the checkpoint."""
        return () if self._lock is None else (self._lock,)

    @property
    def spark_directory(self) -> Place:
        """Return the directory for Spark's offsets, commits and state. Each rebuild uses a new directory."""
        rebuilds = number(self.directory, {REBUILDS: 0, **(self.settings() or {})}, REBUILDS)
        return self.directory / (f"{_SPARK}-{rebuilds}" if rebuilds else _SPARK)

    @property
    def next_rebuild(self) -> int:
        """Return the first rebuild with a free place for Spark's files."""
        return next(number for number in count(1) if not (self.directory / f"{_SPARK}-{number}").exists())

    def settings(self) -> Settings | None:
        """Return the settings of the first start, if it has happened."""
        return stored_settings(self.directory)

    def number(self, name: str) -> int:
        """Return the number from the first start. Raise StreamError if it is missing."""
        return number(self.directory, self.settings() or {}, name)

    def begin(self, chosen: Settings) -> None:
        """Write the settings for the life of this checkpoint, all at once, and remove an earlier checkpoint."""
        content = json.dumps({_FORMAT: CHECKPOINT_FORMAT, **chosen}, indent=2)
        try:
            replace_content(self.directory / _SETTINGS_FILE, f"{content}\n".encode())
            kept = self.spark_directory.name
            entries: list[Place] = [*self.directory.glob("*")]
            for left in entries:
                if _SPARKS.fullmatch(left.name) and left.name != kept:
                    remove_directory(left)
        except OSError as error:
            raise StreamError(f"checkpoint {self.directory} cannot be written: {error.strerror}") from error

    def close(self) -> None:
        """Release the checkpoint for the next job."""
        # Unlock explicitly. The Java process holds a duplicate, so that a job with a killed Python side keeps the
        # checkpoint until its Java side is gone too.
        if self._lock is not None:
            fcntl.flock(self._lock, fcntl.LOCK_UN)
            os.close(self._lock)

    def __enter__(self) -> Checkpoint:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def stored_settings(directory: Place) -> Settings | None:
    """Return the settings of the first start in this directory, if it has happened. Raise StreamError."""
    path = directory / _SETTINGS_FILE
    try:
        stored = json.loads(path.read_bytes())
        stored_format = int(stored.pop(_FORMAT))
    except FileNotFoundError:
        if directory.exists() and any(_SPARKS.fullmatch(path.name) for path in directory.glob("*")):
            raise StreamError(f"{path} is missing. Restore it, or {REBUILD}") from None
        return None
    except OSError as error:
        raise StreamError(f"{path} cannot be read: {error.strerror}") from error
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError, OverflowError) as error:
        raise StreamError(f"{path} is damaged. Restore it, or {REBUILD}") from error
    if stored_format > CHECKPOINT_FORMAT:
        raise StreamError(
            f"checkpoint {directory} has format {stored_format}, newer than this Kontrast's "
            f"{CHECKPOINT_FORMAT}. Upgrade Kontrast, or start with an empty --checkpoint directory"
        )
    return dict(stored)


def number(directory: Place, stored: Settings, name: str) -> int:
    """Return the number in these stored settings. Raise StreamError if it is missing."""
    chosen = stored.get(name)
    if not isinstance(chosen, int):
        raise damaged_settings(directory, f"it lacks {name}")
    return chosen


def damaged_settings(directory: Place, why: str) -> StreamError:
    """Return the error for settings that are incomplete or unreadable."""
    return StreamError(f"{directory / _SETTINGS_FILE} is damaged, {why}. Restore it, or {REBUILD}")


def require(directory: Place, stored: Settings, wanted: Settings) -> None:
    """Raise StreamError with both values if a stored setting differs from the wanted setting."""
    for name, value in wanted.items():
        if stored.get(name) != value:
            same = "Run the Kontrast that wrote it" if name == STATE_FORMAT else "Give that value again"
            raise StreamError(
                f"checkpoint {directory} was started with {name} {stored.get(name)}, not {value}. {same}, or {REBUILD}"
            )


def _create(directory: Place) -> None:
    own = {_LOCK_FILE, *(f"{name}{end}" for name in (_SETTINGS_FILE, EPOCH_FILE, STARTS_FILE) for end in ("", DRAFT))}
    try:
        if isinstance(directory, HadoopPath):
            directory.create_directory()
        else:
            make_private(directory)
            force(directory.parent)
        names = {path.name for path in directory.glob("*") if not _DRAFTS_OF_SPARK.fullmatch(path.name)}
    except OSError as error:
        raise StreamError(f"checkpoint {directory} cannot be used: {error.strerror}") from error
    # A checkpoint without settings is recognised by its lock or its epoch.
    is_known = not own.isdisjoint(names)
    foreign = {name for name in names - own if not is_known or not _SPARKS.fullmatch(name)}
    if _SETTINGS_FILE not in names and foreign:
        raise StreamError(
            f"{directory} is neither empty nor a checkpoint of Kontrast. Give another directory with --checkpoint"
        )


def _lock(path: Path, wait_seconds: float) -> int:
    try:
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    except OSError as error:
        raise StreamError(f"checkpoint {path.parent} cannot be written: {error.strerror}") from error
    deadline = time.monotonic() + wait_seconds
    while True:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            if time.monotonic() < deadline:
                time.sleep(0.1)
                continue
            # The first holder wrote its number, but another process may have inherited the lock and outlived it.
            written = os.pread(descriptor, 20, 0).decode("ascii", "replace").strip()
            owner = holders(descriptor) or f"process {written or 'unknown'}"
            os.close(descriptor)
            raise StreamError(
                f"checkpoint {path.parent} is in use by {owner}. "
                "End that one first, or give another directory with --checkpoint"
            ) from None
        with contextlib.suppress(OSError):  # on a full disk the holder stays unnamed
            os.ftruncate(descriptor, 0)
            os.pwrite(descriptor, b"%d\n" % os.getpid(), 0)
        return descriptor


SHUFFLE_PARTITIONS: Final = "shuffle partitions"
BEGINS_AGAIN: Final = "The job begins again at the newest complete read in the source"


def settings_of(config: StreamConfig) -> Settings:
    """Return the settings of a checkpoint that begins now."""
    return {
        STATE_FORMAT: STATE_VERSION,
        "chunk count": config.chunk_count,
        SHUFFLE_PARTITIONS: config.shuffle_partitions or 1,
        "source": _identity(config.source),
        "sink": _identity(config.sink),
    }


def why_begin_again(place: Place, config: StreamConfig, stored: Settings) -> str | None:
    """Return the reason for a rebuild, if there is one. Raise StreamError if other settings differ.

    The state cannot move to another number of shuffle partitions, and state of an older format cannot be read.
    """
    wanted, reason = {**settings_of(config)}, None
    partitions, version = stored.get(SHUFFLE_PARTITIONS), stored.get(STATE_FORMAT)
    if partitions != wanted.pop(SHUFFLE_PARTITIONS):
        reason = f"was started with {partitions} shuffle partitions, not {config.shuffle_partitions}"
    if isinstance(version, int) and version < STATE_VERSION:
        del wanted[STATE_FORMAT]
        reason = "has the state of an older Kontrast"
    require(place, stored, wanted)
    return reason


def check_stored(place: Place, config: StreamConfig) -> str:
    """Return whether the checkpoint can continue with these settings, without a change. Raise StreamError otherwise."""
    stored = stored_settings(place)
    if stored is None:
        return "a new one"
    reason = why_begin_again(place, config.with_shuffle_partitions(number(place, stored, SHUFFLE_PARTITIONS)), stored)
    return f"it {reason}. {BEGINS_AGAIN}" if reason else "the same as at its first start"


def _identity(address: Address) -> str:
    """Return the part of an address that is fixed under a checkpoint. Kafka's bootstrap servers may change."""
    if isinstance(address, JournalAddress):
        return f"journal:{address.directory.absolute()}"
    return f"kafka topic {address.topic}"
