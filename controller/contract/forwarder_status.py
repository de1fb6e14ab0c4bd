"""Data of a forwarder's own records, which no znode has, such as its clock, session, maintenance windows and ensemble.

The servers of the ensemble describe themselves, and the row of gauges repeats their answers. -1 marks a number that a
server did not give.
"""

from __future__ import annotations

from typing import Annotated, Final

import msgspec

from controller.contract.decoding import JsonDecoder, UndecodableError
from controller.contract.flaw import FoundFlaw
from controller.contract.ids import INT64, UNKNOWN_ZXID, Zxid
from controller.contract.records import LATEST_MS, Int64, TimeMs
from controller.contract.row import NOT_KNOWN_MS, Count, MomentMs, RowBrokerId, RowZxid
from controller.contract.znodes import Brokers
from wording.sentences import joined

DEFAULT_JUTE_MAXBUFFER = 0xFFFFF
LEADING = ("leader", "standalone")
_HEADS_APART: Final = 2

_MeanMs = Annotated[float, msgspec.Meta(ge=-1, le=LATEST_MS)]


class ZooKeeperServer(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Answers of one server. A server without a mode serves no client, as far as Kontrast can see."""

    address: str  # HOST:PORT
    votes: bool = True  # False for an observer
    mode: str = ""  # leader | follower | observer | standalone | read-only
    version: str = ""
    trouble: str = ""  # why it has no mode or leaves questions open, as a predicate whose subject is the server
    refused: tuple[str, ...] = ()  # questions that it does not allow
    silent_ms: Int64 = -1  # since it last served. Only for a server that is known to have served
    answer_ms: _MeanMs = -1  # time of the answer to `srvr`
    latency_ms: _MeanMs = -1  # mean since the server's start
    fsync_ms: _MeanMs = -1  # mean since its answer in the round before
    outstanding: Int64 = -1
    connections: Int64 = -1
    znodes: Int64 = -1
    data_bytes: Int64 = -1
    zxid: RowZxid = UNKNOWN_ZXID
    followers: Int64 = -1  # of a leader
    synced_followers: Int64 = -1  # of a leader
    expired_sessions: Int64 = -1  # since the server's start


class LargeZnode(msgspec.Struct, frozen=True, array_like=True):
    """Size of a znode's data, or of the list of its children, as it travels in a server's answer."""

    path: str
    size_bytes: Count


class LeftSession(msgspec.Struct, frozen=True, array_like=True):
    """Session that owns a broker's registration and is connected to no server."""

    broker: RowBrokerId
    session: Int64
    expires_ms: Int64  # how long after the server's answer it expires


class Ensemble(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Ensemble, as its servers described it in one round of questions."""

    asked_ms: MomentMs = NOT_KNOWN_MS  # by the cluster's time
    interval_ms: Count = 0  # between two rounds
    servers: tuple[ZooKeeperServer, ...] = ()
    voters: Count = 0  # the number of voters by ZooKeeper's configuration, or else by the address
    large_znodes: tuple[LargeZnode, ...] = ()  # the largest first
    jute_maxbuffer_bytes: Count = DEFAULT_JUTE_MAXBUFFER
    left_sessions: tuple[LeftSession, ...] = ()

    @property
    def leader(self) -> ZooKeeperServer | None:
        """Return the leader or the only server."""
        return next((server for server in self.servers if server.mode in LEADING), None)

    @property
    def apart(self) -> str:
        """Return that the servers are not one ensemble but have data of their own, as a clause, empty if unknown."""
        heads = [f"{server.address} is {server.mode}" for server in self.servers if server.mode in LEADING]
        is_alone = len(self.servers) > 1 and any(server.mode == "standalone" for server in self.servers)
        if not is_alone and len(heads) < _HEADS_APART:
            return ""
        return f"the named ZooKeeper servers are not one ensemble ({joined(heads)})"


FROM_FILES: Final = "replay"  # the session of records that were made from ZooKeeper's files


class MaintenanceWindow(msgspec.Struct, frozen=True):
    """Maintenance window. While people work on these brokers, alerts that follow from their work are held back."""

    brokers: Brokers  # empty for the whole cluster
    until_ms: TimeMs
    reason: str = ""


class ForwarderStatus(msgspec.Struct, frozen=True, omit_defaults=True):
    """Data of a forwarder's own records, with its clock, its session, its maintenance windows and the ensemble."""

    session: str = "unknown"
    watch_mode: str = "unknown"
    maintenance: tuple[MaintenanceWindow, ...] = ()  # the windows in force
    clock_of: str = ""  # the host whose clock the records' times follow, given at the beginning of a generation
    lost_zxid: Annotated[Zxid, INT64] = UNKNOWN_ZXID  # of a published change that ZooKeeper has lost since
    ensemble: Ensemble | None = None  # after each round of questions to its servers
    flaws: dict[str, FoundFlaw] | None = None  # by path, as a complete read found them beside the records


_DECODER: Final = JsonDecoder(ForwarderStatus)


def decode_status(data: bytes | str | None) -> ForwarderStatus:
    """Return the status in a forwarder's own record, or an empty status if the data cannot be read."""
    try:
        return _DECODER.decode(data or b"")
    except UndecodableError:
        return ForwarderStatus()
