"""Two ways to read ZooKeeper and watch it, with one interface: many znodes per request, and one by one.

Servers before 3.6 have neither persistent watches nor MultiRead. There a read sets a one-shot watch, which ends with
its first event. Each event therefore causes another read with a watch, and lists of parents find children. A znode that
came and went between two lists leaves no trace.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Any, Protocol

from kazoo.exceptions import NoAuthError, NoNodeError
from kazoo.protocol.serialization import Exists, GetChildren, GetData

from controller.contract.ids import UNKNOWN_ZXID, Zxid
from ingest.observed.observations import Value, ZnodeEvent, ZnodeEventKind
from ingest.observed.paths import PARENTS, SINGLE_ZNODES, TOPICS, is_listed, partitions_path, recorded_child
from ingest.zookeeper.requests import Answer, MomentRequest, MultiRead, SingleRead


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


_MAX_REQUEST_BYTES = 512 * 1024  # a server refuses requests over jute.maxbuffer, 1 MB by default
_REPLY_BYTES = 768 * 1024  # no server refuses a longer reply, but it must hold the reply in memory
_FIRST_GUESS_BYTES_A_PATH = 8 * 1024
_REQUESTS_IN_FLIGHT = 4


class MultiReads:
    """Reads with MultiRead, a few at a time.

    A request reads at most `paths_a_request` znodes, fewer if the last reply was long.
    """

    mode = WatchMode.PERSISTENT

    def __init__(self, session: Session, paths_a_request: int) -> None:
        self._session = session
        self._paths_a_request = paths_a_request
        self._bytes_a_path = float(_FIRST_GUESS_BYTES_A_PATH)

    def values(self, paths: Sequence[str], show: Callable[[int], None]) -> Answers:
        """Return the values of the paths. `show` receives the number of reads so far."""
        return self._read(GetData.type, paths, show)

    def children(self, paths: Sequence[str]) -> Answers:
        """Return the names of the children of the paths."""
        return self._read(GetChildren.type, paths, lambda _: None)

    def name(self, events: list[ZnodeEvent]) -> list[ZnodeEvent]:
        """Return the events as they are, because persistent watches name every znode."""
        return events

    def _read(self, operation: int, paths: Sequence[str], show: Callable[[int], None]) -> Answers:
        results: dict[str, Any] = {}
        has_failures = False
        position, zxid = -1, UNKNOWN_ZXID
        self._bytes_a_path = _FIRST_GUESS_BYTES_A_PATH
        for chunk, answer in self._answers(operation, paths):
            if position < 0:
                position, zxid = answer.position, answer.zxid
            results.update(zip(chunk, answer.results, strict=True))
            has_failures = has_failures or answer.has_failures
            self._bytes_a_path = answer.size_bytes / len(chunk)
            show(len(results))
        return Answers(results, has_failures, position, zxid)

    def _answers(self, operation: int, paths: Sequence[str]) -> Iterator[tuple[list[str], Answer]]:
        waiting: list[tuple[list[str], Promise]] = []
        for chunk, absolute in self._chunks(paths):
            self._session.pace(len(chunk))
            waiting.append((chunk, self._session.call(MultiRead(operation, absolute, self._session.moment))))
            if len(waiting) >= _REQUESTS_IN_FLIGHT:
                yield self._answered(*waiting.pop(0))
        for chunk, promise in waiting:
            yield self._answered(chunk, promise)

    def _answered(self, chunk: list[str], promise: Promise) -> tuple[list[str], Answer]:
        answer = self._session.wait(promise)
        assert isinstance(answer, Answer), answer
        return chunk, answer

    def _chunks(self, paths: Sequence[str]) -> Iterator[tuple[list[str], list[bytes]]]:
        """Yield for each request its paths, and the paths in bytes."""
        chunk: list[str] = []
        written: list[bytes] = []
        size = 0
        most = min(self._paths_a_request, _REPLY_BYTES / self._bytes_a_path)
        for path in paths:
            absolute = self._session.absolute(path).encode()
            needed = len(absolute) + MultiRead.BYTES_A_PATH
            if chunk and (len(chunk) >= most or size + needed > _MAX_REQUEST_BYTES):
                yield chunk, written
                chunk, written, size = [], [], 0
                most = min(self._paths_a_request, _REPLY_BYTES / self._bytes_a_path)
            chunk.append(path)
            written.append(absolute)
            size += needed
        if chunk:
            yield chunk, written


_SINGLE_READS_IN_FLIGHT = 1_000
_ALWAYS_AWAITED = frozenset((*SINGLE_ZNODES, *PARENTS))
_PARENTS = frozenset(PARENTS)


class SingleReads:
    """Reads of one path per request, many at a time. With `watch` each leaves a one-shot watch.

    An object belongs to one connection, because its watches end with the connection.
    """

    mode = WatchMode.ONE_SHOT

    def __init__(self, session: Session, *, watch: bool) -> None:
        self._session = session
        self._watch = watch
        self._children: dict[str, set[str]] = {}  # by listed znode
        # The states and lists of partitions that will appear. Seen paths need no watch on their absence, because Kafka
        # never deletes them alone, and a server would keep such a watch for the connection's life.
        self._awaited: set[str] = set()

    def values(self, paths: Sequence[str], show: Callable[[int], None]) -> Answers:
        """Return the values of the paths. `show` receives the number of reads so far."""
        promise = self._session.call(MomentRequest(self._session.moment))
        results = self._read_and_watch(GetData.type, paths, show)
        for path, result in results.items():
            if result is None:
                self._forget(path)
        moment = self._session.wait(promise)
        assert isinstance(moment, tuple), moment
        return Answers(results, _has_failures(results), *moment)

    def children(self, paths: Sequence[str]) -> Answers:
        """Return the names of the children of the paths."""
        results = self._read_and_watch(GetChildren.type, paths, lambda _: None)
        for path, found in results.items():
            now = set(found) if isinstance(found, list) else set()
            new = now - self._children.get(path, set())
            self._children[path] = now
            if path == TOPICS:
                self._awaited.update(map(partitions_path, new))
            elif path not in _PARENTS:
                self._awaited.update(recorded_child(path, child) for child in new)
        return Answers(results, _has_failures(results))

    def name(self, events: list[ZnodeEvent]) -> list[ZnodeEvent]:
        """Return the events, with an event for each child that came or went in place of the parent's event."""
        for event in events:
            if event.kind is ZnodeEventKind.DELETED:
                self._forget(event.path)
        listed: dict[str, list[ZnodeEvent]] = {event.path: [] for event in events if is_listed(event.path)}
        # Topics come first, because the partitions of a deleted topic need no watches.
        for path in sorted(listed, key=lambda path: path != TOPICS):
            listed[path] = self._list(path)
        named: list[ZnodeEvent] = []
        for event in events:
            named += listed.pop(event.path, []) if is_listed(event.path) else [event]
        return named

    def _list(self, path: str) -> list[ZnodeEvent]:
        known = self._children.get(path, set())
        self.children([path])
        now = self._children[path]
        events = [ZnodeEvent(ZnodeEventKind.DELETED, recorded_child(path, child)) for child in sorted(known - now)]
        for event in events:
            self._forget(event.path)
        # A partition may have no state yet, but it must be read.
        came = ZnodeEventKind.CREATED if path in _PARENTS else ZnodeEventKind.CHANGED
        for child in sorted(now - known):
            events.append(ZnodeEvent(came, recorded_child(path, child)))
            if path == TOPICS:
                events += self._list(partitions_path(child))
        return events

    def _forget(self, path: str) -> None:
        """Forget a znode, so that it counts as new when it is listed again."""
        parent, _, child = path.rpartition("/")
        self._children.get(parent, set()).discard(child)
        if parent == TOPICS:
            partitions = partitions_path(child)
            states = {recorded_child(partitions, partition) for partition in self._children.pop(partitions, ())}
            self._awaited -= {partitions, *states}

    def _read_and_watch(self, operation: int, paths: Sequence[str], show: Callable[[int], None]) -> dict[str, Any]:
        """Return the results by path. Watch missing awaited paths, and read paths that have appeared meanwhile."""
        results: dict[str, Any] = {}
        for path, result in self._read(operation, paths):
            results[path] = result
            show(len(results))
        missing = [path for path in paths if results[path] is None] if self._watch else []
        while awaited := [path for path in missing if path in self._awaited or path in _ALWAYS_AWAITED]:
            missing = [path for path, exists in self._read(Exists.type, awaited) if exists]
            results.update(self._read(operation, missing))
            missing = [path for path in missing if results[path] is None]
        self._awaited.difference_update(path for path, result in results.items() if result is not None)
        return results

    def _read(self, operation: int, paths: Sequence[str]) -> Iterator[tuple[str, Any]]:
        waiting: deque[tuple[str, Promise]] = deque()
        for path in paths:
            self._session.pace(1)
            request = SingleRead(operation, self._session.absolute(path).encode(), watch=self._watch)
            waiting.append((path, self._session.call(request)))
            if len(waiting) >= _SINGLE_READS_IN_FLIGHT:
                yield self._answered(*waiting.popleft())
        while waiting:
            yield self._answered(*waiting.popleft())

    def _answered(self, path: str, promise: Promise) -> tuple[str, Any]:
        try:
            return path, self._session.wait(promise)
        except NoNodeError:
            return path, None
        except NoAuthError as error:
            return path, error


def _has_failures(results: dict[str, Any]) -> bool:
    return any(isinstance(result, Exception) for result in results.values())
