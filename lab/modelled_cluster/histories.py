"""Random histories of operations drawn by a seed, played against the model and the core, and shrunk on a failure."""

from __future__ import annotations

import random
from collections.abc import Sequence
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
_NAMES: Final = tuple(OPERATIONS)
_WEIGHTS: Final = tuple(weight for weight, _ in OPERATIONS.values())
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
    operations = tuple(
        (draw.choices(_NAMES, _WEIGHTS)[0], tuple(draw.randrange(1 << 16) for _ in range(_ARGUMENTS)))
        for _ in range(count)
    )
    return History(
        release=draw.choice(RELEASES),
        is_told=draw.random() < 0.7,
        reads_log=draw.random() < 0.1,
        names_zxids=draw.random() < 0.3,
        deletes_topics=draw.random() < 0.9,
        last_gap=draw.choice((*Gap, *Gap, None, None)),
        salt=draw.randrange(1 << 16),
        operations=operations,
    )


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
