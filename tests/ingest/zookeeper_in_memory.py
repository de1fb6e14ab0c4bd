"""A ZooKeeper server in this process, which needs neither Java nor a disk and starts within a millisecond.

It answers the requests of Kontrast and of kazoo over TCP as ZooKeeper 3.9 does. `test_zookeeper_in_memory` compares
both servers, answer by answer.
"""

from __future__ import annotations

import asyncio
import struct
import threading
import time
from collections.abc import Callable, Mapping
from io import BytesIO
from types import TracebackType

from kazoo.exceptions import NoNodeError, UnimplementedError, ZookeeperError
from kazoo.protocol import serialization as kazoo

from cli.embedded.process import free_port
from ingest.files.jute import Jute
from ingest.zookeeper.requests import AddWatch, MultiRead
from tests.ingest.znodes_in_memory import CHANGES, Event, EventKind, Znodes

_TICK_SECONDS = 0.5
_TIMEOUT_MS = (1_000, 60_000)
_HEADER = struct.Struct("!iqi")
_RESULT = struct.Struct("!i?i")
_CONNECTED = struct.Struct("!iiq")
_END_OF_RESULTS = _RESULT.pack(-1, True, -1)
_ROLLED_BACK, _NOT_REACHED = 0, -2
_OF_AN_EVENT, _SYNC_CONNECTED = -1, 3


class _Session:
    """A session, which outlives its connection by its timeout."""

    def __init__(self, number: int, timeout_ms: int) -> None:
        self.number = number
        self.timeout_ms = timeout_ms
        self.connection: _Connection | None = None
        self.heard()

    def heard(self) -> None:
        """Note that the client lives."""
        self.ends_at = time.monotonic() + self.timeout_ms / 1000


class ZooKeeperInMemory:
    """The server, with the methods of the real one that tests use. `with` starts and ends it."""

    def __init__(self) -> None:
        self.port = free_port()
        self.znodes = Znodes()
        self.sessions: dict[int, _Session] = {}
        self.connections: set[_Connection] = set()
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="ZooKeeper in memory", daemon=True)
        self._thread.start()
        self._resumed = threading.Event()
        self._listener: asyncio.Server | None = None
        self._expiry: asyncio.TimerHandle | None = None

    def __enter__(self) -> ZooKeeperInMemory:
        self.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._resumed.set()
        self.kill()
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()

    @property
    def connect_string(self) -> str:
        """Return HOST:PORT for clients."""
        return f"127.0.0.1:{self.port}"

    @property
    def zxid(self) -> int:
        """Return the number of the newest change or failed change."""
        return self.znodes.zxid

    def start(self) -> None:
        """Serve, with the znodes and sessions from before `kill`."""
        asyncio.run_coroutine_threadsafe(self._listen(), self._loop).result()

    def kill(self) -> None:
        """Cut all connections and accept no more."""
        asyncio.run_coroutine_threadsafe(self._cut(), self._loop).result()

    def pause(self) -> None:
        """Leave connections open without an answer."""
        self._resumed.clear()
        self._loop.call_soon_threadsafe(self._resumed.wait)

    def resume(self) -> None:
        """Go on after a pause."""
        self._resumed.set()

    def open_session(self, timeout_ms: int) -> _Session:
        """Return a new session, whose creation is a change of its own."""
        self.znodes.zxid += 1
        least, most = _TIMEOUT_MS
        session = _Session((1 << 56) + self.znodes.zxid, min(most, max(least, timeout_ms)))
        self.sessions[session.number] = session
        return session

    def end(self, session: _Session) -> None:
        """End the session with its ephemeral znodes."""
        del self.sessions[session.number]
        self.tell(self.znodes.without_ephemerals(session.number))

    def tell(self, events: list[Event]) -> None:
        """Send the events of one change to all connections that watch for them."""
        for connection in self.connections:
            for event in events:
                connection.watches.tell(event, connection.send)

    async def _listen(self) -> None:
        for session in self.sessions.values():
            session.heard()
        self._listener = await self._loop.create_server(lambda: _Connection(self), "127.0.0.1", self.port)
        self._expire()

    async def _cut(self) -> None:
        if self._listener is not None and self._expiry is not None:
            self._expiry.cancel()
            self._listener.close()
        for connection in [*self.connections]:
            connection.transport.abort()

    def _expire(self) -> None:
        for session in [each for each in self.sessions.values() if each.ends_at < time.monotonic()]:
            self.end(session)
            if session.connection is not None:
                session.connection.transport.close()
        self._expiry = self._loop.call_later(_TICK_SECONDS, self._expire)


class _Watches:
    """The watches of one connection."""

    def __init__(self) -> None:
        self.recursive: list[str] = []
        self.once: dict[str, set[str]] = {"data": set(), "children": set()}

    def tell(self, event: Event, send: Callable[..., None]) -> None:
        """Send an event if somebody watches for it, and end its one-shot watches."""
        waiting = {EventKind.CHILD: ("children",), EventKind.DELETED: ("data", "children")}.get(event.kind, ("data",))
        is_watched = event.kind is not EventKind.CHILD and any(
            event.path == path or event.path.startswith(path.rstrip("/") + "/") for path in self.recursive
        )
        for kind in waiting:
            is_watched |= event.path in self.once[kind]
            self.once[kind].discard(event.path)
        if is_watched and not event.is_hidden:
            kind_and_state = struct.pack("!ii", event.kind.value, _SYNC_CONNECTED)
            send(_HEADER.pack(_OF_AN_EVENT, event.zxid, 0), kind_and_state, kazoo.write_string(event.path))


class _Connection(asyncio.Protocol):
    """One connection, which answers its requests in their order."""

    transport: asyncio.Transport

    def __init__(self, server: ZooKeeperInMemory) -> None:
        self.watches = _Watches()
        self._server = server
        self._znodes = server.znodes
        self._session: _Session | None = None
        self._received = bytearray()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self.transport = transport
        self._server.connections.add(self)

    def connection_lost(self, _error: Exception | None) -> None:
        self._server.connections.discard(self)

    def data_received(self, data: bytes) -> None:
        self._received += data
        while len(self._received) >= (end := 4 + int.from_bytes(self._received[:4], "big")) > 4:
            packet = Jute(BytesIO(bytes(self._received[4:end])).read)
            del self._received[:end]
            if self._session is None:
                self._greet(packet)
            else:
                self._session.heard()
                self._answer(packet, self._session)

    def send(self, *parts: bytes) -> None:
        """Send a packet."""
        packet = b"".join(parts)
        self.transport.write(len(packet).to_bytes(4, "big") + packet)

    def _greet(self, packet: Jute) -> None:
        _, newest_zxid, timeout_ms, number = packet.integer(), packet.long(), packet.integer(), packet.long()
        if newest_zxid > self._server.zxid:  # the client has seen changes that this server lacks
            self.transport.close()
            return
        session = self._server.sessions.get(number) if number else self._server.open_session(timeout_ms)
        timeout_ms, number = (0, 0) if session is None else (session.timeout_ms, session.number)
        self.send(_CONNECTED.pack(0, timeout_ms, number), kazoo.write_buffer(bytes(16)), b"\0")
        if session is None:
            self.transport.close()
            return
        if session.connection is not None:
            session.connection.transport.close()
        session.connection, self._session = self, session
        session.heard()

    def _answer(self, packet: Jute, session: _Session) -> None:
        number, operation = packet.integer(), packet.integer()
        result, error = b"", 0
        try:
            if operation == kazoo.Close.type:
                self._server.end(session)
            elif operation == kazoo.Transaction.type:
                result = self._transaction(packet, session)
            elif operation in CHANGES:
                result = self._change(operation, packet, session)
            elif operation != kazoo.Ping.type:
                result = self._read(operation, packet)
        except ZookeeperError as refusal:
            error = refusal.code
        self.send(_HEADER.pack(number, self._server.zxid, error), result)
        if operation == kazoo.Close.type:
            self.transport.close()

    def _change(self, operation: int, packet: Jute, session: _Session) -> bytes:
        change = CHANGES[operation](packet, session.number)
        result, events = self._znodes.change([change])
        self._server.tell(events)
        return result[0]

    def _transaction(self, packet: Jute, session: _Session) -> bytes:
        operations, changes = [], []
        while not (header := packet.fields(_RESULT))[1]:
            operations.append(header[0])
            changes.append(CHANGES[header[0]](packet, session.number))
        try:
            results, events = self._znodes.change(changes)
        except ZookeeperError as refusal:
            at = self._znodes.failed_at
            codes = [_ROLLED_BACK] * at + [refusal.code] + [_NOT_REACHED] * (len(changes) - at - 1)
            return b"".join((*map(_failure, codes), _END_OF_RESULTS))
        self._server.tell(events)
        parts = [
            _RESULT.pack(operation, False, 0) + result for operation, result in zip(operations, results, strict=True)
        ]
        return b"".join((*parts, _END_OF_RESULTS))

    def _read(self, operation: int, packet: Jute) -> bytes:
        match operation:
            case MultiRead.type:
                return self._many_reads(packet)
            case AddWatch.type:
                path, _ = packet.text(), packet.integer()
                self.watches.recursive.append(path)
                return struct.pack("!i", 0)
            case kazoo.Sync.type:
                return bytes(kazoo.write_string(packet.text()))
            case kazoo.GetACL.type:
                return self._znodes.acl_and_stat(packet.text())
        if operation not in _READS:
            raise UnimplementedError
        path, is_watched = packet.text(), packet.boolean()
        return self._one_read(operation, path, is_watched=is_watched)

    def _one_read(self, operation: int, path: str, *, is_watched: bool) -> bytes:
        kind, read = _READS[operation]
        try:
            result = read(self._znodes, path)
        except NoNodeError:
            if is_watched and operation == kazoo.Exists.type:
                self.watches.once[kind].add(path)
            raise
        if is_watched:
            self.watches.once[kind].add(path)
        return result

    def _many_reads(self, packet: Jute) -> bytes:
        results = []
        while not (header := packet.fields(_RESULT))[1]:
            operation, path, _ = header[0], packet.text(), packet.boolean()
            try:
                result = self._one_read(operation, path, is_watched=False)
                results.append(_RESULT.pack(operation, False, 0) + result)
            except ZookeeperError as refusal:
                results.append(_failure(refusal.code))
        return b"".join((*results, _END_OF_RESULTS))


def _failure(code: int) -> bytes:
    return _RESULT.pack(-1, False, code) + struct.pack("!i", code)


# By operation, the kind of its one-shot watch, and the function that reads.
_READS: Mapping[int, tuple[str, Callable[[Znodes, str], bytes]]] = {
    kazoo.Exists.type: ("data", Znodes.stat),
    kazoo.GetData.type: ("data", Znodes.value),
    kazoo.GetChildren.type: ("children", Znodes.children),
    kazoo.GetChildren2.type: ("children", Znodes.children_and_stat),
}
