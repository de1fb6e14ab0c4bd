"""Contexts that differ from a given context in one respect or by a request, for questions about imagined clusters."""

from __future__ import annotations

from collections.abc import Collection, Mapping

import msgspec

from controller.contract.ids import BrokerId, PartitionId, Zxid
from controller.contract.records import Record, RecordKind
from controller.events import controlled_shutdown
from controller.model.context import Context
from controller.model.published_rows import RowKinds
from controller.model.tally import GaugeCounts
from controller.model.topics import Partition
from controller.transaction.conclusion import Conclusion, Outcome
from controller.transaction.transaction import Transaction


def with_partitions(context: Context, kept: Mapping[str, Mapping[PartitionId, Partition]]) -> Context:
    """Return the context with only these partitions in these topics. Its gauges still count the omitted partitions."""
    topics = context.topics.mutable_copy()
    for name, partitions in kept.items():
        topics.put(name, msgspec.structs.replace(context.topics[name], partitions=dict(partitions)))
    return Context(context.header, topics.freeze())


def with_gauges(context: Context, gauges: GaugeCounts) -> Context:
    """Return the context with these counts in place of its own."""
    header = context.header.copy()
    header.tally.gauges = gauges
    return msgspec.structs.replace(context, header=header)


def without_departures(context: Context, brokers: Collection[BrokerId]) -> Context:
    """Return the context without the times when these brokers left. The brokers stay away."""
    header, last = context.header.copy(), context.header.departures.last
    header.departures.last = {broker: departure for broker, departure in last.items() if broker not in brokers}
    return msgspec.structs.replace(context, header=header)


def request_shutdown(context: Context, broker: BrokerId, *, shows_steps: bool = True) -> Outcome:
    """Let a broker send its ControlledShutdown request now, one millisecond after the last record.

    `shows_steps` is whether the caller needs the rows of transitions and requests.
    """
    header = context.header
    request = Record(
        cluster=header.cluster,
        generation=header.position.generation,
        seq=header.position.seq + 1,
        kind=RecordKind.HEARTBEAT,
        observed_ms=header.wall_ms + 1,
        zxid=Zxid(header.zxid + 1),
    )
    tx = Transaction(context, request, RowKinds(steps=shows_steps))
    conclusion = Conclusion(tx)
    controlled_shutdown.ask(tx, broker)
    return conclusion.finish()
