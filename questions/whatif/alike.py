"""Partitions that the loss of brokers treats alike, counted: clusters place many partitions on the same brokers."""

from __future__ import annotations

from collections import defaultdict
from typing import NamedTuple

from controller.derived.health import needed_in_sync
from controller.model.context import Context
from controller.model.topics import Partition, Topic


class Alike(NamedTuple):
    """All that decides what becomes of a partition whose brokers are lost."""

    replicas: tuple[int, ...]
    isr: tuple[int, ...]  # those of it that are online
    leader: int
    needed: int  # in-sync replicas that acks=all takes
    unclean: bool  # whether a replica that is not in sync may lead


class Group(NamedTuple):
    """Partitions that are alike: how many, and of which topics."""

    partitions: int
    topics: frozenset[str]


def partitions_alike(context: Context) -> dict[Alike, Group]:
    """All led partitions by what decides their fate; topics that are queued for deletion are left out."""
    found: dict[Alike, list[str]] = defaultdict(list)
    for name, topic in context.topics:
        if not topic.exists or topic.queued_for_deletion:
            continue
        for partition in topic.partitions.values():
            alike = _alike(context, topic, partition)
            if alike is not None:
                found[alike].append(name)
    return {alike: Group(len(names), frozenset(names)) for alike, names in found.items()}


def _alike(context: Context, topic: Topic, partition: Partition) -> Alike | None:
    header, value = context.header, partition.zk_state
    if value is None or value.leader not in header.brokers:
        return None
    away = partition.offline_dirs
    isr = tuple(member for member in value.isr if member in header.brokers and member not in away)
    needed = needed_in_sync(topic.min_insync_replicas, value.leader, len(partition.replicas), header.counting_rules)
    unclean = header.allows_unclean_election if topic.unclean_election is None else topic.unclean_election
    return Alike(partition.replicas, isr, value.leader, max(needed, 1), unclean)
