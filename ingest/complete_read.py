"""Complete read of every recorded znode in few requests, a sweep of all znodes, and a search for other Kafka chroots.

The sweep reads a slice per heartbeat, because a server sends no event of a znode that an ACL hides from the session.
Without the sweep, the published value of such a znode would stay until the next write or connection, although it was
hidden or changed meanwhile.
"""

from __future__ import annotations

import dataclasses
import logging
import math
import threading
import time
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, TypeVar, cast

import msgspec

from controller.contract.decoding import JsonDecoder
from controller.contract.flaw import FoundFlaw
from controller.contract.forwarder_status import ForwarderStatus
from controller.contract.ids import UNKNOWN_ZXID, BrokerId, PartitionId
from controller.contract.records import Record, RecordKind, data_fields
from ingest.besides import look_besides
from ingest.config import IngestConfig, ZooKeeperConfig
from ingest.errors import IngestError, UnreachableError
from ingest.observed.inbox import Inbox
from ingest.observed.observations import Value
from ingest.observed.paths import (
    BROKERS,
    PARENTS,
    SINGLE_ZNODES,
    TOPICS,
    is_partition_state,
    partitions_path,
    rank,
    state_path,
    topic_path,
)
from ingest.observed.tree import PublishedTree
from ingest.zookeeper.client import WatchedZooKeeper
from ingest.zookeeper.ensemble import modes_of
from ingest.zookeeper.four_letter_words import MOST_CONNECTIONS, why_unreachable
from ingest.zookeeper.reading import ConnectionLostError, WatchMode

_LOG = logging.getLogger("kontrast.ingest.complete_read")

_STOP_CHECK_SECONDS = 0.2
_FIRST_WARNING_SECONDS = 2.0
_LOOK_AT_ADDRESS_SECONDS = 0.5  # a session begins within 10 ms on loopback, and within a few round trips elsewhere
_ONE_ENSEMBLE = "Ask one server at a time, and find out which one the brokers use"
_CHECK = "Check that it runs and that the address is right"
_TOPIC_DECODER: Final[JsonDecoder[dict[str, Any]]] = JsonDecoder(dict[str, Any])
_NODE = RecordKind.NODE  # because Python 3.11 takes 0.2 µs to find a member in its enum

# The parents whose children are named after topics.
_BY_TOPIC = (TOPICS, "/config/topics", "/admin/delete_topics")

# From its first start on (0.10 to 3.9) every Kafka cluster has the first znode and one of the others below its chroot.
_KAFKAS_CHILD = "brokers"
_KAFKAS_CHILDREN = frozenset({"admin", "config", "controller_epoch"})
_ZOOKEEPERS_OWN = "/zookeeper"
_LONGEST_CHROOT = 4  # the number of levels that are searched, with the root
_CHROOTS_LOOKED_AT = 2_000  # on each level


def read_everything(
    zookeeper: WatchedZooKeeper,
    show: Callable[[int, int], None] = lambda _count, _total: None,
    only_topics: Collection[str] | None = None,
) -> dict[str, Value]:
    """Return the value of each existing recorded znode. Raise ConnectionLostError.

    The values are not from one moment. Watches that were set before report later changes. `show` receives the number of
    reads and the total. `only_topics` excludes other topics, even their names.
    """
    listed = [parent for parent in PARENTS if only_topics is None or parent not in _BY_TOPIC]
    children = zookeeper.read_children(listed)
    if only_topics is not None:
        children |= {parent: sorted(only_topics) for parent in _BY_TOPIC}
    below_parents = [f"{parent}/{child}" for parent in PARENTS for child in children.get(parent, [])]
    topics = children.get(TOPICS, [])
    paths = [*SINGLE_ZNODES, *below_parents, *_states(zookeeper, topics)]
    values = zookeeper.read_values(paths, lambda count: show(count, len(paths))).values
    for absent in [path for path, value in values.items() if value is None]:
        del values[absent]
    return cast("dict[str, Value]", values)


def _states(zookeeper: WatchedZooKeeper, topics: Collection[str]) -> list[str]:
    """Return the states of the topics' partitions. Raise ConnectionLostError."""
    partitions = zookeeper.read_children([partitions_path(topic) for topic in topics])
    return [state_path(topic, number) for topic in topics for number in partitions.get(partitions_path(topic), [])]


@dataclass(frozen=True, slots=True)
class CompleteRead:
    """Result of one complete read, with the znodes' values by path, and the paths that an ACL hides."""

    values: Mapping[str, Value]
    forbidden: frozenset[str] = frozenset()
    flaws: Mapping[str, FoundFlaw] | None = None  # of znodes beside these, None if nobody looked

    @property
    def written_ms(self) -> dict[str, int]:
        """Return when each znode was last written, by ZooKeeper's clock."""
        return {path: value.mtime_ms for path, value in self.values.items()}

    def records(self, cluster: str) -> list[Record]:
        """Return the records of a complete read, as a forwarder would have written them just now."""
        now_ms = time.time_ns() // 1_000_000
        newest = max((value.mzxid for value in self.values.values()), default=UNKNOWN_ZXID)
        causes: list[str] = []
        states: list[str] = []  # in the order of the reads, because a topic's states are cheapest to store together
        for path in self.values:
            (states if is_partition_state(path) else causes).append(path)
        causes.sort(key=lambda path: (rank(path), self.values[path].mzxid))

        def bound(seq: int, kind: RecordKind) -> Record:
            return Record(cluster=cluster, generation=1, seq=seq, kind=kind, observed_ms=now_ms, zxid=newest)

        in_order = enumerate((*causes, *states), start=1)
        nodes = [_node(cluster, seq, now_ms, path, self.values[path]) for seq, path in in_order]
        begin = bound(0, RecordKind.SNAPSHOT_BEGIN)
        if self.flaws is not None:
            status = ForwarderStatus(flaws=dict(self.flaws))
            begin = msgspec.structs.replace(begin, data=msgspec.json.encode(status).decode())
        return [begin, *nodes, bound(len(nodes) + 1, RecordKind.SNAPSHOT_END)]

    def without(self, partitions: Mapping[str, Collection[PartitionId]]) -> CompleteRead:
        """Return the read of the same cluster if these partitions, by topic, were neither assigned nor had a state."""
        values = dict(self.values)
        for topic, numbers in partitions.items():
            path = topic_path(topic)
            values[path] = msgspec.structs.replace(values[path], data=_without_assignments(values[path].data, numbers))
            for number in numbers:
                values.pop(state_path(topic, str(number)), None)
        return CompleteRead(values, self.forbidden, self.flaws)


def _without_assignments(data: bytes | None, partitions: Collection[PartitionId]) -> bytes:
    content = _TOPIC_DECODER.decode(data or b"{}")
    assigned = content["partitions"].items()
    content["partitions"] = {number: replicas for number, replicas in assigned if int(number) not in partitions}
    return msgspec.json.encode(content)


def _node(cluster: str, seq: int, now_ms: int, path: str, value: Value) -> Record:
    data = data_fields(value.data)
    return Record(
        cluster=cluster,
        generation=1,
        seq=seq,
        kind=_NODE,
        observed_ms=now_ms,
        path=path,
        data=data.get("data"),
        data_base64=data.get("data_base64"),
        czxid=value.czxid,
        mzxid=value.mzxid,
        version=value.version,
        ephemeral_owner=value.ephemeral_owner,
        zxid=value.mzxid,
        ctime_ms=value.registered_ms,
    )


def read_once(
    config: ZooKeeperConfig,
    stop: threading.Event,
    show: Callable[[int, int], None] = lambda _count, _total: None,
    only_topics: Collection[str] | None = None,
) -> CompleteRead:
    """Read a cluster once, over a session without watches. Return an empty result if asked to stop.

    Read all topics or `only_topics`. If one of `only_topics` has no id, another topic is read too, because it shows
    whether topics have ids here. Retry after a lost connection. Raise IngestError if ZooKeeper is unreachable or
    unreadable.
    """

    def ask(zookeeper: WatchedZooKeeper) -> CompleteRead:
        values = read_everything(zookeeper, show, only_topics)
        asked = () if only_topics is None else only_topics
        read = [value for topic in asked if (value := values.get(f"{TOPICS}/{topic}")) is not None]
        if not all(b'"topic_id"' in (topic.data or b"") for topic in read):
            names = sorted(zookeeper.read_children([TOPICS]).get(TOPICS, ()))
            others = [name for name in names if name not in asked][:1]
            values = read_everything(zookeeper, show, {*asked, *others})
        return CompleteRead(values, zookeeper.forbidden, look_besides(zookeeper))

    return ask_once(config, stop, ask, CompleteRead({}))


def read_registered_brokers(config: ZooKeeperConfig, stop: threading.Event) -> frozenset[BrokerId]:
    """Return the brokers that are registered now. Raise IngestError if ZooKeeper is unreachable or unreadable."""

    def ask(zookeeper: WatchedZooKeeper) -> frozenset[BrokerId]:
        names = zookeeper.read_children([BROKERS]).get(BROKERS)
        if names is None:
            raise IngestError(f"{BROKERS} may not be listed, because its ACL does not let this session in")
        return frozenset(BrokerId(int(name)) for name in names if name.isdecimal())

    return ask_once(config, stop, ask, frozenset())


def find_chroots(config: ZooKeeperConfig, stop: threading.Event) -> list[str]:
    """Return the chroots with a Kafka cluster in this ensemble, "/" without a chroot. Raise IngestError."""
    return ask_once(dataclasses.replace(config, zookeeper=config.servers), stop, _search_chroots, [])


def _search_chroots(zookeeper: WatchedZooKeeper) -> list[str]:
    found: list[str] = []
    level = [""]
    for _ in range(_LONGEST_CHROOT):
        children = zookeeper.read_children([path or "/" for path in level[:_CHROOTS_LOOKED_AT]])
        clusters = {
            path for path, names in children.items() if _KAFKAS_CHILD in names and _KAFKAS_CHILDREN & set(names)
        }
        found += sorted(clusters)
        level = [
            f"{path.rstrip('/')}/{name}"
            for path, names in children.items()
            if path not in clusters
            for name in names
            if f"{path.rstrip('/')}/{name}" != _ZOOKEEPERS_OWN
        ]
    return found


_Found = TypeVar("_Found")


def ask_once(
    config: ZooKeeperConfig,
    stop: threading.Event,
    ask: Callable[[WatchedZooKeeper], _Found],
    nothing: _Found,
) -> _Found:
    """Return the answer over a session of its own, or `nothing` if asked to stop. Raise IngestError.

    Retry after a lost connection. Servers that are no ensemble have no answer, because the session's one is chance.
    """
    inbox, modes = Inbox(), modes_of(config)
    zookeeper = WatchedZooKeeper(config, inbox, stop, reads_once=True)
    try:
        zookeeper.start()
        patience_seconds = min(_LOOK_AT_ADDRESS_SECONDS, config.connect_timeout_seconds)
        if not inbox.wait(patience_seconds) and (why := why_unreachable(config.servers)) is not None:
            raise UnreachableError(f"ZooKeeper at {config.zookeeper} cannot be reached: {why}. {_CHECK}")
        wait_for_connection(config, zookeeper, inbox, stop)
        deadline = time.monotonic() + config.connect_timeout_seconds
        while not stop.is_set():
            try:
                zookeeper.begin_reading()
                found = ask(zookeeper)
                if apart := modes.result().apart:
                    raise IngestError(f"{apart}. {_ONE_ENSEMBLE}")
                return found
            except ConnectionLostError:
                zookeeper.check_login()
            if time.monotonic() >= deadline:
                raise IngestError(f"the connection to ZooKeeper at {config.zookeeper} was lost again and again")
            stop.wait(_STOP_CHECK_SECONDS)
        return nothing
    finally:
        zookeeper.close()


def wait_for_connection(
    config: ZooKeeperConfig,
    zookeeper: WatchedZooKeeper,
    inbox: Inbox,
    stop: threading.Event,
    warn_every_seconds: float = float("inf"),
) -> None:
    """Wait until the session begins, which is its first state, or until asked to stop. Raise UnreachableError.

    Raise IngestError for a refused login. A wait of more than two seconds is logged, and again at this interval.
    """
    began = time.monotonic()
    warn_at, deadline = began + _FIRST_WARNING_SECONDS, began + config.connect_timeout_seconds
    while not stop.is_set() and not inbox.wait(_STOP_CHECK_SECONDS):
        zookeeper.check_login()
        now = time.monotonic()
        if now >= deadline:
            raise UnreachableError(
                f"ZooKeeper at {config.zookeeper} could not be reached within {config.connect_timeout_seconds:g} s. "
                f"{_CHECK}, and that a server accepts more connections of this host than it has (maxClientCnxns, by "
                f"default {MOST_CONNECTIONS})"
            )
        if now >= warn_at:
            warn_at = now + warn_every_seconds
            seconds = deadline - now
            _LOG.warning("ZooKeeper at %s is not reachable, trying again for %.0f s", config.zookeeper, seconds)


_SHARE_OF_BUDGET = 0.5  # of the znodes that may be read, so that changes never wait for the sweep
_SOON_SECONDS = 50.0  # with a heartbeat and a round's odd slices, a hidden znode is named within a minute
# Measured: 9 µs of this process and 5 µs of the server for a znode of a MultiRead, 330 and 280 µs for a single read.
_MOST_A_SECOND = {WatchMode.PERSISTENT: 500, WatchMode.ONE_SHOT: 50}


class Sweep:
    """Rounds over the znodes of a tree and the lists of their parents.

    A round takes a minute. Where that is too many znodes a second, it takes up to `sweep_seconds`, and the single
    znodes, the lists and the brokers are read each minute beside it.
    """

    def __init__(self, config: IngestConfig, zookeeper: WatchedZooKeeper, tree: PublishedTree) -> None:
        self._config = config
        self._zookeeper = zookeeper
        self._tree = tree
        self._round: Iterator[list[str]] = iter(())
        self._heartbeats = 0

    def next_paths(self) -> list[str]:
        """Return the paths to read with this heartbeat's window. Raise ConnectionLostError, which ends the round."""
        if self._config.sweep_seconds is None:
            return []
        paths = next(self._round, None)
        if paths is None:
            self._round = self._paths(self._config.sweep_seconds)
            paths = next(self._round, [])
        self._heartbeats += 1
        if self._heartbeats % math.ceil(_SOON_SECONDS / self._config.heartbeat_seconds) == 0:
            brokers = self._zookeeper.read_children(PARENTS).get(BROKERS, [])
            paths = [*SINGLE_ZNODES, *(f"{BROKERS}/{broker}" for broker in brokers), *paths]
        return paths

    def _paths(self, most_seconds: float) -> Iterator[list[str]]:
        known = self._tree.known
        children = self._zookeeper.read_children(PARENTS)
        topics = children.get(TOPICS, [])
        size = self._slice(len(topics) + len(known), most_seconds)
        below = [f"{parent}/{child}" for parent, names in children.items() for child in names]
        yield from _slices([path for path in (*SINGLE_ZNODES, *below) if path not in known], size)
        for some in _slices(topics, size):
            yield [path for path in _states(self._zookeeper, some) if path not in known]
        yield from _slices(list(known), size)

    def _slice(self, znodes: int, most_seconds: float) -> int:
        heartbeat_seconds, budget = self._config.heartbeat_seconds, self._config.read_budget_znodes_per_second
        most = math.inf if budget is None else max(1.0, _SHARE_OF_BUDGET * budget * heartbeat_seconds)
        seconds = min(most_seconds, max(_SOON_SECONDS, znodes / _MOST_A_SECOND[self._zookeeper.watch_mode]))
        return math.ceil(min(most, max(1.0, znodes * heartbeat_seconds / seconds)))


def _slices(paths: Sequence[str], size: int) -> Iterator[list[str]]:
    for begin in range(0, len(paths), size):
        yield list(paths[begin : begin + size])
