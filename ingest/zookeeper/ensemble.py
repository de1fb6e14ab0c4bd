"""Rounds of questions to every server of the watched ensemble, in threads that never delay a watcher."""

from __future__ import annotations

import logging
import re
import socket
import threading
import time
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from datetime import datetime, timezone
from functools import lru_cache
from typing import Final, NamedTuple, TypeVar, cast

from controller.contract.forwarder_status import Ensemble, LeftSession, ZooKeeperServer
from controller.contract.ids import BrokerId, Zxid
from ingest.config import IngestConfig, ZooKeeperConfig
from ingest.observed.paths import BROKERS
from ingest.zookeeper.four_letter_words import (
    NotAllowedError,
    NotServingError,
    Server,
    Tls,
    UnansweredError,
    ask,
    ask_admin_server,
    milliseconds,
    number,
    read_mntr,
    read_srvr,
)
from ingest.zookeeper.restorable import tls_of

_LOG = logging.getLogger("kontrast.ingest.ensemble")

_Answer = TypeVar("_Answer")

_MODES: Final = ("leader", "follower", "observer", "standalone")
# `dump` has all sessions of the ensemble. With 31 clusters of one ensemble such answers took an eighth of the watcher's
# processor time, and more with more clusters. These are two answers of eight servers.
_SHARED_ANSWERS: Final = 16
# Within this time a client whose server left has found another server.
_CONFIRM_SECONDS: Final = 2.0
# The rounds of all clusters of a process. A round of three servers takes some 10 ms, and a server that hangs 2 s, so
# eight threads keep 40 clusters with a hanging server each within the interval of 10 s.
_rounds: Final = ThreadPoolExecutor(max_workers=8, thread_name_prefix="ask an ensemble")


class _Memory:
    """Memory of one server between rounds."""

    def __init__(self) -> None:
        self.served_at: float | None = None
        self.votes = True
        self.trouble = ""
        self.fsyncs = 0
        self.fsyncs_ms = 0


class EnsembleQuestions:
    """Asks the servers of one ensemble. The forwarder's loop calls `begin_if_due`, so no thread of its own waits."""

    def __init__(self, config: IngestConfig) -> None:
        self._config = config
        self._tls = tuple(tls_of(config).items())
        self._named = named_servers(config.servers)
        self._configuration: bytes | None = None
        self._memories: dict[Server, _Memory] = {}
        self._left_before: frozenset[tuple[int, int]] = frozenset()
        self._newest: Ensemble | None = None
        self._stop = threading.Event()
        self._round: Future[None] | None = None
        self._started_at = self._due_at = time.monotonic()

    def begin_if_due(self) -> None:
        """Begin a round in the background if it is due, unless the questions are switched off."""
        interval_seconds = self._config.ensemble_interval_seconds
        if interval_seconds is None or time.monotonic() < self._due_at or self._stop.is_set():
            return
        if self._round is None or self._round.done():
            self._due_at = time.monotonic() + interval_seconds
            self._round = _rounds.submit(self._ask_all, interval_seconds)

    def stop(self) -> None:
        """End the round after its present question, without waiting for this."""
        self._stop.set()

    def ask_now(self) -> None:
        """Let the next round be due at once, because the session was lost."""
        self._due_at = time.monotonic()

    def learn(self, configuration: bytes | None) -> None:
        """Take over the content of /zookeeper/config, None if it cannot be read."""
        self._configuration = configuration

    def take(self) -> Ensemble | None:
        """Return the newest description, None if it was taken before."""
        newest, self._newest = self._newest, None
        return newest

    def ask_once(self) -> list[ZooKeeperServer]:
        """Ask every server that the settings name, in this thread."""
        return [self._ask_one(server, _Memory())[0] for server in servers_of(self._named, ())]

    def _ask_all(self, interval_seconds: float) -> None:
        members = read_members(self._configuration)
        described: list[ZooKeeperServer] = []
        answers: list[Sessions] = []
        for server in servers_of(self._named, members):
            if self._stop.is_set():
                return
            description, sessions = self._ask_one(server, self._memories.setdefault(server, _Memory()))
            described.append(description)
            if description.mode:
                answers.append(sessions)
        self._newest = Ensemble(
            interval_ms=round(interval_seconds * 1000),
            servers=tuple(described),
            voters=sum(member.votes for member in members) or sum(server.votes for server in described),
            jute_maxbuffer_bytes=self._config.jute_maxbuffer_bytes,
            left_sessions=self._confirmed(left_sessions(answers, self._config.chroot, time.time())),
        )

    def _confirmed(self, found: Iterable[LeftSession]) -> tuple[LeftSession, ...]:
        """Return the sessions that were left already in the previous round. New ones lead to an early next round."""
        left = list(found)
        before, self._left_before = self._left_before, frozenset((one.broker, one.session) for one in left)
        if not self._left_before <= before:
            self._due_at = min(self._due_at, time.monotonic() + _CONFIRM_SECONDS)
        return tuple(one for one in left if (one.broker, one.session) in before)

    def _ask_one(self, server: Server, memory: _Memory) -> tuple[ZooKeeperServer, Sessions]:
        started = time.monotonic()
        try:
            values = read_srvr(ask("srvr", server, self._tls))
            if values.get("Mode") not in _MODES:
                raise NotServingError(f"serves no writes (mode {values.get('Mode', 'unknown')[:40]})")
        except UnansweredError as error:
            self._note(server, memory, str(error))
            if isinstance(error, NotAllowedError):
                return ZooKeeperServer(address=str(server), trouble=str(error), refused=("srvr",)), _UNKNOWN
            return self._silent(server, memory, str(error)), _UNKNOWN
        answer_ms = (time.monotonic() - started) * 1000
        self._note(server, memory, "")
        memory.served_at, memory.votes = time.monotonic(), values["Mode"] != "observer"
        refused: list[str] = []
        more = self._numbers(server, refused)
        sessions = self._sessions(server, refused)
        return _described(server, values, more, memory, answer_ms, tuple(refused)), sessions

    def _silent(self, server: Server, memory: _Memory, trouble: str) -> ZooKeeperServer:
        since = self._started_at if memory.served_at is None else memory.served_at
        # A server that only the configuration names counts as lost only if it served, because a firewall may hide it.
        is_lost = memory.served_at is not None or server in self._named
        silent_ms = round((time.monotonic() - since) * 1000) if is_lost else -1
        return ZooKeeperServer(address=str(server), votes=memory.votes, trouble=trouble, silent_ms=silent_ms)

    def _numbers(self, server: Server, refused: list[str]) -> Mapping[str, str]:
        """Return the values of `mntr`, from the AdminServer if the word is not allowed."""
        port = self._config.zookeeper_admin_port
        try:
            return self._shared(read_mntr, "mntr", server)
        except NotAllowedError:
            with suppress(UnansweredError):
                if port is not None:
                    return ask_admin_server(server, port)
            refused.append("mntr")
        except UnansweredError as error:
            _LOG.debug("%s %s", server, error)
        return {}

    def _sessions(self, server: Server, refused: list[str]) -> Sessions:
        try:
            return self._shared(read_dump, "dump", server)
        except NotAllowedError:
            refused.append("dump")
        except UnansweredError as error:
            _LOG.debug("%s %s", server, error)
        return _UNKNOWN

    def _shared(self, read: Callable[[str], _Answer], word: str, server: Server) -> _Answer:
        """Return the answer of this second, which all clusters of an ensemble have alike. Raise UnansweredError."""
        return cast("_Answer", _answer_of(read, word, server, self._tls, int(time.monotonic())))

    def _note(self, server: Server, memory: _Memory, trouble: str) -> None:
        if trouble != memory.trouble:
            _LOG.warning("%s: %s %s", self._config.cluster, server, trouble or "serves again")
        memory.trouble = trouble


@lru_cache(maxsize=_SHARED_ANSWERS)
def _answer_of(
    read: Callable[[str], object],
    word: str,
    server: Server,
    tls: Tls,
    second: int,  # noqa: ARG001 (the next second asks again)
) -> object:
    return read(ask(word, server, tls))


def _described(  # noqa: PLR0913 (the answers of a server)
    server: Server,
    values: Mapping[str, str],
    more: Mapping[str, str],
    memory: _Memory,
    answer_ms: float,
    refused: tuple[str, ...],
) -> ZooKeeperServer:
    fsyncs, fsyncs_ms = number(more.get("zk_cnt_fsynctime")), number(more.get("zk_sum_fsynctime"))
    grown, grown_ms = fsyncs - memory.fsyncs, fsyncs_ms - memory.fsyncs_ms
    memory.fsyncs, memory.fsyncs_ms = fsyncs, fsyncs_ms
    return ZooKeeperServer(
        address=str(server),
        votes=memory.votes,
        mode=values["Mode"],
        version=re.split("[-,]", values.get("Zookeeper version", ""), maxsplit=1)[0][:20],
        refused=refused,
        answer_ms=round(answer_ms, 1),
        latency_ms=milliseconds(values.get("Latency min/avg/max", "//").split("/")[1]),
        fsync_ms=round(grown_ms / grown, 1) if grown > 0 and grown_ms >= 0 else -1,
        outstanding=number(values.get("Outstanding")),
        connections=number(values.get("Connections")),
        znodes=number(values.get("Node count")),
        zxid=Zxid(number(values.get("Zxid"), 16)),
        data_bytes=number(more.get("zk_approximate_data_size")),
        followers=number(more.get("zk_learners", more.get("zk_followers"))),
        synced_followers=number(more.get("zk_synced_followers")),
        expired_sessions=number(more.get("zk_stale_sessions_expired")),
    )


def modes_of(config: ZooKeeperConfig) -> Future[Ensemble]:
    """Begin to ask the servers of the address for their modes alone. One without an answer has no mode."""
    return _rounds.submit(_modes_of, config)


def _modes_of(config: ZooKeeperConfig) -> Ensemble:
    tls, servers = tuple(tls_of(config).items()), []
    named = servers_of(named_servers(config.servers), ())
    for server in named if len(named) > 1 else ():
        mode = ""
        with suppress(UnansweredError):
            mode = read_srvr(ask("srvr", server, tls)).get("Mode", "")
        servers.append(ZooKeeperServer(address=str(server), mode=mode))
    return Ensemble(servers=tuple(servers))


_EXPIRY: Final = re.compile(r"expire at \w+ (\w+ +\d+ \d+:\d+:\d+) \S+ (\d+):")
_SESSION: Final = re.compile(r"(0x[0-9a-f]{1,16})(?:\s+\d+ms|:)?")
_CONNECTED: Final = re.compile(r"sessionId: (0x[0-9a-f]{1,16})")
_ZONE_SECONDS: Final = 900  # the unit by which time zones differ
_BROKER_ID_DIGITS: Final = 10


class Sessions(NamedTuple):
    """Answer to `dump`. Only the leader has expiries."""

    owners: Mapping[str, int]  # of the ephemeral znodes, by path
    expiries: Mapping[int, str]  # of the sessions, by the server's clock
    connected: frozenset[int] | None  # connected sessions, None if the server does not list them


_UNKNOWN: Final = Sessions({}, {}, None)


def read_dump(answer: str) -> Sessions:
    """Return the sessions in the answer to `dump`."""
    owners: dict[str, int] = {}
    expiries: dict[int, str] = {}
    session, expiry = 0, ""
    for line in map(str.strip, answer.splitlines()):
        if found := _EXPIRY.search(line):
            expiry = f"{found[1]} {found[2]}"
        elif found := _SESSION.fullmatch(line):
            session = int(found[1], 16)
            if expiry:
                expiries[session] = expiry
        elif line.startswith("/"):
            owners[line] = session
        elif not line.startswith("ip:"):
            expiry = ""  # a heading
    # The connection of the question itself has number 0.
    connected = frozenset(int(found, 16) for found in _CONNECTED.findall(answer))
    return Sessions(owners, expiries, connected or None)


def left_sessions(answers: Collection[Sessions], chroot: str, now_seconds: float) -> Iterator[LeftSession]:
    """Yield the owners of registrations without a connection, if every serving server lists its connections.

    `now_seconds` is the time since 1970. Expiries follow the leader's clock, so both clocks must agree.
    """
    connected: set[int] = set()
    for answer in answers:
        if answer.connected is None:
            return
        connected |= answer.connected
    parent = f"{chroot}{BROKERS}/"
    owners = {path: session for answer in answers for path, session in answer.owners.items()}
    expiries = {session: expiry for answer in answers for session, expiry in answer.expiries.items()}
    for path, session in sorted(owners.items()):
        name = path.removeprefix(parent)
        is_broker = path.startswith(parent) and name.isdecimal() and len(name) <= _BROKER_ID_DIGITS
        if is_broker and session not in connected:
            yield LeftSession(BrokerId(int(name)), _signed(session), _expires_ms(expiries.get(session), now_seconds))


def _signed(session: int) -> int:
    """Return the session as the signed number that records have."""
    return session - 2**64 if session >= 2**63 else session


def _expires_ms(expiry: str | None, now_seconds: float) -> int:
    """Return the milliseconds until this moment, -1 if unknown. A larger distance counts as another time zone."""
    if expiry is None:
        return -1
    try:
        moment = datetime.strptime(expiry, "%b %d %H:%M:%S %Y").replace(tzinfo=timezone.utc)
    except ValueError:
        return -1
    left_seconds = moment.timestamp() - now_seconds
    in_zone = left_seconds - _ZONE_SECONDS * round(left_seconds / _ZONE_SECONDS)
    return max(0, round(in_zone * 1000))


_HOST: Final = r"\[[0-9A-Fa-f:.]+\]|[A-Za-z0-9._-]+"
_MEMBER: Final = re.compile(
    rf"server\.\d+=(?P<host>{_HOST}):\d+:\d+(?::(?P<role>\w+))?(?:\|[^;\s]*)?"
    rf"(?:;(?:(?P<client_host>{_HOST}):)?(?P<port>\d{{1,5}}))?"
)
_EVERY_ADDRESS: Final = ("0.0.0.0", "::", "0:0:0:0:0:0:0:0")  # noqa: S104 (a server's, not ours)


class Member(NamedTuple):
    """A line of /zookeeper/config. Without a port, only the server's own file has its client port."""

    host: str
    port: int | None
    votes: bool


def named_servers(servers: str) -> list[Server]:
    """Return the servers of HOST:PORT[,HOST:PORT…]."""
    pairs = (address.rpartition(":") for address in servers.split(","))
    return [Server(host.strip("[]"), int(port)) for host, _, port in pairs]


def read_members(configuration: bytes | None) -> list[Member]:
    """Return the members in the content of /zookeeper/config, none without content, as before 3.5."""
    lines = (configuration or b"").decode("utf-8", "replace").splitlines()
    return [_member(found) for found in map(_MEMBER.fullmatch, lines) if found]


def _member(found: re.Match[str]) -> Member:
    client_host = (found["client_host"] or "").strip("[]")
    host = found["host"].strip("[]") if client_host in ("", *_EVERY_ADDRESS) else client_host
    return Member(host, None if found["port"] is None else int(found["port"]), found["role"] != "observer")


def servers_of(named: Sequence[Server], members: Iterable[Member]) -> list[Server]:
    """Return every server once, under the operator's name if the operator named it.

    A name with several addresses stands for servers that the configuration names.
    """
    members = list(members)
    places: dict[tuple[str, int], Server] = {}
    for server in named:
        addresses = _addresses(server.host)
        if len(addresses) == 1 or not members:
            places[addresses[0], server.port] = server
    for member in members:
        address = _addresses(member.host)[0]
        if member.port is not None:
            places.setdefault((address, member.port), Server(member.host, member.port))
        elif all(address != known for known, _ in places):
            places[address, named[0].port] = Server(member.host, named[0].port)
    return list(places.values())


def _addresses(host: str) -> list[str]:
    """Return the host's addresses, or its name if it has no known address."""
    try:
        found = socket.getaddrinfo(host, None, type=socket.SOCK_STREAM)
    except (OSError, UnicodeError):
        return [host]
    families = {family for family, *_ in found}
    one_family = socket.AF_INET if socket.AF_INET in families else socket.AF_INET6
    return sorted({str(place[0]) for family, *_, place in found if family == one_family}) or [host]
