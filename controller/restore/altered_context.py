"""Contexts that differ from a given one in one respect: by a request or a loss, for a question, or in quarantine."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Final

import msgspec

from controller.contract.ids import BrokerId, PartitionId, Zxid
from controller.contract.records import Record, RecordKind
from controller.events import controlled_shutdown
from controller.model.context import Context
from controller.model.published_rows import RowKinds
from controller.model.tally import GaugeCounts
from controller.model.topics import Partition
from controller.model.watch_state import Quarantines
from controller.transaction.conclusion import Conclusion, Outcome
from controller.transaction.transaction import Transaction
from wording.sentences import counted

# Twice the longest time between two requests for a complete read (`streaming/sources/newest_complete_reads.py`). A
# cluster that fails at each of these has not stopped failing.
_OVER_AFTER_MS: Final = 2 * 3_600_000

_PLACES_REMEMBERED: Final = 16


def quarantines_with(before: Quarantines, records: int, last: Record, place: str) -> Quarantines:
    """Return the cluster's failures with one more, of this number of records at this place in the code."""
    if last.observed_ms - before.last_ms > _OVER_AFTER_MS:
        before = Quarantines()
    is_kept = place in before.kept
    return Quarantines(
        before.times + 1,
        last.observed_ms,
        before.kept if is_kept else (*before.kept, place)[-_PLACES_REMEMBERED:],
        before.unkept + records if is_kept else before.unkept,
    )


def quarantine(unknown: Context, quarantines: Quarantines, last: Record, why: str) -> Outcome:
    """Return the context after the last failed record, with its alert. `unknown` is a context without topics."""
    if quarantines.times > 1:
        why += f", failure {quarantines.times} in a row"
    if quarantines.unkept:
        why += f". {counted(quarantines.unkept, 'record', 'is')} not kept in `refused`"
    header = unknown.header.copy()
    header.feed.quarantined, header.feed.quarantines = why, quarantines
    return Conclusion(Transaction(Context(header, unknown.topics), last, RowKinds(gauges=True))).finish()


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
