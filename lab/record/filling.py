"""Topics of a large cluster, written in transactions within seconds, before any broker starts.

Their shapes and znodes belong here. `large` acts on them.
"""

from __future__ import annotations

import random
from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from kazoo.client import KazooClient

from lab.record.topics import encoded

REPLICATION_FACTOR = 3
_SIZES = (20, 50, 100, 100, 200, 400)
_NEAR_SIZE = 50
_CREATIONS_A_TRANSACTION = 200
_EPOCH = 1  # of the controller that is taken to have made them


class NewTopic(NamedTuple):
    """A topic to be made."""

    name: str
    assignment: dict[int, list[int]]
    config: dict[str, str]


def topics_on(
    draw: random.Random, prefix: str, brokers: Sequence[int], partitions: int, sizes: Sequence[int] = _SIZES
) -> Iterator[NewTopic]:
    """Yield topics with this many partitions in all on these brokers, with drawn configurations."""
    number, left = 0, partitions
    while left > 0:
        number += 1
        size = min(left, draw.choice(sizes))
        left -= size
        replication_factor = min(REPLICATION_FACTOR, len(brokers))
        assignment = {partition: draw.sample(brokers, replication_factor) for partition in range(size)}
        yield NewTopic(f"{prefix}{number}", assignment, drawn_config(draw))


def first_topics(
    draw: random.Random, real: Sequence[int], registered: Sequence[int], partitions: int, near: int
) -> Iterator[NewTopic]:
    """Yield the cluster's topics, with `near` partitions on the real brokers and the others on the registered ones."""
    yield from topics_on(draw, "near-", real, near, (_NEAR_SIZE,))
    yield from topics_on(draw, "far-", registered, partitions - near)


def drawn_config(draw: random.Random) -> dict[str, str]:
    """Draw unclean election for one topic in five, and at least two in-sync replicas for another."""
    return draw.choice(
        ({}, {}, {}, {"unclean.leader.election.enable": "true"}, {"min.insync.replicas": str(REPLICATION_FACTOR - 1)})
    )


def fill(client: KazooClient, topics: Iterator[NewTopic]) -> None:
    """Write the topics, with a leader for each partition and all its replicas in sync."""
    for parent in ("/brokers/ids", "/brokers/topics", "/config/topics"):
        client.ensure_path(parent)
    client.create("/controller_epoch", str(_EPOCH).encode())
    for topic in topics:
        make(client, topic)


def make(client: KazooClient, topic: NewTopic) -> None:
    """Write a topic with the states that a controller gives it."""
    path = f"/brokers/topics/{topic.name}"
    partitions = {str(partition): replicas for partition, replicas in topic.assignment.items()}
    creations: dict[str, object] = {
        f"/config/topics/{topic.name}": {"version": 1, "config": topic.config},
        path: {"version": 1, "partitions": partitions},
        f"{path}/partitions": None,
    }
    for partition, replicas in topic.assignment.items():
        creations[f"{path}/partitions/{partition}"] = None
        creations[f"{path}/partitions/{partition}/state"] = _state(replicas)
    _create(client, creations)


def _state(replicas: list[int]) -> Mapping[str, object]:
    return {"controller_epoch": _EPOCH, "leader": replicas[0], "version": 1, "leader_epoch": 0, "isr": replicas}


def _create(client: KazooClient, creations: Mapping[str, object]) -> None:
    """Create the znodes in this order, many in a transaction. Raise the first error."""
    waiting = list(creations.items())
    while waiting:
        transaction = client.transaction()
        for path, value in waiting[:_CREATIONS_A_TRANSACTION]:
            transaction.create(path, b"" if value is None else encoded(value))
        del waiting[:_CREATIONS_A_TRANSACTION]
        for result in transaction.commit():
            if isinstance(result, Exception):
                raise result
