"""Session on the watched ensemble, with persistent recursive watches, and reads of many znodes in one request.

This is the only module that knows kazoo's internals. kazoo 2.11 lacks AddWatch and MultiRead (`requests`). kazoo drops
the zxid that ZooKeeper 3.9 sends with an event, and passes an event only to watchers of its exact path. Every request
to the watched ensemble starts here, and only reads. `SingleReads` serves servers that do not know these requests.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, cast

from kazoo.client import KazooClient
from kazoo.exceptions import (
    AuthFailedError,
    ConnectionClosedError,
    ConnectionDropped,
    ConnectionLoss,
    NoAuthError,
    NoNodeError,
    SessionClosedRequireSaslError,
    SessionExpiredError,
    UnimplementedError,
)
from kazoo.protocol.serialization import GetData, ReplyHeader, Sync, Watch
from kazoo.protocol.states import KazooState, KeeperState
from kazoo.retry import KazooRetry

from controller.contract.ids import UNKNOWN_ZXID, Zxid
from ingest.config import ZooKeeperConfig
from ingest.errors import IngestError
from ingest.observed.inbox import Inbox, SessionState
from ingest.observed.observations import ZnodeEvent, ZnodeEventKind
from ingest.observed.paths import is_listed, is_recorded
from ingest.zookeeper import reading
from ingest.zookeeper.reading import Answers, ConnectionLostError, Promise, Reading, WatchMode
from ingest.zookeeper.requests import AddWatch, MultiRead
from ingest.zookeeper.restorable import KAZOO_LOG, RestorableConnection, SharedThreadsHandler, login_of, tls_of
from transport.forwarding import Forwarding
from transport.printable import Complaints

_LOG = logging.getLogger("kontrast.ingest.zookeeper")

_CLOSE_SECONDS = 1.5
# The longest expected answer. The first request of a read has up to 96 znodes of at most 1 MB each (jute.maxbuffer).
# kazoo would accept any length that four bytes can express.
_LARGEST_PACKET_BYTES = 128 * 1024**2
_ASK_AGAIN_SECONDS = 60.0  # an ensemble may be upgraded, server by server
_EVENT_KINDS = {kind.value: kind for kind in ZnodeEventKind}
_SESSION_STATES = {
    KazooState.CONNECTED: SessionState.CONNECTED,
    KazooState.SUSPENDED: SessionState.SUSPENDED,
    KazooState.LOST: SessionState.LOST,
}


class _Connection(RestorableConnection):
    """kazoo's connection, which gives every event away with its zxid instead of looking for its watchers."""

    ends_if_never_let_in = True

    def __init__(self, client: _Client, retry: KazooRetry, login: dict[str, Any] | None) -> None:
        super().__init__(client, retry, logger=KAZOO_LOG, sasl_options=login)
        self.newest_zxid = Zxid(0)  # the newest on this connection
        self.login_failed = False  # true also until a login has succeeded
        self._header_zxid = Zxid(0)
        self._complaints_of_length = Complaints()

    def _read(self, length: int, timeout: float) -> bytes:
        if 0 <= length <= _LARGEST_PACKET_BYTES:
            packet: bytes = super()._read(length, timeout)
            return packet
        if self._complaints_of_length.due():
            _LOG.error(
                "the server at %s announces a packet of %d bytes, expected at most %d. Kontrast drops the connection "
                "and tries again. Check that the server is ZooKeeper",
                ",".join(f"{host}:{port}" for host, port in self.client.hosts),
                length,
                _LARGEST_PACKET_BYTES,
            )
        raise ConnectionDropped(f"a packet of {length} bytes")

    def _connect(self, host: str, hostip: str, port: int) -> tuple[float, float]:
        self.newest_zxid = Zxid(0)  # this server may have older data than the server before
        self.login_failed = self.sasl_options is not None
        return super()._connect(host, hostip, port)

    def _authenticate_with_sasl(self, host: str, timeout: float) -> None:
        super()._authenticate_with_sasl(host, timeout)
        self.login_failed = False
        self.client._session_callback(KeeperState.CONNECTED)

    def _read_header(self, timeout: float) -> tuple[ReplyHeader, bytes, int]:
        header, buffer, offset = super()._read_header(timeout)
        self.client.forwarding.bytes_read += len(buffer)
        self._header_zxid = header.zxid
        self.newest_zxid = max(self.newest_zxid, header.zxid)
        return header, buffer, offset

    def _read_watch_event(self, buffer: bytes, offset: int) -> None:
        watch, _ = Watch.deserialize(buffer, offset)
        kind = _EVENT_KINDS.get(watch.type)
        path = watch.path[len(self.client.chroot) :]
        if kind is not None and (is_recorded(path) or (self.client.takes_lists and is_listed(path))):
            zxid = self._header_zxid if self._header_zxid > 0 else UNKNOWN_ZXID
            self.client.inbox.put_event(ZnodeEvent(kind, path, zxid, time.monotonic()))


class _Client(KazooClient):
    """A kazoo client over `_Connection`."""

    def __init__(self, config: ZooKeeperConfig, inbox: Inbox, forwarding: Forwarding) -> None:
        super().__init__(
            hosts=config.servers + config.chroot,
            timeout=config.session_timeout_seconds,
            connection_retry={"max_tries": -1, "delay": 0.1, "max_delay": 3.0},
            handler=SharedThreadsHandler(),
            logger=KAZOO_LOG,
            **tls_of(config),
        )
        self.inbox = inbox
        self.forwarding = forwarding
        self.takes_lists = False  # whether events of listed znodes matter
        self._connection = _Connection(self, self._conn_retry.copy(), login_of(config))

    def _session_callback(self, state: str) -> None:
        if state != KeeperState.CONNECTED or not self._connection.login_failed:  # kazoo is connected before its login
            super()._session_callback(state)


class WatchedZooKeeper:
    """A session that only watches and reads, for one thread.

    Events and session states go to the inbox. Add the watches again after each new connection. With `reads_once` the
    caller reports hidden znodes.
    """

    def __init__(
        self,
        config: ZooKeeperConfig,
        inbox: Inbox,
        stop: threading.Event,
        forwarding: Forwarding | None = None,
        *,
        reads_once: bool = False,
    ) -> None:
        self._config = config
        self._chroot = config.chroot
        self._inbox = inbox
        self._stop = stop
        self._forwarding = Forwarding("") if forwarding is None else forwarding
        self._reads_once = reads_once
        self._client = _Client(config, inbox, self._forwarding)
        self._connections = 0
        self._next_read_at = 0.0
        self._forbidden: set[str] = set()
        self._was_answered = False
        self._reads: reading.MultiReads | reading.SingleReads = reading.MultiReads(self, config.multi_read_paths)
        self._ask_again_at = 0.0  # later if the server is known to be old

    def start(self) -> None:
        """Connect in the background, and retry until a connection succeeds."""
        self._client.add_listener(self._on_state)
        self._client.start_async()

    def restart_if_dead(self) -> None:
        """Restart after a failure from which kazoo does not recover. Raise IngestError."""
        self.check_login()
        if not self._client._connection._connection_routine.is_alive():
            _LOG.error("the ZooKeeper client for %s ended by itself, starting a new one", self._config.zookeeper)
            self.start_new_session()

    def start_new_session(self) -> None:
        """End the session, and connect with a new one in the background."""
        self._close()
        self._client = _Client(self._config, self._inbox, self._forwarding)
        self.start()

    def check_login(self) -> None:
        """Raise IngestError if ZooKeeper has never accepted this session, or Kerberos never gave a ticket for it.

        A server that leaves during a login looks the same. So after a first answer the session only retries.
        """
        connection = self._client._connection
        if self._was_answered:
            return
        if connection.without_ticket:
            raise IngestError(connection.without_ticket)
        if connection.login_failed and not connection._connection_routine.is_alive():
            raise self._no_login()

    def _no_login(self) -> IngestError:
        config, address = self._config, self._config.servers
        name = config.zookeeper_principal or config.zookeeper_username
        password, principal = "zookeeper_username and its password", "zookeeper_principal"
        if name is None:
            wrong, mend = "demands a login", f"Give {password}, or {principal}"
        else:
            wrong = f"refuses the login as {name!r}"
            mend = f"Check {password if config.zookeeper_principal is None else principal}"
        return IngestError(f"ZooKeeper at {address} {wrong}. {mend}")

    def close(self) -> None:
        """Close the session without waiting for a silent server."""
        closing = threading.Thread(target=self._close, name="close ZooKeeper session", daemon=True)
        closing.start()
        closing.join(_CLOSE_SECONDS)

    @property
    def connections(self) -> int:
        """Return the number of connections so far. Work across two connections has missed events."""
        return self._connections

    @property
    def session_id(self) -> int:
        """Return the session's number, 0 without one."""
        identity = self._client.client_id
        return 0 if identity is None else identity[0] or 0

    @property
    def forbidden(self) -> frozenset[str]:
        """Return the paths that an ACL keeps from being read or listed."""
        return frozenset(self._forbidden)

    @property
    def watch_mode(self) -> WatchMode:
        """Return the kind of watches that the present connection's server has."""
        return self._reads.mode

    def add_watches(self, paths: Sequence[str]) -> None:
        """Watch each path with all paths below or, before 3.6, each read path. Raise ConnectionLostError.

        Call this first on each connection, because the connection may be to another server.
        """
        self._choose_reads(watch=True)
        if self._reads.mode is WatchMode.ONE_SHOT:
            _LOG.warning(
                "ZooKeeper at %s is older than 3.6, so Kontrast sets one watch a znode and reads znode by znode. "
                "It misses changes that are reverted between two reads",
                self._config.servers,
            )
            return
        for promise in [self.call(AddWatch(self.absolute(path))) for path in paths]:
            self.wait(promise)

    def read_configuration(self) -> bytes | None:
        """Return /zookeeper/config, None if it is missing or hidden. Raise ConnectionLostError."""
        try:
            data, _ = cast("tuple[bytes, object]", self.wait(self.call(GetData("/zookeeper/config", None))))
        except (NoNodeError, NoAuthError):
            return None
        return data

    def begin_reading(self) -> None:
        """Prepare a connection for reads without watches. Raise ConnectionLostError."""
        self._choose_reads(watch=False)
        self.catch_up()

    def catch_up(self) -> None:
        """Wait until the server has every confirmed change of the ensemble. A new server may lag."""
        self.wait(self.call(Sync(self.absolute(""))))

    def name(self, events: list[ZnodeEvent]) -> list[ZnodeEvent]:
        """Return the events, with an event for each created or deleted child in place of the parent's event.

        Raise ConnectionLostError.
        """
        return self._reads.name(events)

    def _choose_reads(self, *, watch: bool) -> None:
        """Find the server's way of reading. A server before 3.6 ends the asking session."""
        if time.monotonic() >= self._ask_again_at:
            try:
                self.wait(self.call(MultiRead(GetData.type, [], self.moment)))
                self._ask_again_at = 0.0
            except UnimplementedError:
                self._ask_again_at = time.monotonic() + _ASK_AGAIN_SECONDS
        is_old = self._ask_again_at > 0
        self._reads = (
            reading.SingleReads(self, watch=watch)
            if is_old
            else reading.MultiReads(self, self._config.multi_read_paths)
        )
        self._client.takes_lists = is_old

    def read_values(self, paths: Sequence[str], show: Callable[[int], None] = lambda _: None) -> Reading:
        """Return the values of the paths (None if missing, no entry if hidden). Raise ConnectionLostError.

        `show` receives the number of reads so far.
        """
        answers = self._reads.values(paths, show)
        return Reading(self._readable(answers), answers.position, answers.zxid)

    def read_children(self, paths: Sequence[str]) -> dict[str, list[str]]:
        """Return the children of the paths, none for a missing path. Raise ConnectionLostError."""
        found = self._readable(self._reads.children(paths))
        return {path: children or [] for path, children in found.items()}

    def _readable(self, answers: Answers) -> dict[str, Any]:
        """Return the readable answers. Report each hidden path once, until it is readable again."""
        if answers.has_failures or self._forbidden:
            before = frozenset(self._forbidden)
            readable = dict(self._without_forbidden(answers.results.items()))
            self._forwarding.forbidden_znodes = len(self._forbidden)
            self._report_forbidden(sorted(self._forbidden - before))
            return readable
        return answers.results

    def _without_forbidden(self, found: Iterable[tuple[str, Any]]) -> Iterator[tuple[str, Any]]:
        for path, result in found:
            if isinstance(result, ConnectionLoss):
                raise ConnectionLostError from result
            if isinstance(result, NoAuthError):
                self._forbidden.add(path)
            else:
                self._forbidden.discard(path)
                yield path, result

    def _report_forbidden(self, paths: Sequence[str]) -> None:
        if paths:
            more = f" and {len(paths) - 1} more" if len(paths) > 1 else ""
            _LOG.log(
                logging.DEBUG if self._reads_once else logging.WARNING,
                "%s%s may not be read, because the ACL does not let this session in. Kontrast misses changes there",
                paths[0],
                more,
            )

    def pace(self, count: int) -> None:
        """Return when this number of znodes may be read. Raise ConnectionLostError."""
        self._forwarding.znodes_read += count
        if self._config.read_budget_znodes_per_second is None:
            return
        now = time.monotonic()
        wait_seconds = max(0.0, self._next_read_at - now)
        self._forwarding.budget_wait_seconds += wait_seconds
        if self._stop.wait(wait_seconds):
            raise ConnectionLostError
        self._next_read_at = max(now, self._next_read_at) + count / self._config.read_budget_znodes_per_second

    def call(self, request: object) -> Promise:
        """Return a promise of the request's answer. Raise ConnectionLostError."""
        if not self._client.connected:
            raise ConnectionLostError
        promise: Promise = self._client.handler.async_result()
        self._client._call(request, promise)
        return promise

    def wait(self, promise: Promise) -> object:
        """Return the answer. Raise ConnectionLostError, IngestError, or kazoo's error."""
        while not self._stop.is_set():
            try:
                answer = promise.get(timeout=0.2)
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

    def moment(self) -> tuple[int, Zxid]:
        """Return the number of events so far and the newest zxid, on the connection's thread."""
        return self._inbox.position, self._client._connection.newest_zxid

    def absolute(self, path: str) -> str:
        """Return the path with the chroot."""
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
