"""Reads of many znodes per request, with ZooKeeper 3.6 and newer, and the choice of paths per request."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

from kazoo.protocol.serialization import GetChildren, GetData

from controller.contract.ids import UNKNOWN_ZXID
from ingest.observed.observations import ZnodeEvent
from ingest.zookeeper.reading import Answers, Promise, Session, WatchMode
from ingest.zookeeper.requests import Answer, MultiRead

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
