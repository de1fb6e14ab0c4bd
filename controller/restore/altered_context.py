"""Contexts that differ from another one in one respect, for questions about a cluster that could be."""

from __future__ import annotations

from collections.abc import Collection, Mapping

import msgspec

from controller.model.context import Context
from controller.model.gauge_counts import GaugeCounts
from controller.model.topics import Partition


def with_partitions(context: Context, kept: Mapping[str, Mapping[int, Partition]]) -> Context:
    """Context in which these topics have these partitions alone; its gauges still count those that it lacks."""
    topics = context.topics.mutable_copy()
    for name, partitions in kept.items():
        topics.put(name, msgspec.structs.replace(context.topics[name], partitions=dict(partitions)))
    return Context(context.header, topics.freeze())


def with_gauges(context: Context, gauges: GaugeCounts) -> Context:
    """Context with these counts in place of its own."""
    header = context.header.copy()
    header.tally.gauges = gauges
    return msgspec.structs.replace(context, header=header)


def without_departures(context: Context, brokers: Collection[int]) -> Context:
    """Context that does not remember when these brokers left; they are away as before."""
    header, last = context.header.copy(), context.header.departures.last
    header.departures.last = {broker: departure for broker, departure in last.items() if broker not in brokers}
    return msgspec.structs.replace(context, header=header)
