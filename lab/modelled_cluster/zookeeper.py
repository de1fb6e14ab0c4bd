"""Model of a ZooKeeper, with znodes and their stats, sessions, and listeners for each change."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any


@dataclass(frozen=True)
class Znode:
    """Znode with its stat."""

    data: bytes | None
    czxid: int
    mzxid: int
    version: int
    owner: int
    ctime_ms: int

    @property
    def content(self) -> Any:  # noqa: ANN401 (any JSON)
        """Return the content as JSON, or None if it is invalid."""
        try:
            return json.loads(self.data or b"")
        except ValueError:
            return None


@dataclass(frozen=True)
class Change:
    """Change of one znode, or None if it was deleted."""

    path: str
    znode: Znode | None
    zxid: int
    author: int
    cxid: int


class ZooKeeper:
    """Znodes by path. Every write has its own zxid, except the writes of one transaction."""

    def __init__(self) -> None:
        self.znodes: dict[str, Znode] = {}
        self.zxid = 100
        self.now_ms = 1_000_000
        self.author = 0  # the session that writes at the moment
        self.listeners: list[Callable[[Change], None]] = []
        self._cxid = 1
        self._last_session = 0x1000
        self._in_transaction: list[Change] | None = None

    def new_session(self) -> int:
        """Open a session."""
        self._last_session += 1
        return self._last_session

    def get(self, path: str) -> Znode | None:
        """Return the znode at the path."""
        return self.znodes.get(path)

    def content(self, path: str) -> Any:  # noqa: ANN401 (any JSON)
        """Return the content at the path as JSON, or None without one."""
        znode = self.znodes.get(path)
        return None if znode is None else znode.content

    def children(self, parent: str) -> list[str]:
        """Return the names of the znodes right below the parent."""
        prefix = f"{parent}/"
        return sorted({path[len(prefix) :].split("/")[0] for path in self.znodes if path.startswith(prefix)})

    @contextmanager
    def written_by(self, session: int) -> Iterator[None]:
        """Name the session that writes in the body."""
        before, self.author = self.author, session
        yield
        self.author = before

    @contextmanager
    def transaction(self) -> Iterator[None]:
        """Give the writes in the body one zxid."""
        assert self._in_transaction is None
        self._in_transaction, self.zxid = [], self.zxid + 1
        yield
        changes, self._in_transaction = self._in_transaction, None
        for change in changes:
            self._tell(change)

    def create(self, path: str, content: object = None, *, owner: int = 0, version: int = 0) -> bool:
        """Create a znode, with a later version if its data was set at once. Return whether it was new."""
        if path in self.znodes:
            return False
        zxid = self._next_zxid()
        self._put(path, Znode(_encoded(content), zxid, zxid, version, owner, self.now_ms))
        return True

    def set(self, path: str, content: object) -> bool:
        """Write a znode's data. Return whether it existed."""
        before = self.znodes.get(path)
        if before is None:
            return False
        zxid = self._next_zxid()
        self._put(path, replace(before, data=_encoded(content), mzxid=zxid, version=before.version + 1))
        return True

    def write(self, path: str, content: object = None) -> None:
        """Create a znode, or write its data."""
        if not self.create(path, content):
            self.set(path, content)

    def delete(self, path: str, *, cxid: int | None = None) -> bool:
        """Delete a znode. Return whether it existed."""
        if self.znodes.pop(path, None) is None:
            return False
        self._note(Change(path, None, self._next_zxid(), self.author, self._next_cxid() if cxid is None else cxid))
        return True

    def end_session(self, session: int, *, closed: bool) -> None:
        """Delete the session's ephemeral znodes in one transaction."""
        ephemerals = sorted(path for path, znode in self.znodes.items() if znode.owner == session)
        with self.written_by(session), self.transaction():
            for path in sorted(ephemerals, key=lambda path: path != "/controller"):
                self.delete(path, cxid=None if closed else 0)

    def _put(self, path: str, znode: Znode) -> None:
        self.znodes[path] = znode
        self._note(Change(path, znode, znode.mzxid, self.author, self._next_cxid()))

    def _note(self, change: Change) -> None:
        if self._in_transaction is None:
            self._tell(change)
        else:
            self._in_transaction.append(change)

    def _tell(self, change: Change) -> None:
        for listener in self.listeners:
            listener(change)

    def _next_zxid(self) -> int:
        if self._in_transaction is None:
            self.zxid += 1
        return self.zxid

    def _next_cxid(self) -> int:
        self._cxid += 1
        return self._cxid


def _encoded(content: object) -> bytes | None:
    if content is None or isinstance(content, bytes):
        return content
    return json.dumps(content).encode()
