"""The interface of the two ways to read ZooKeeper (`multi_reads`, `single_reads`), their answers and errors."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Any, Protocol

from ingest.observed.observations import Value, ZnodeEvent


class ConnectionLostError(Exception):
    """The connection was lost, or the forwarder asked to stop, before an answer came."""


class WatchMode(Enum):
    """The kind of watches that a server has, as session and heartbeat records name it."""

    PERSISTENT = "persistent"
    ONE_SHOT = "one-shot"  # servers before 3.6


@dataclass(frozen=True, slots=True)
class Reading:
    """Values read at one moment (the first of them, where several requests were needed).

    Every event that happened before that moment has a position up to `position`, every later one a higher; `zxid` is
    the newest change that the server had made by then.
    """

    values: dict[str, Value | None]
    position: int
    zxid: int


@dataclass(frozen=True, slots=True)
class Answers:
    """The answer for each path: a result, None (no node) or an exception; the moment as a `Reading` has it."""

    results: dict[str, Any]
    has_failures: bool  # whether a result is an exception
    position: int = -1
    zxid: int = -1


class Promise(Protocol):
    """kazoo's promise of an answer."""

    def get(self, *, timeout: float) -> object:
        """The answer; raises what went wrong, or the handler's own exception when the time is over."""


class Session(Protocol):
    """A session, which sends requests and waits for their answers."""

    def call(self, request: object) -> Promise:
        """A promise of the answer; raises ConnectionLostError."""

    def wait(self, promise: Promise) -> object:
        """The answer; raises ConnectionLostError, and what kazoo makes of an error."""

    def pace(self, count: int) -> None:
        """Return when so many more znodes may be read; raises ConnectionLostError."""

    def absolute(self, path: str) -> str:
        """The path with the chroot."""

    def moment(self) -> tuple[int, int]:
        """The number of events that have come and the newest zxid; for the connection's thread."""


class Reads(Protocol):
    """One way to read."""

    mode: WatchMode

    def values(self, paths: Sequence[str], show: Callable[[int], None]) -> Answers:
        """The values of the paths; `show` is called with how many were read so far."""

    def children(self, paths: Sequence[str]) -> Answers:
        """The names of the children of the paths."""

    def name(self, events: list[ZnodeEvent]) -> list[ZnodeEvent]:
        """The events, with children that came or went in place of their parent's event."""
