"""Election of one of a cluster's forwarders over a separate ZooKeeper ensemble.

Only this part of the ingest writes to a ZooKeeper, and to the watched one only with permission in the configuration.
The generation protects the stream. It grows from term to term, and readers drop records of older generations. A leader
that stops by itself saves readers this work.
"""

from __future__ import annotations

import logging
import os
import socket
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass

from kazoo.client import KazooClient
from kazoo.exceptions import BadVersionError, CancelledError, KazooException, NoNodeError
from kazoo.handlers.threading import KazooTimeoutError
from kazoo.recipe.lock import Lock

from ingest.config import IngestConfig
from ingest.errors import UnreachableError
from ingest.separation import refuse_watched_ensemble
from ingest.sinks.sink import SinkUnavailableError
from ingest.zookeeper.restorable import RestorableClient, login_of, tls_of

_LOG = logging.getLogger("kontrast.ingest.election")

_ROOT = "/kontrast"
_TRY_AGAIN_SECONDS = 1.0
_LOOK_SECONDS = 0.2


def clock_generation() -> int:
    """Return milliseconds since 1970 as the generation. It grows with every start if the hosts' clocks are correct."""
    return time.time_ns() // 1_000_000


@dataclass(frozen=True, slots=True)
class ForwardingTerm:
    """One term of forwarding, with its generation. `holds` returns whether it goes on, and may wait for an answer."""

    generation: int
    holds: Callable[[], bool]


def open_terms(config: IngestConfig, stop: threading.Event, newest: Callable[[], int]) -> UnopposedTerms | Election:
    """Open an election if the configuration names an ensemble, otherwise the terms of the only forwarder.

    `newest` is the newest generation in the stream. Clocks may be set back, but generations must grow.
    """
    if config.election_zookeeper is None:
        return UnopposedTerms(stop, newest)
    if config.election_on_watched:
        return Election(config, stop, newest, lambda _: None)
    return Election(config, stop, newest, lambda client: refuse_watched_ensemble(config, client, stop))


class UnopposedTerms:
    """The terms of the only forwarder of a cluster."""

    def __init__(self, stop: threading.Event, newest: Callable[[], int]) -> None:
        self._stop = stop
        self._newest = newest
        self._generation = 0

    def next_term(self) -> ForwardingTerm | None:
        """Return a term without rivals."""
        while not self._stop.is_set():
            try:
                self._generation = max(self._generation + 1, self._newest() + 1, clock_generation())
                return ForwardingTerm(self._generation, lambda: True)
            except SinkUnavailableError as error:
                _LOG.warning("the newest generation of the stream is not known, trying again: %s", error)
                self._stop.wait(_TRY_AGAIN_SECONDS)
        return None

    def close(self) -> None:
        """Do nothing, because no resource is open."""


class Election:
    """A candidate among the forwarders of its cluster. Each has an ephemeral znode, and the oldest leads.

    `check` sees the ensemble before the first write and may raise IngestError.
    """

    def __init__(
        self,
        config: IngestConfig,
        stop: threading.Event,
        newest: Callable[[], int],
        check: Callable[[KazooClient], None],
    ) -> None:
        self._config = config
        self._stop = stop
        self._newest = newest
        self._check = check
        self._checked = False
        self._candidacy: _Candidacy | None = None

    def next_term(self) -> ForwardingTerm | None:
        """Wait for this forwarder's next term after the end of the last one. Return None if asked to stop."""
        self.close()
        while not self._stop.is_set():
            self._candidacy = candidacy = _Candidacy(self._config, self._stop, self._check_once)
            try:
                if (generation := candidacy.win(self._newest)) is not None:
                    _LOG.info("%s: this forwarder leads, generation %d", self._config.cluster, generation)
                    return ForwardingTerm(generation, candidacy.holds)
            except (KazooException, KazooTimeoutError, SinkUnavailableError, UnreachableError) as error:
                if not self._stop.is_set():
                    why = str(error) or type(error).__name__
                    _LOG.warning("%s: retrying the election after %s", self._config.cluster, why)
            self.close()
            self._stop.wait(_TRY_AGAIN_SECONDS)
        return None

    def _check_once(self, client: KazooClient) -> None:
        if not self._checked:  # only once, because later the watched ensemble may be away
            self._check(client)
            self._checked = True

    def close(self) -> None:
        """Give up the present term, or waiting for one."""
        if self._candidacy is not None:
            self._candidacy.close()
            self._candidacy = None


class _Candidacy:
    """One session on the election's ensemble, from waiting through leading to its end."""

    def __init__(self, config: IngestConfig, stop: threading.Event, check: Callable[[KazooClient], None]) -> None:
        assert config.election_zookeeper is not None
        self._check = check
        self._cluster = config.cluster
        self._address = config.election_zookeeper
        self._seconds = config.session_timeout_seconds
        servers, slash, chroot = config.election_zookeeper.partition("/")
        self._root = f"{slash}{chroot.rstrip('/')}{_ROOT}/{config.cluster.replace('/', '_')}"
        self._stop = stop
        self._ended = threading.Event()
        self._closing = threading.Lock()
        self._closed = False
        self._verdict = threading.Condition()
        self._sure_until = 0.0  # the session surely lives until this time
        self._client = RestorableClient(
            hosts=servers,  # a chroot that kazoo adds would have to exist
            timeout=self._seconds,
            connection_retry={"max_tries": -1, "delay": 0.1, "max_delay": 1.0},
            login=login_of(config.election),
            **tls_of(config.election),
        )
        name = f"{socket.gethostname()}:{os.getpid()}"
        self._lock = Lock(self._client, f"{self._root}/candidates", name)

    def win(self, newest: Callable[[], int]) -> int | None:
        """Wait for the win and return the term's generation, or None if asked to stop. Raise KazooException.

        Raise SinkUnavailableError if the stream's newest generation is unreadable.
        """
        threading.Thread(target=self._cancel_when_stopped, name="end election", daemon=True).start()
        self._client.start_async()
        if not self._connect():
            return None
        self._check(self._client)
        leaders = self._contenders()
        if leaders:
            _LOG.info("%s: %s leads, this forwarder waits for its turn", self._cluster, leaders[0])
        try:
            self._lock.acquire()
        except CancelledError:
            return None
        self._confirm()
        threading.Thread(target=self._keep_confirming, name="hold election", daemon=True).start()
        return self._next_generation(newest() + 1)

    def holds(self) -> bool:
        """Return whether this forwarder still leads. Wait for the ensemble's answer if this is uncertain."""
        with self._verdict:
            while not self._ended.is_set() and time.monotonic() >= self._sure_until:
                self._verdict.wait(_LOOK_SECONDS)
            return not self._ended.is_set()

    def close(self) -> None:
        """End the session, and with it the candidacy."""
        self._end()
        with self._closing:
            if not self._closed:
                self._closed = True
                self._client.stop()
                self._client.close()

    def _connect(self) -> bool:
        said = time.monotonic()
        while not self._client.connected and not self._stop.wait(_LOOK_SECONDS):
            if time.monotonic() - said >= self._seconds:
                said = time.monotonic()
                why = self._client.without_ticket or f"the election's ZooKeeper at {self._address} is not reachable"
                _LOG.warning("%s: %s", self._cluster, why)
        return bool(self._client.connected)

    def _contenders(self) -> list[str]:
        try:
            return list(self._lock.contenders())
        except NoNodeError:
            return []

    def _next_generation(self, least: int) -> int:
        path = f"{self._root}/generation"
        self._client.ensure_path(path)
        while True:
            written, stat = self._client.get(path)
            generation = max(int(written or b"0") + 1, least, clock_generation())
            try:
                self._client.set(path, str(generation).encode(), version=stat.version)
                return generation
            except BadVersionError:
                continue

    def _confirm(self) -> None:
        """Ask for the candidate's znode. If it exists, the session lasts for its whole timeout from the question on."""
        asked = time.monotonic()
        exists = self._client.exists_async(f"{self._lock.path}/{self._lock.node}").get(timeout=self._seconds)
        with self._verdict:
            if exists is None:
                self._ended.set()
            self._sure_until = asked + self._seconds
            self._verdict.notify_all()

    def _keep_confirming(self) -> None:
        reached = time.monotonic()
        said = 0.0
        while not self._ended.wait(self._seconds / 4):
            try:
                self._confirm()
                reached = time.monotonic()
            except (KazooException, KazooTimeoutError):
                now = time.monotonic()
                if now - reached < 2 * self._seconds:
                    continue
                # While the ensemble is away, it elects no other candidate. If only this forwarder lost it, the new
                # leader has a higher generation.
                with self._verdict:
                    self._sure_until = now + self._seconds
                    self._verdict.notify_all()
                if now - said >= 60:
                    said = now
                    _LOG.warning(
                        "%s: the election's ZooKeeper at %s is not reachable, this forwarder continues to lead",
                        self._cluster,
                        self._address,
                    )

    def _cancel_when_stopped(self) -> None:
        while not self._stop.wait(_LOOK_SECONDS):
            if self._ended.is_set():
                return
        self._lock.cancel()
        self.close()

    def _end(self) -> None:
        with self._verdict:
            self._ended.set()
            self._verdict.notify_all()
