"""The ZooKeeper ensemble in numbers and sentences: quorum, servers in trouble, distance to limits."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from controller.contract.forwarder_status import Ensemble, ZooKeeperServer
from controller.model.brokers import Broker
from controller.model.context import Header
from wording.sentences import counted, joined, plural
from wording.times import time_of_day

ZXID_COUNTER: Final = 0xFFFFFFFF
"""Largest counter of changes in a zxid's low 32 bits. The leader resigns there."""

# A description is void after three missed rounds, each with the longest wait for servers that do not answer.
_MISSED_ROUNDS: Final = 3
_ROUND_MS: Final = 30_000
_CONFIRMED_MS: Final = 4_000  # a round two seconds after another, and its answers


def ensemble_at(ensemble: Ensemble, now_ms: int) -> Ensemble | None:
    """Return the description, None if it is too old or Kontrast does not ask the servers."""
    valid_ms = _MISSED_ROUNDS * ensemble.interval_ms + _ROUND_MS
    return ensemble if ensemble.asked_ms and now_ms - ensemble.asked_ms <= valid_ms else None


def kept_its_connection(header: Header, gone: Broker) -> bool:
    """Return whether the ensemble listed the connection of a session though its owner had been silent.

    A session expires at the earliest two thirds of its time-out after the loss of its connection. A round that misses
    the connection is followed by a round that confirms it.
    """
    newest, timeout_ms = header.ensemble.newest, header.settings.zookeeper_session_timeout_ms
    ago_ms = header.time_ms - newest.asked_ms
    lists_connections = newest.servers and all(
        server.mode and "dump" not in server.refused for server in newest.servers
    )
    if not lists_connections or not _CONFIRMED_MS <= ago_ms < 2 * timeout_ms // 3:
        return False
    return all(left.session != gone.session for left in newest.left_sessions)


def lost_servers(ensemble: Ensemble) -> tuple[ZooKeeperServer, ...]:
    """Return voting servers that do not serve any more."""
    return tuple(server for server in ensemble.servers if server.votes and server.silent_ms >= 0)


def voters_in_sync(ensemble: Ensemble) -> int:
    """Return the number of voting servers in sync, the leader included.

    The leader's own count is used if Kontrast may ask for it, because it has servers that are silent only to Kontrast.
    """
    leader = ensemble.leader
    if leader is not None and leader.synced_followers >= 0:
        return min(ensemble.voters, leader.synced_followers + 1)
    return max(0, ensemble.voters - len(lost_servers(ensemble)))


def trouble_sentence(server: ZooKeeperServer, asked_ms: int) -> str:
    """Return the server's trouble, with its last good answer if known. `asked_ms` is the wall time of the answers."""
    served = f", and served last at {time_of_day(asked_ms - server.silent_ms)}" if server.silent_ms >= 0 else ""
    return f"{server.address} {server.trouble}{served}"


def ensemble_sentence(ensemble: Ensemble, asked_ms: int) -> str:
    """Return the servers in trouble, the leader with its followers, and the questions that are not allowed."""
    return ". ".join(_clauses(ensemble, asked_ms))


def ensemble_in_words(header: Header) -> str:
    """Return the sentence of the newest description, empty if Kontrast does not ask."""
    ensemble = ensemble_at(header.ensemble.newest, header.time_ms)
    return "" if ensemble is None else ensemble_sentence(ensemble, header.wall_ms_of(ensemble.asked_ms))


def _clauses(ensemble: Ensemble, asked_ms: int) -> Iterator[str]:
    for server in ensemble.servers:
        if not server.mode:
            yield trouble_sentence(server, asked_ms)
    leader = ensemble.leader
    if leader is not None and leader.mode == "leader":
        others = max(0, ensemble.voters - 1)
        in_sync = max(0, voters_in_sync(ensemble) - 1)
        yield f"{leader.address} is leader with {in_sync} of {counted(others, 'follower')} in sync"
    elif leader is not None:
        yield f"{leader.address} stands alone"
    refused = sorted({word for server in ensemble.servers for word in server.refused})
    if refused:
        yield f"{joined(refused)} {plural(len(refused), 'is', 'are')} not allowed"
