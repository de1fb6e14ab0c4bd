"""Watches and reads for servers before 3.6, without persistent watches and MultiRead.

A read sets a one-shot watch, which ends with its first event. Each event therefore causes another read with a watch,
and lists of parents find children. A znode that came and went between two lists leaves no trace here.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from kazoo.exceptions import NoAuthError, NoNodeError
from kazoo.protocol.serialization import Exists, GetChildren, GetData

from ingest.observed.observations import ZnodeEvent, ZnodeEventKind
from ingest.observed.paths import PARENTS, SINGLE_ZNODES, TOPICS, is_listed, partitions_path, recorded_child
from ingest.zookeeper.reading import Answers, Promise, Session, WatchMode
from ingest.zookeeper.requests import MomentRequest, SingleRead

_REQUESTS_IN_FLIGHT = 1_000
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
            if len(waiting) >= _REQUESTS_IN_FLIGHT:
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
