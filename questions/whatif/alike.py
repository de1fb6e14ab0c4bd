"""Partitions that lose brokers alike, counted, because clusters place many partitions on the same brokers."""

from __future__ import annotations

from collections import defaultdict
from typing import NamedTuple

from controller.contract.ids import BrokerId
from controller.view.health import needed_in_sync
from controller.view.types import Context, Partition


class Alike(NamedTuple):
    """Everything that decides the fate of a partition whose brokers are lost."""

    replicas: tuple[BrokerId, ...]
    isr: tuple[BrokerId, ...]  # its online replicas
    leader: BrokerId
    needed: int  # in-sync replicas that acks=all takes
    unclean: bool  # whether a replica that is not in sync may lead


class Group(NamedTuple):
    """A number of equal partitions with their topics."""

    partitions: int
    topics: frozenset[str]


def partitions_alike(context: Context) -> dict[Alike, Group]:
    """Return all led partitions by the facts that decide their fate, without topics in the deletion queue."""
    header = context.header
    live, rules, unclean = frozenset(header.brokers), header.counting_rules, header.allows_unclean_election
    found: dict[Alike, list[str]] = defaultdict(list)
    for name, topic in context.topics:
        if not topic.exists or topic.queued_for_deletion:
            continue
        may_be_unclean = unclean if topic.unclean_election is None else topic.unclean_election
        for partition in topic.partitions.values():
            value = partition.zk_state
            if value is not None and value.leader in live:
                isr = _online(value.isr, partition, live)
                needed = needed_in_sync(topic.min_insync_replicas, value.leader, len(partition.replicas), rules)
                found[Alike(partition.replicas, isr, value.leader, max(needed, 1), may_be_unclean)].append(name)
    return {alike: Group(len(names), frozenset(names)) for alike, names in found.items()}


def _online(isr: tuple[BrokerId, ...], partition: Partition, live: frozenset[BrokerId]) -> tuple[BrokerId, ...]:
    away = partition.offline_dirs
    if not away and live.issuperset(isr):
        return isr
    return tuple(member for member in isr if member in live and member not in away)
