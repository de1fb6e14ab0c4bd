"""The interface of the two ways to read ZooKeeper (`multi_reads`, `single_reads`), their answers and errors."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Any, Protocol

from controller.contract.ids import UNKNOWN_ZXID, Zxid
from ingest.observed.observations import Value, ZnodeEvent


class ConnectionLostError(Exception):
    """The connection was lost, or the forwarder asked to stop, before an answer came."""


class WatchMode(Enum):
    """The kind of watches that a server has, as session and heartbeat records name it."""

    PERSISTENT = "persistent"
    ONE_SHOT = "one-shot"  # servers before 3.6


@dataclass(frozen=True, slots=True)
class Reading:
    """Values of one moment, which is that of the first request if several were needed.

    Every earlier event has a position up to `position`, every later event a higher position. `zxid` is the server's
    newest change at that moment.
    """

    values: dict[str, Value | None]
    position: int
    zxid: Zxid


@dataclass(frozen=True, slots=True)
class Answers:
    """The answer for each path, a result, None (no node) or an exception, and the moment of a `Reading`."""

    results: dict[str, Any]
    has_failures: bool  # whether a result is an exception
    position: int = -1
    zxid: Zxid = UNKNOWN_ZXID


class Promise(Protocol):
    """kazoo's promise of an answer."""

    def get(self, *, timeout: float) -> object:
        """Return the answer. Raise its error, or the handler's exception after the timeout."""


class Session(Protocol):
    """A session, which sends requests and waits for their answers."""

    def call(self, request: object) -> Promise:
        """Return a promise of the answer. Raise ConnectionLostError."""

    def wait(self, promise: Promise) -> object:
        """Return the answer. Raise ConnectionLostError or kazoo's error."""

    def pace(self, count: int) -> None:
        """Return when this number of znodes may be read. Raise ConnectionLostError."""

    def absolute(self, path: str) -> str:
        """Return the path with the chroot."""

    def moment(self) -> tuple[int, Zxid]:
        """Return the number of events so far and the newest zxid, on the connection's thread."""


class Reads(Protocol):
    """One way to read."""

    mode: WatchMode

    def values(self, paths: Sequence[str], show: Callable[[int], None]) -> Answers:
        """Return the values of the paths. `show` receives the number of reads so far."""

    def children(self, paths: Sequence[str]) -> Answers:
        """Return the names of the children of the paths."""

    def name(self, events: list[ZnodeEvent]) -> list[ZnodeEvent]:
        """Return the events, with an event for each child that came or went in place of the parent's event."""
