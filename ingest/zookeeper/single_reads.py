"""Watch and read servers before 3.6, which know neither persistent watches nor MultiRead.

A one-shot watch is set by a read and ends with its first event, so what an event names is read again with a watch, and
children are found by listing their parents. A znode that came and went between two lists leaves no trace here.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from kazoo.exceptions import NoAuthError, NoNodeError
from kazoo.protocol.serialization import Exists, GetChildren, GetData

from ingest.observed.observations import EventKind, ZnodeEvent
from ingest.observed.paths import PARENTS, SINGLE_ZNODES, TOPICS, is_listed, partitions_path, recorded_child
from ingest.zookeeper.reading import Answers, Promise, Session, WatchMode
from ingest.zookeeper.requests import MomentRequest, SingleRead

_REQUESTS_IN_FLIGHT = 1_000
_ALWAYS_AWAITED = frozenset((*SINGLE_ZNODES, *PARENTS))
_PARENTS = frozenset(PARENTS)


class SingleReads:
    """Reads one path a request, many under way at once; with `watch` each leaves a one-shot watch behind.

    One belongs to one connection: its watches end with it.
    """

    mode = WatchMode.ONE_SHOT

    def __init__(self, session: Session, *, watch: bool) -> None:
        self._session = session
        self._watch = watch
        self._children: dict[str, set[str]] = {}  # by listed znode
        # The states and lists of partitions that are to come. Kafka deletes neither alone: what was seen needs no watch
        # on its absence, which a server keeps for as long as the connection lasts.
        self._awaited: set[str] = set()

    def values(self, paths: Sequence[str], show: Callable[[int], None]) -> Answers:
        """The values of the paths; `show` is called with how many were read so far."""
        promise = self._session.call(MomentRequest(self._session.moment))
        results = self._read_and_watch(GetData.type, paths, show)
        for path, result in results.items():
            if result is None:
                self._forget(path)
        moment = self._session.wait(promise)
        assert isinstance(moment, tuple), moment
        return Answers(results, _has_failures(results), *moment)

    def children(self, paths: Sequence[str]) -> Answers:
        """The names of the children of the paths."""
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
        """The events, with children that came or went in place of their parent's event."""
        for event in events:
            if event.kind is EventKind.DELETED:
                self._forget(event.path)
        listed: dict[str, list[ZnodeEvent]] = {event.path: [] for event in events if is_listed(event.path)}
        # Topics first: whose topic is gone needs no watch on what is missing of it.
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
        events = [ZnodeEvent(EventKind.DELETED, recorded_child(path, child)) for child in sorted(known - now)]
        for event in events:
            self._forget(event.path)
        # A partition may have no state yet: what is sure is that it is to be read.
        came = EventKind.CREATED if path in _PARENTS else EventKind.CHANGED
        for child in sorted(now - known):
            events.append(ZnodeEvent(came, recorded_child(path, child)))
            if path == TOPICS:
                events += self._list(partitions_path(child))
        return events

    def _forget(self, path: str) -> None:
        """Take a znode as new when it is listed again."""
        parent, _, child = path.rpartition("/")
        self._children.get(parent, set()).discard(child)
        if parent == TOPICS:
            partitions = partitions_path(child)
            states = {recorded_child(partitions, partition) for partition in self._children.pop(partitions, ())}
            self._awaited -= {partitions, *states}

    def _read_and_watch(self, operation: int, paths: Sequence[str], show: Callable[[int], None]) -> dict[str, Any]:
        """The results by path; what is missing and awaited is watched too, and read if it came meanwhile."""
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
