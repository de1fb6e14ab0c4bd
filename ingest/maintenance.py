"""File of maintenance windows, which people and commands may write at once, and the windows in force."""

from __future__ import annotations

import fcntl
import hashlib
import json
import logging
import os
import re
import stat
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from datetime import datetime, timezone
from pathlib import Path
from typing import Annotated, Any, Final

import msgspec

from controller.contract.forwarder_status import MaintenanceWindow
from controller.contract.znodes import Brokers
from ingest.errors import IngestError
from transport.forwarding import Forwarding
from transport.toml_file import TomlError, parse_toml
from wording.sentences import counted

_LOG = logging.getLogger("kontrast.ingest.maintenance")

_HEADER: Final = """\
# Maintenance windows, read by `kontrast watch` at every heartbeat. `kontrast maintenance` rewrites this file. It
# keeps the windows that are not over, and no comments.
"""
_CONTROL: Final = re.compile(r"[\x00-\x1f\x7f]")
LONGEST_REASON: Final = 500  # characters
_MOST_BYTES: Final = 65_536  # of the file, because each heartbeat carries its windows
_LOCK_SECONDS: Final = 5.0  # another `kontrast maintenance` holds the lock for milliseconds
_LOCK_LOOK_SECONDS: Final = 0.05


class AnnouncedWindow(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One [[window]] of the file. Without `brokers` it covers the cluster. `until` has an offset from UTC."""

    cluster: str
    until: datetime
    brokers: Brokers = ()
    reason: Annotated[str, msgspec.Meta(max_length=LONGEST_REASON)] = ""
    id: str = ""

    @property
    def until_ms(self) -> int:
        """Return the end of the window, in milliseconds since 1970."""
        return int(self.until.timestamp() * 1000)

    @property
    def name(self) -> str:
        """Return the name that ends the window, its id or a name made from its other fields."""
        said = f"{self.cluster} {self.until_ms} {self.brokers} {self.reason}"
        return self.id or hashlib.sha256(said.encode()).hexdigest()[:8]


class _Document(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    window: tuple[AnnouncedWindow, ...] = ()


def read_windows(path: Path) -> tuple[AnnouncedWindow, ...]:
    """Return the windows of a file, including ended ones. A missing file has no windows.

    Raise IngestError for other content.
    """
    try:
        if not stat.S_ISREG(path.stat().st_mode):
            raise IngestError(f"{path}: cannot read the maintenance windows, because it is not a regular file")
        with path.open("rb") as file:
            content = file.read(_MOST_BYTES + 1)
    except FileNotFoundError:
        return ()
    except OSError as error:
        raise IngestError(f"{path}: cannot read the maintenance windows: {error.strerror}") from error
    return _windows_in(content, path)


def _windows_in(content: bytes, path: Path) -> tuple[AnnouncedWindow, ...]:
    try:
        windows = msgspec.convert(parse_toml(content, _MOST_BYTES), _Document).window
    except TomlError as error:
        raise IngestError(f"{path}: {error}") from error
    except msgspec.ValidationError as error:
        raise IngestError(f"{path}: no maintenance windows: {error}") from error
    for window in windows:
        if window.until.tzinfo is None:
            raise IngestError(
                f"{path}: until = {window.until.isoformat()} has no offset from UTC. Write it like "
                f"{window.until.isoformat()}Z"
            )
        try:
            window.until.astimezone(timezone.utc)
        except OverflowError as error:
            raise IngestError(
                f"{path}: until = {window.until.isoformat()} is not within the years 1 to 9999 in UTC. Write an "
                "earlier time, like 9999-12-31T00:00:00Z"
            ) from error
    return windows


@contextmanager
def changing_windows(path: Path) -> Iterator[Callable[[Sequence[AnnouncedWindow]], None]]:
    """Lock the file against other processes. The yielded function replaces the windows at once.

    A link stays a link, and its target is replaced. Raise IngestError if the file or its folder is not writable, if
    another process keeps the lock, or if the windows would make an unreadable file.
    """
    file = Path(os.path.realpath(path))
    try:
        with Path(f"{file}.lock").open("a") as lock:
            _acquire(lock.fileno(), Path(lock.name))
            yield lambda windows: _replace(file, windows)
    except OSError as error:
        raise IngestError(f"{path}: cannot write the maintenance windows: {error.strerror or error}") from error


def _acquire(descriptor: int, lock_file: Path) -> None:
    give_up_at = time.monotonic() + _LOCK_SECONDS
    while True:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            if time.monotonic() >= give_up_at:
                raise IngestError(
                    f"another process has held the lock {lock_file} for {_LOCK_SECONDS:.0f} s, and no window was "
                    f"changed. Find it with `fuser {lock_file}`, end it, and try again"
                ) from error
            time.sleep(_LOCK_LOOK_SECONDS)
        else:
            return


def _replace(path: Path, windows: Sequence[AnnouncedWindow]) -> None:
    content = (_HEADER + "".join(map(_table, windows))).encode()
    _windows_in(content, path)
    mode = path.stat().st_mode & 0o777 if path.exists() else 0o644
    handle, written = tempfile.mkstemp(dir=path.parent, prefix=f"{path.name}.")
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        os.chmod(written, mode)
        os.replace(written, path)
    except BaseException:
        os.unlink(written)
        raise


def _table(window: AnnouncedWindow) -> str:
    until = window.until.astimezone(timezone.utc).replace(microsecond=0).isoformat().replace("+00:00", "Z")
    lines = [f"id = {_text(window.name)}", f"cluster = {_text(window.cluster)}", f"until = {until}"]
    if window.brokers:
        lines.append(f"brokers = [{', '.join(map(str, window.brokers))}]")
    if window.reason:
        lines.append(f"reason = {_text(window.reason)}")
    return "\n[[window]]\n" + "\n".join(lines) + "\n"


def _text(value: str) -> str:
    # A JSON text without control characters is a basic string of TOML.
    return json.dumps(_CONTROL.sub(" ", value), ensure_ascii=False)


class MaintenanceFile:
    """Windows of one cluster, for its forwarder at every heartbeat.

    An unreadable file is logged once and counted. The last windows stay in force until they end.
    """

    def __init__(self, path: Path | None, forwarding: Forwarding) -> None:
        self._path = path
        self._forwarding = forwarding
        self._seen: object = None
        self._windows: tuple[AnnouncedWindow, ...] = ()

    def in_force(self, now_ms: int) -> tuple[MaintenanceWindow, ...]:
        """Return the cluster's windows that have not ended at this time."""
        if self._path is not None:
            self._look(self._path)
        windows = tuple(
            MaintenanceWindow(brokers=window.brokers, until_ms=window.until_ms, reason=window.reason)
            for window in self._windows
            if window.cluster == self._forwarding.cluster and window.until_ms > now_ms
        )
        self._forwarding.maintenance_windows = len(windows)
        return windows

    def _look(self, path: Path) -> None:
        now = _version(path)
        if now == self._seen:
            return
        self._seen = now
        try:
            self._windows = read_windows(path)
        except IngestError as error:
            self._forwarding.bad_maintenance_files += 1
            _LOG.warning("%s: %s. The windows that were read before stay", self._forwarding.cluster, error)
            return
        _LOG.info(
            "%s: read %s from %s", self._forwarding.cluster, counted(len(self._windows), "maintenance window"), path
        )


def _version(path: Path) -> Any:  # noqa: ANN401 (only compared)
    try:
        status = path.stat()
    except FileNotFoundError:
        return None
    except OSError as error:
        return error.errno
    return (status.st_mtime_ns, status.st_size, status.st_ino, status.st_mode)
