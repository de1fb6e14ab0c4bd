"""Descriptions of an ensemble of three servers, as a forwarder sends them."""

from __future__ import annotations

from typing import Any

from msgspec.structs import replace

from controller.contract.forwarder_status import Ensemble, LargeZnode, ZooKeeperServer
from tests.controller.znode_history import ZnodeHistory

INTERVAL_MS = 10_000
_EPOCH = 0x1_0000_0000


def servers(*, zxid: int = 0) -> tuple[ZooKeeperServer, ...]:
    """Return a leader and two followers without trouble."""
    usual: dict[str, Any] = {"version": "3.9.5", "answer_ms": 1.0, "latency_ms": 0.5, "zxid": _EPOCH + zxid}
    usual |= {"outstanding": 0, "connections": 12, "znodes": 900, "data_bytes": 90_000, "expired_sessions": 0}
    leader = ZooKeeperServer(address="zk1:2181", mode="leader", followers=2, synced_followers=2, fsync_ms=2.5, **usual)
    return leader, *(ZooKeeperServer(address=f"zk{n}:2181", mode="follower", fsync_ms=2.0, **usual) for n in (2, 3))


def ensemble(*changed: tuple[int, dict[str, Any]], zxid: int = 0, **more: Any) -> Ensemble:
    """Return three servers, some with other answers, by their place."""
    described = list(servers(zxid=zxid))
    for place, answers in changed:
        described[place] = replace(described[place], **answers)
    return Ensemble(interval_ms=INTERVAL_MS, servers=tuple(described), voters=3, **more)


def lost(silent_ms: int = 20_000, trouble: str = "does not answer (Connection refused)") -> dict[str, Any]:
    """Return the answers of a server that does not serve."""
    unknown = dict.fromkeys(("answer_ms", "latency_ms", "fsync_ms", "zxid", "outstanding", "expired_sessions"), -1)
    return {**unknown, "mode": "", "trouble": trouble, "silent_ms": silent_ms}


def one_lost() -> Ensemble:
    """Return an ensemble without its third server."""
    return ensemble((0, {"followers": 1, "synced_followers": 1}), (2, lost()))


def large(path: str, size_bytes: int) -> Ensemble:
    """Return an ensemble with a large znode."""
    return ensemble(large_znodes=(LargeZnode(path, size_bytes),))


def described(history: ZnodeHistory, newest: Ensemble, *, times: int = 1, **more: Any) -> None:
    """Let rounds pass with the same answers. Lost servers stay lost."""
    for _ in range(times):
        history.heartbeat(INTERVAL_MS, ensemble=newest, **more)
        later = (
            replace(server, silent_ms=server.silent_ms + INTERVAL_MS) if server.silent_ms >= 0 else server
            for server in newest.servers
        )
        newest = replace(newest, servers=tuple(later))
