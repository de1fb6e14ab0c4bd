"""The session on the watched ensemble: persistent recursive watches and reads of many znodes in one request.

The one place that knows kazoo's insides: version 2.11 has neither AddWatch nor MultiRead (`zookeeper_requests`), drops
the zxid that ZooKeeper 3.9 sends with an event, and hands an event only to the watchers of its very path. Every request
that is ever sent is sent from here, and each of them only reads. What to watch and read is not decided here.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from kazoo.client import KazooClient
from kazoo.exceptions import (
    AuthFailedError,
    ConnectionClosedError,
    ConnectionLoss,
    NoAuthError,
    SessionClosedRequireSaslError,
    SessionExpiredError,
    UnimplementedError,
)
from kazoo.protocol.connection import ConnectionHandler
from kazoo.protocol.serialization import GetChildren, GetData, ReplyHeader, Sync, Watch
from kazoo.protocol.states import KazooState
from kazoo.retry import KazooRetry

from ingest.config import ZooKeeperConfig
from ingest.errors import IngestError
from ingest.inbox import Inbox, SessionState
from ingest.observations import UNKNOWN_ZXID, EventKind, Value, ZnodeEvent
from ingest.paths import is_recorded
from ingest.zookeeper_requests import AddWatch, Answer, MultiRead

_LOG = logging.getLogger("kontrast.ingest.zookeeper")
_KAZOO_LOG = logging.getLogger("kontrast.ingest.kazoo")

_MAX_REQUEST_BYTES = 512 * 1024  # a server refuses requests over jute.maxbuffer, 1 MB by default
_REQUESTS_IN_FLIGHT = 4
_CLOSE_SECONDS = 1.5
_EVENT_KINDS = {kind.value: kind for kind in EventKind}
_SESSION_STATES = {
    KazooState.CONNECTED: SessionState.CONNECTED,
    KazooState.SUSPENDED: SessionState.SUSPENDED,
    KazooState.LOST: SessionState.LOST,
}


class ConnectionLostError(Exception):
    """The connection was lost, or the forwarder asked to stop, before an answer came."""


@dataclass(frozen=True, slots=True)
class Reading:
    """Values read at one moment (the first of them, where several requests were needed).

    Every event that happened before that moment has a position up to `position`, every later one a higher; `zxid` is
    the newest change that the server had made by then.
    """

    values: dict[str, Value | None]
    position: int
    zxid: int


class _AsyncResult(Protocol):
    """kazoo's promise of an answer."""

    def get(self, *, timeout: float) -> object:
        """The answer; raises what went wrong, or the handler's own exception when the time is over."""


class _Connection(ConnectionHandler):
    """kazoo's connection, which gives every event away with its zxid instead of looking for its watchers."""

    def __init__(self, client: _Client, retry: KazooRetry, login: dict[str, str] | None) -> None:
        super().__init__(client, retry, logger=_KAZOO_LOG, sasl_options=login)
        self.newest_zxid = 0
        self.login_failed = False  # or is under way
        self._header_zxid = 0

    def _authenticate_with_sasl(self, host: str, timeout: float) -> None:
        self.login_failed = True
        try:
            super()._authenticate_with_sasl(host, timeout)
        except SessionClosedRequireSaslError as error:  # which kazoo does not take for a refused login
            raise AuthFailedError("the server demands a login and refused this one") from error
        self.login_failed = False

    def _read_header(self, timeout: float) -> tuple[ReplyHeader, bytes, int]:
        header, buffer, offset = super()._read_header(timeout)
        self._header_zxid = header.zxid
        self.newest_zxid = max(self.newest_zxid, header.zxid)
        return header, buffer, offset

    def _read_watch_event(self, buffer: bytes, offset: int) -> None:
        watch, _ = Watch.deserialize(buffer, offset)
        kind = _EVENT_KINDS.get(watch.type)
        path = watch.path[len(self.client.chroot) :]
        if kind is not None and is_recorded(path):
            zxid = self._header_zxid if self._header_zxid > 0 else UNKNOWN_ZXID
            self.client.inbox.put_event(ZnodeEvent(kind, path, zxid))


def _login(config: ZooKeeperConfig) -> dict[str, str] | None:
    if config.zookeeper_username is None:
        return None
    return {"mechanism": "DIGEST-MD5", "username": config.zookeeper_username, "password": config.password}


class _Client(KazooClient):
    """A kazoo client over `_Connection`."""

    def __init__(self, config: ZooKeeperConfig, inbox: Inbox) -> None:
        super().__init__(
            hosts=config.servers + config.chroot,
            timeout=config.session_timeout_seconds,
            connection_retry={"max_tries": -1, "delay": 0.1, "max_delay": 3.0},
            logger=_KAZOO_LOG,
            use_ssl=config.zookeeper_tls,
            check_hostname=config.zookeeper_tls,
            ca=config.zookeeper_ca_file,
            certfile=config.zookeeper_certificate_file,
            keyfile=config.zookeeper_key_file,
        )
        self.inbox = inbox
        self._connection = _Connection(self, self._conn_retry.copy(), _login(config))


class WatchedZooKeeper:
    """A session that watches and reads, and does nothing else; its methods are for one thread.

    Events and session states go to the inbox. Every connection loses its watches: they are to be added again.
    """

    def __init__(self, config: ZooKeeperConfig, inbox: Inbox, stop: threading.Event) -> None:
        self._config = config
        self._chroot = config.chroot
        self._inbox = inbox
        self._stop = stop
        self._client = _Client(config, inbox)
        self._connections = 0
        self._next_read_at = 0.0
        self._forbidden: set[str] = set()
        self._was_answered = False

    def start(self) -> None:
        """Connect in the background, again and again until it works."""
        self._client.add_listener(self._on_state)
        self._client.start_async()

    def restart_if_dead(self) -> None:
        """Begin anew after a failure that kazoo does not recover from by itself; raises IngestError."""
        self.check_login()
        if not self._client._connection._connection_routine.is_alive():
            _LOG.error("the ZooKeeper client for %s ended by itself, starting a new one", self._config.zookeeper)
            self._close()
            self._client = _Client(self._config, self._inbox)
            self.start()

    def check_login(self) -> None:
        """Raise IngestError if ZooKeeper has never let this session in.

        A server that goes away while a login is under way looks the same: after a first answer it is only tried again.
        """
        connection = self._client._connection
        ended = not connection._connection_routine.is_alive()
        if connection.login_failed and ended and not self._was_answered:
            raise self._no_login()

    def _no_login(self) -> IngestError:
        name, address = self._config.zookeeper_username, self._config.servers
        if name is None:
            wrong, mend = "demands a login", "give zookeeper_username and zookeeper_password_file"
        else:
            wrong, mend = f"refuses the login as {name!r}", "check zookeeper_username and zookeeper_password_file"
        return IngestError(f"ZooKeeper at {address} {wrong}: {mend}")

    def close(self) -> None:
        """Close the session; a server that does not answer is not waited for."""
        closing = threading.Thread(target=self._close, name="close ZooKeeper session", daemon=True)
        closing.start()
        closing.join(_CLOSE_SECONDS)

    @property
    def connections(self) -> int:
        """How many connections were made: work that spans two of them has missed events."""
        return self._connections

    @property
    def session_id(self) -> int:
        """The session's number, 0 without one."""
        identity = self._client.client_id
        return 0 if identity is None else identity[0] or 0

    def add_watches(self, paths: Sequence[str]) -> None:
        """Watch each path with all below it; raises ConnectionLostError, IngestError for a server before 3.6."""
        calls = [self._call(AddWatch(self._absolute(path))) for path in paths]
        try:
            for call in calls:
                self._wait(call)
        except UnimplementedError:
            raise IngestError(
                f"ZooKeeper at {self._config.servers} does not know persistent watches: "
                "ZooKeeper 3.6 or newer is needed, upgrade the ensemble"
            ) from None

    def catch_up(self) -> None:
        """Let the server see all that the ensemble has agreed on; the one that a new session met may lag."""
        self._wait(self._call(Sync(self._absolute(""))))

    def read_values(self, paths: Sequence[str], show: Callable[[int], None] | None = None) -> Reading:
        """The values of the paths (None: not there; missing: may not be read); raises ConnectionLostError.

        `show` is told how many were read so far.
        """
        values: dict[str, Value | None] = {}
        position, zxid, count = -1, 0, 0
        for chunk, answer in self._read(GetData, paths):
            if position < 0:
                position, zxid = answer.position, answer.zxid
            values.update(self._readable(chunk, answer))
            count += len(chunk)
            if show is not None:
                show(count)
        return Reading(values, position, zxid)

    def read_children(self, paths: Sequence[str]) -> dict[str, list[str]]:
        """The children of the paths, none for one that is not there; raises ConnectionLostError."""
        children: dict[str, list[str]] = {}
        for chunk, answer in self._read(GetChildren, paths):
            children.update((path, found or []) for path, found in self._readable(chunk, answer))
        return children

    def _read(self, operation: type[GetData | GetChildren], paths: Sequence[str]) -> Iterator[tuple[list[str], Answer]]:
        waiting: list[tuple[list[str], _AsyncResult]] = []
        for chunk, absolute in self._chunks(paths):
            self._pace(len(chunk))
            waiting.append((chunk, self._call(MultiRead(operation.type, absolute, self._moment))))
            if len(waiting) >= _REQUESTS_IN_FLIGHT:
                first, call = waiting.pop(0)
                yield first, self._wait_for_answer(call)
        for chunk, call in waiting:
            yield chunk, self._wait_for_answer(call)

    def _readable(self, paths: Sequence[str], answer: Answer) -> Iterable[tuple[str, Any]]:
        """What may be read; of the rest each path is reported once, until it may be read again."""
        if answer.has_failures or self._forbidden:
            return self._without_forbidden(paths, answer)
        return zip(paths, answer.results, strict=True)

    def _without_forbidden(self, paths: Sequence[str], answer: Answer) -> Iterator[tuple[str, Any]]:
        for path, result in zip(paths, answer.results, strict=True):
            if isinstance(result, ConnectionLoss):
                raise ConnectionLostError from result
            if not isinstance(result, NoAuthError):
                self._forbidden.discard(path)
                yield path, result
            elif path not in self._forbidden:
                self._forbidden.add(path)
                _LOG.warning("%s may not be read: its ACL does not let this session in, its changes go unseen", path)

    def _chunks(self, paths: Sequence[str]) -> Iterator[tuple[list[str], list[bytes]]]:
        """The paths of a request each, and how they are written in it."""
        chunk: list[str] = []
        written: list[bytes] = []
        size = 0
        for path in paths:
            absolute = self._absolute(path).encode()
            needed = len(absolute) + MultiRead.BYTES_A_PATH
            if chunk and (len(chunk) >= self._config.multi_read_paths or size + needed > _MAX_REQUEST_BYTES):
                yield chunk, written
                chunk, written, size = [], [], 0
            chunk.append(path)
            written.append(absolute)
            size += needed
        if chunk:
            yield chunk, written

    def _pace(self, count: int) -> None:
        if self._config.read_budget_znodes_per_second is None:
            return
        now = time.monotonic()
        if self._stop.wait(max(0.0, self._next_read_at - now)):
            raise ConnectionLostError
        self._next_read_at = max(now, self._next_read_at) + count / self._config.read_budget_znodes_per_second

    def _call(self, request: object) -> _AsyncResult:
        if not self._client.connected:
            raise ConnectionLostError
        result: _AsyncResult = self._client.handler.async_result()
        self._client._call(request, result)
        return result

    def _wait(self, result: _AsyncResult) -> object:
        while not self._stop.is_set():
            try:
                answer = result.get(timeout=0.2)
            except self._client.handler.timeout_exception:
                continue
            except (ConnectionLoss, ConnectionClosedError, SessionExpiredError, AuthFailedError) as error:
                self.check_login()
                raise ConnectionLostError from error
            except SessionClosedRequireSaslError:
                raise self._no_login() from None
            self._was_answered = True
            return answer
        raise ConnectionLostError

    def _wait_for_answer(self, result: _AsyncResult) -> Answer:
        answer = self._wait(result)
        assert isinstance(answer, Answer), answer
        return answer

    def _moment(self) -> tuple[int, int]:
        return self._inbox.position, self._client._connection.newest_zxid

    def _absolute(self, path: str) -> str:
        return self._chroot + path or "/"

    def _on_state(self, state: str) -> None:
        if state == KazooState.CONNECTED:
            self._connections += 1
        self._inbox.put_state(_SESSION_STATES[state])

    def _close(self) -> None:
        self._client.remove_listener(self._on_state)
        self._client.stop()
        if self._client._connection.connection_stopped.is_set():
            self._client.close()
