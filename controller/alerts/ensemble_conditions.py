"""Conditions of the ZooKeeper ensemble, from the newest description by its servers."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import Final

from controller.alerts.conditions import Condition
from controller.contract.alert_row import Severity
from controller.contract.forwarder_status import Ensemble, LargeZnode, LeftSession, ZooKeeperServer
from controller.model.context import Header
from controller.says.alert_kinds import kinds as kinds
from controller.says.alert_kinds.kinds import AlertKind
from controller.view.ensemble import ZXID_COUNTER, ensemble_at, lost_servers, trouble_sentence, voters_in_sync
from wording.sentences import counted, listed, plural
from wording.times import duration, time_of_day

GROUP: Final = "zookeeper"
_condition: Final = partial(Condition, group=GROUP)
_SERVERS_NAMED: Final = 2
_HOUR_MS: Final = 3_600_000
_DAY_MS: Final = 24 * _HOUR_MS

# A local disk forces a log in a few milliseconds, and ZooKeeper itself warns from 1 s on (fsync.warningthresholdms).
_SLOW_FSYNC_MS: Final = 100
_SLOW_ANSWER_MS: Final = 1_000
_LONG_QUEUE: Final = 100

# Alertmanager first waits for `group_wait`, 10 s for a warning in the example. A session that expires before would be
# resolved in the message that first names it, and nobody can act on it anyway.
_TOO_LATE_TO_ACT_MS: Final = 10_000

# A server has 2 s for each question, and a round needs two. More servers take no longer, because all are asked at once.
_ANSWERS_MS: Final = 5_000

# Shares of jute.maxbuffer. A znode below a quarter cannot reach the limit within a day without a person's notice.
_FULL: Final = 0.95
_NEARLY_FULL: Final = 0.8
_FOLLOWED: Final = 0.25


def conditions_of_ensemble(header: Header) -> Iterator[Condition]:
    """Yield the problems of the ensemble itself, known even while the forwarder has no session."""
    ensemble = ensemble_at(header.ensemble.newest, header.time_ms)
    if ensemble is not None:
        yield from filter(None, (check(header, ensemble) for check in (_quorum, _slow, _rollover)))
        yield from _near_limit(header, ensemble)


def until_cause_is_known_ms(header: Header) -> int | None:
    """Return how long a lost session waits for a round of questions, which shows whether the whole ensemble is lost.

    Return None if the servers were asked since, or are not asked.
    """
    ensemble = ensemble_at(header.ensemble.newest, header.time_ms)
    if ensemble is None or ensemble.asked_ms >= header.feed.disconnected_ms:
        return None
    return max(kinds.REPLICA_DISCONNECTED.patience_ms, ensemble.interval_ms + _ANSWERS_MS)


def conditions_of_left_sessions(header: Header) -> Iterator[Condition]:
    """Yield registered brokers whose sessions are connected to no server."""
    ensemble = ensemble_at(header.ensemble.newest, header.time_ms)
    for left in () if ensemble is None else ensemble.left_sessions:
        registered = header.brokers.get(left.broker)
        if registered is None or registered.session != left.session:
            continue
        blocked = _blocked(header, left)
        if blocked.id in header.alerts.open or not 0 <= left.expires_ms < _TOO_LATE_TO_ACT_MS:
            yield blocked


def _quorum(header: Header, ensemble: Ensemble) -> Condition | None:
    if ensemble.apart:
        return _condition(
            kind=kinds.ZOOKEEPER_NO_ENSEMBLE,
            cause=f"{ensemble.apart}, so brokers see one of them by chance",
            ending="the named servers are one ensemble",
        )
    lost, in_sync, needed = lost_servers(ensemble), voters_in_sync(ensemble), ensemble.voters // 2 + 1
    if header.feed.disconnected_ms and not any(server.mode for server in ensemble.servers):
        return _about_servers(
            header,
            kinds.ZOOKEEPER_NO_QUORUM,
            lost or ensemble.servers,
            "no ZooKeeper server serves. No broker can register, become controller or change an ISR",
            "a ZooKeeper server serves again",
            since_ms=header.feed.disconnected_ms,
        )
    behind = (*lost, *_behind(header, ensemble))
    if ensemble.voters > 1 and in_sync < ensemble.voters and in_sync <= needed:
        return _about_servers(
            header,
            kinds.ZOOKEEPER_QUORUM_AT_RISK,
            behind,
            f"{in_sync} of {ensemble.voters} ZooKeeper servers are in sync, and one more loss stops ZooKeeper",
            "enough ZooKeeper servers are in sync",
        )
    if not behind and in_sync >= ensemble.voters:
        return None
    effect = f"{in_sync} of {ensemble.voters} ZooKeeper servers are in sync"
    if in_sync >= ensemble.voters:
        effect = f"brokers that are connected to {plural(len(behind), 'it', 'them')} read old metadata"
    return _about_servers(
        header, kinds.ZOOKEEPER_SERVER_LAGS, behind, effect, "all ZooKeeper servers are in sync with the leader"
    )


def _behind(header: Header, ensemble: Ensemble) -> list[ZooKeeperServer]:
    """Return followers that lack changes which the leader had already in the previous round."""
    known = header.ensemble.leader_zxid_before
    followers = (server for server in ensemble.servers if server.mode in ("follower", "observer"))
    return [server for server in followers if 0 <= server.zxid < known]


def _about_servers(  # noqa: PLR0913 (the parts of the condition)
    header: Header,
    kind: AlertKind,
    servers: tuple[ZooKeeperServer, ...],
    effect: str,
    ending: str,
    since_ms: int | None = None,
) -> Condition:
    """Return a condition of these servers. Without `since_ms` it began when the first of them was seen to fail.

    The last good answer of a server is up to a round of questions earlier.
    """
    asked_ms = header.ensemble.newest.asked_ms
    evidence = tuple(
        f"{server.address} is at zxid {server.zxid:#x}, the leader was at {header.ensemble.leader_zxid_before:#x}"
        if server.mode
        else trouble_sentence(server, header.wall_ms_of(asked_ms))
        for server in servers
    )
    return _condition(
        kind=kind,
        cause=f"{_named(servers)}: {effect}",
        ending=ending,
        since_ms=since_ms,
        evidence=evidence,
    )


def _named(servers: tuple[ZooKeeperServer, ...]) -> str:
    if not servers:
        return "a ZooKeeper server is not in sync"
    said = [
        f"{server.address} {'is behind the leader' if server.mode else server.trouble}"
        for server in servers[:_SERVERS_NAMED]
    ]
    more = len(servers) - _SERVERS_NAMED
    return " and ".join(said) + (f", and {more} more" if more > 0 else "")


def _slow(_: Header, ensemble: Ensemble) -> Condition | None:
    slow = [(server, why) for server in ensemble.servers if (why := _slowness(server))]
    if not slow:
        return None
    server, why = slow[0]
    return _condition(
        kind=kinds.ZOOKEEPER_SLOW,
        cause=f"{server.address} {why}: elections and ISR changes take longer, and sessions of brokers may expire",
        ending="every ZooKeeper server is fast again",
        evidence=tuple(
            f"{server.address} {why}: fsync {server.fsync_ms:g} ms, answer {server.answer_ms:g} ms, "
            f"{counted(server.outstanding, 'request')} in its queue"
            for server, why in slow
        ),
    )


def _slowness(server: ZooKeeperServer) -> str:
    """Return the predicate of a slow server, without numbers that change with each round."""
    if server.fsync_ms >= _SLOW_FSYNC_MS:
        return f"needs more than {_SLOW_FSYNC_MS} ms to force its log to disk"
    if server.answer_ms >= _SLOW_ANSWER_MS:
        return f"needs more than {_SLOW_ANSWER_MS} ms to answer"
    return f"has more than {_LONG_QUEUE} requests in its queue" if server.outstanding >= _LONG_QUEUE else ""


def _rollover(header: Header, ensemble: Ensemble) -> Condition | None:
    counter = header.ensemble.zxid & ZXID_COUNTER
    left_ms = header.ensemble.zxid_pace.until_ms(ZXID_COUNTER, counter, ensemble.asked_ms)
    if left_ms is None or left_ms > _DAY_MS:
        return None
    leader = ensemble.leader
    return _condition(
        kind=kinds.ZXID_ROLLOVER,
        cause=f"ZooKeeper's leader{'' if leader is None else f' {leader.address}'} resigns {_in_time(left_ms)} because "
        "its counter of changes is full: brokers lose ZooKeeper for seconds",
        ending="a new leader counts from zero, or fewer changes come",
        evidence=(f"the counter is {counter:,} of {ZXID_COUNTER:,}",),
    )


def _near_limit(header: Header, ensemble: Ensemble) -> Iterator[Condition]:
    limit = ensemble.jute_maxbuffer_bytes
    for znode in ensemble.large_znodes:
        pace = header.ensemble.znode_paces.get(znode.path)  # a context from rows has no former sizes
        left_ms = None if pace is None else pace.until_ms(limit, znode.size_bytes, ensemble.asked_ms)
        is_growing = left_ms is not None and left_ms <= _DAY_MS and znode.size_bytes >= _FOLLOWED * limit
        if is_growing or znode.size_bytes >= _NEARLY_FULL * limit:
            yield _large(znode, limit, left_ms)


def _large(znode: LargeZnode, limit: int, left_ms: int | None) -> Condition:
    reached = "" if left_ms is None else f", and reaches the limit {_in_time(left_ms)}"
    percent = znode.size_bytes * 20 // max(1, limit) * 5  # in steps of 5 %, because the size grows
    is_page = znode.size_bytes >= _FULL * limit or (left_ms is not None and left_ms <= _HOUR_MS)
    return _condition(
        kind=kinds.ZNODE_NEAR_LIMIT,
        subject=f"znode {znode.path}",
        cause=f"{znode.path} has {percent} % of jute.maxbuffer{reached}: beyond it the controller "
        "cannot read it and loses its session",
        ending="the znode is small enough",
        severity=Severity.PAGE if is_page else None,
        evidence=(f"{znode.size_bytes:,} of {limit:,} bytes",),
    )


def _blocked(header: Header, left: LeftSession) -> Condition:
    when = "after its timeout, which is unknown"
    if left.expires_ms >= 0:
        moment_ms = header.wall_ms_of(header.ensemble.newest.asked_ms) + left.expires_ms
        when = f"in {duration(left.expires_ms // 1_000 * 1_000)}, at {time_of_day(moment_ms)}"
    return Condition(
        kind=kinds.BROKER_BLOCKED,
        subject=listed((left.broker,)),
        group=listed((left.broker,)),
        cause=f"broker {left.broker} has no connection to ZooKeeper and cannot register again: its old session "
        f"{left.session:#x} owns /brokers/ids/{left.broker} and expires {when}",
        ending="the session is connected again, or has expired",
        broker=left.broker,
    )


def _in_time(left_ms: int) -> str:
    """Return a time in the future, coarsely, because it changes with each round."""
    return f"in about {counted(left_ms // _HOUR_MS, 'hour')}" if left_ms >= _HOUR_MS else "within an hour"
