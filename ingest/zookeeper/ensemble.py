"""Rounds of questions to every server of the watched ensemble, in threads that never delay a watcher."""

from __future__ import annotations

import logging
import re
import threading
import time
from collections.abc import Iterable, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from typing import Final

from controller.contract.forwarder_status import Ensemble, LeftSession, ZooKeeperServer
from controller.contract.ids import Zxid
from ingest.config import IngestConfig
from ingest.zookeeper.four_letter_words import (
    NotServingError,
    RefusedError,
    Server,
    UnansweredError,
    ask,
    ask_admin_server,
    milliseconds,
    number,
    read_mntr,
    read_srvr,
)
from ingest.zookeeper.left_sessions import Sessions, left_sessions, read_dump
from ingest.zookeeper.members import named_servers, read_members, servers_of

_LOG = logging.getLogger("kontrast.ingest.ensemble")

_MODES: Final = ("leader", "follower", "observer", "standalone")
# A client whose server left has found another one by then.
_CONFIRM_SECONDS: Final = 2.0
_UNKNOWN: Final = Sessions({}, {}, None)
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
        """End after the present question, without a wait."""
        self._stop.set()

    def ask_now(self) -> None:
        """Let the next round be due at once, because the session was lost."""
        self._due_at = time.monotonic()

    def learn(self, configuration: bytes | None) -> None:
        """Take over the content of /zookeeper/config, None if it cannot be read."""
        self._configuration = configuration

    def take(self) -> Ensemble | None:
        """Return the newest description once, None if it was taken."""
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
        """Return the sessions that were left in the round before too. Others lead to an early round."""
        left = list(found)
        before, self._left_before = self._left_before, frozenset((one.broker, one.session) for one in left)
        if not self._left_before <= before:
            self._due_at = min(self._due_at, time.monotonic() + _CONFIRM_SECONDS)
        return tuple(one for one in left if (one.broker, one.session) in before)

    def _ask_one(self, server: Server, memory: _Memory) -> tuple[ZooKeeperServer, Sessions]:
        started = time.monotonic()
        try:
            values = read_srvr(ask("srvr", server, self._config))
            if values.get("Mode") not in _MODES:
                raise NotServingError(f"serves no writes (mode {values.get('Mode', 'unknown')[:40]})")
        except UnansweredError as error:
            self._note(server, memory, str(error))
            if isinstance(error, RefusedError):
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
        # Perhaps a firewall hides a server that only the configuration names.
        is_lost = memory.served_at is not None or server in self._named
        silent_ms = round((time.monotonic() - since) * 1000) if is_lost else -1
        return ZooKeeperServer(address=str(server), votes=memory.votes, trouble=trouble, silent_ms=silent_ms)

    def _numbers(self, server: Server, refused: list[str]) -> Mapping[str, str]:
        """Return the values of `mntr`, from the AdminServer if the word is not allowed."""
        port = self._config.zookeeper_admin_port
        try:
            return read_mntr(ask("mntr", server, self._config))
        except RefusedError:
            with suppress(UnansweredError):
                if port is not None:
                    return ask_admin_server(server, port)
            refused.append("mntr")
        except UnansweredError as error:
            _LOG.debug("%s %s", server, error)
        return {}

    def _sessions(self, server: Server, refused: list[str]) -> Sessions:
        try:
            return read_dump(ask("dump", server, self._config))
        except RefusedError:
            refused.append("dump")
        except UnansweredError as error:
            _LOG.debug("%s %s", server, error)
        return _UNKNOWN

    def _note(self, server: Server, memory: _Memory, trouble: str) -> None:
        if trouble != memory.trouble:
            _LOG.warning("%s: %s %s", self._config.cluster, server, trouble or "serves again")
        memory.trouble = trouble


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
