"""Random histories of operations drawn by a seed, played against the model and the core, and shrunk on a failure."""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final

from lab.modelled_cluster.checks import BrokenPropertyError, Checked
from lab.modelled_cluster.cluster import Cluster
from lab.modelled_cluster.forwarder import Forwarder, Gap
from lab.modelled_cluster.operations import OPERATIONS, Players

Release = tuple[int, int]
Operation = tuple[str, tuple[int, ...]]

RELEASES: Final[tuple[Release, ...]] = (
    (0, 10), (0, 11), (1, 0), (1, 1), (2, 0), (2, 1), (2, 2), (2, 3), (2, 4), (2, 5), (2, 6), (2, 7), (2, 8), (3, 1),
    (3, 3), (3, 4), (3, 9),
)  # fmt: skip
_WEIGHTS: Final = {name: weight for name, (weight, _) in OPERATIONS.items()}
_MIGRATING: Final = _WEIGHTS | {"quorum_arrives": 8, "kraft_claims": 8}
_WATCHERS: Final = ("time_passes", "read_everything", "gap_begins", "gap_ends", "restore", "windows")
_DENSE: Final = 0.05  # of all passages are a gap in which much happens
_ARGUMENTS: Final = 4
_AT_REST_MS: Final = 130_000


@dataclass(frozen=True)
class History:
    """Cluster of a release, and the operations on it, in order."""

    release: Release
    is_told: bool  # whether the core is given the release, because otherwise it must infer the release
    reads_log: bool
    names_zxids: bool  # whether events name the zxid of their change, as from ZooKeeper 3.9 on
    deletes_topics: bool  # delete.topic.enable
    last_gap: Gap | None  # the gap in which the cluster comes to rest, None if it is watched meanwhile
    salt: int
    operations: tuple[Operation, ...]


@dataclass(frozen=True)
class Failure:
    """Property that a history breaks, with the number of records until then."""

    name: str
    text: str
    records: int


def drawn(seed: int) -> History:
    """Draw the history of a seed."""
    draw = random.Random(seed)
    count = draw.randint(4, 40)
    release = draw.choice(RELEASES)
    weights = _MIGRATING if release >= (3, 4) and draw.random() < 0.4 else _WEIGHTS
    operations: list[Operation] = []
    while len(operations) < count:
        operations += _dense_gap(draw, weights) if draw.random() < _DENSE else [_operation(draw, weights)]
    return History(
        release=release,
        is_told=draw.random() < 0.7,
        reads_log=draw.random() < 0.1,
        names_zxids=draw.random() < 0.3,
        deletes_topics=draw.random() < 0.9,
        last_gap=draw.choice((*Gap, *Gap, None, None)),
        salt=draw.randrange(1 << 16),
        operations=tuple(operations),
    )


def _operation(draw: random.Random, weights: Mapping[str, int]) -> Operation:
    name = draw.choices(tuple(weights), tuple(weights.values()))[0]
    return name, tuple(draw.randrange(1 << 16) for _ in range(_ARGUMENTS))


def _dense_gap(draw: random.Random, weights: Mapping[str, int]) -> list[Operation]:
    """Draw a gap in which up to twelve things happen, and no time passes."""
    happens = {name: weight for name, weight in weights.items() if name not in _WATCHERS}
    begin, end = ({name: 1} for name in ("gap_begins", "gap_ends"))
    return [_operation(draw, each) for each in (begin, *[happens] * draw.randint(2, 12), end)]


@dataclass
class Played:
    """History that was played, with the core's side, the model, and whether its end was judged."""

    checked: Checked
    cluster: Cluster
    is_judged: bool = False


def play(history: History) -> Played:
    """Play a history. Raise BrokenPropertyError."""
    settings = {"delete.topic.enable": history.deletes_topics}
    cluster = Cluster(history.release, history.salt, deletes_topics=history.deletes_topics)
    checked = Checked(history.release if history.is_told else None, settings)
    forwarder = Forwarder(
        cluster.zookeeper, checked.apply, reads_log=history.reads_log, names_zxids=history.names_zxids
    )
    players = Players(cluster, forwarder, checked)
    played = Played(checked, cluster)
    for topic in range(2):
        players.create_topic(topic, 2, topic, 0)
    cluster.work(100)
    forwarder.read_everything()
    for name, arguments in history.operations:
        OPERATIONS[name][1](players, *arguments)
        if forwarder.sees_all:
            checked.check_znodes(cluster.zookeeper.znodes)
    forwarder.gathers = False
    if history.last_gap is None:
        forwarder.catch_up()
    else:
        forwarder.lose(history.last_gap)
    forwarder.flush()
    played.is_judged = _end(played, forwarder)
    checked.check_other_ways()
    return played


def _end(played: Played, forwarder: Forwarder) -> bool:
    cluster, checked = played.cluster, played.checked
    for moves_controller in (False, True):
        cluster.settle(moves_controller=moves_controller)
        forwarder.catch_up()
        for _ in range(2):
            cluster.zookeeper.now_ms += 1_000
            forwarder.heartbeat()
        checked.check_znodes(cluster.zookeeper.znodes)
        if cluster.is_healthy():
            break
    else:
        return False
    for _ in range(10):
        cluster.zookeeper.now_ms += _AT_REST_MS // 10
        forwarder.heartbeat()
    checked.check_at_rest(cluster.zookeeper.znodes)
    return True


def failure_of(history: History) -> Failure | None:
    """Play a history. Return the property that it breaks."""
    try:
        play(history)
    except BrokenPropertyError as error:
        return Failure(error.name, str(error), 0)
    return None


def shrunk(history: History, failure: Failure) -> tuple[History, Failure]:
    """Remove operations as long as the history breaks the same property."""
    size = max(1, len(history.operations) // 2)
    while size:
        begin = 0
        while begin < len(history.operations):
            fewer = history.operations[:begin] + history.operations[begin + size :]
            found = _failure_with(history, fewer)
            if found is not None and found.name == failure.name:
                history, failure = _with(history, fewer), found
            else:
                begin += size
        size //= 2
    return history, failure


def _with(history: History, operations: Sequence[Operation]) -> History:
    return replace(history, operations=tuple(operations))


def _failure_with(history: History, operations: Sequence[Operation]) -> Failure | None:
    return failure_of(_with(history, operations))
