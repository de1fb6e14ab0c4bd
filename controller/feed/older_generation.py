"""Records of an older generation than the newest that was followed: dropped, and told of where they do not stop.

A deposed forwarder still says a few. One that goes on saying them is the only one, with a clock that was set back, or a
second one that nobody elected: what it sees would go unseen without a word.
"""

from __future__ import annotations

from typing import Final

from controller.alerts import lifecycle
from controller.contract.records import Position, Record, RecordKind
from controller.model import clock
from controller.model.context import Context, Header
from controller.model.feed_state import RefusedGeneration
from controller.transaction.transaction import Transaction, replace

_PATIENCE_MS: Final = 60_000
# Rows of the newest record that was followed come before these: a reader keeps the newest place of each subject.
_ORDINAL: Final = 1_000_000


def refuse(context: Context, record: Record) -> Transaction | None:
    """Count a record as refused; a turn that publishes the alert when this has gone on for a minute.

    Heartbeats are what is measured: they come at a steady pace, with nothing in Kafka changing.
    """
    if record.kind is not RecordKind.HEARTBEAT or record.generation >= context.header.position.generation:
        return None
    known = context.header.feed.refused
    refused = _counted(known, record, context.header.time_ms)
    # It takes the place of the newest record that was followed, so that neither position nor time moves.
    header = context.header
    stand_in = replace(
        record,
        generation=header.position.generation,
        seq=header.position.seq,
        observed_ms=clock.wall_ms(header),
        steady_ms=header.clocks.steady_ms,
        zxid=header.zxid,
    )
    tx = Transaction(context, stand_in)
    tx.header.feed.refused = refused
    if refused.told and not (known and known.told):
        tx.publish_behind(_ORDINAL)
        lifecycle.judge(tx)  # and no gauges, which would pass for a heartbeat
    return tx


def _counted(known: RefusedGeneration | None, record: Record, followed_ms: int) -> RefusedGeneration:
    at_ms = record.observed_ms if record.steady_ms < 0 else record.steady_ms
    first_ms, told = at_ms, False
    if known is not None:
        told = known.told
        if known.generation == record.generation and 0 <= at_ms - known.last_ms <= _PATIENCE_MS:
            first_ms = known.first_ms
    told = told or at_ms - first_ms >= _PATIENCE_MS
    return RefusedGeneration(record.generation, first_ms, at_ms, followed_ms, told)


def forget_in_time(header: Header, last: Position) -> None:
    """Let go of what was refused once a newer generation is followed, or nothing was refused for a minute."""
    refused = header.feed.refused
    if refused is None:
        return
    if header.position.generation > last.generation or header.time_ms - refused.followed_ms > _PATIENCE_MS:
        header.feed.refused = None
