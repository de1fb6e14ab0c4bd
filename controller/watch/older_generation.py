"""Records of an older generation than the newest, which are dropped, with an alert if they do not stop.

A deposed forwarder still sends a few. A forwarder that keeps sending is either the only one, with a clock that was set
back, or a second one without an election. Without the alert its observations would be lost unnoticed.
"""

from __future__ import annotations

from typing import Final

from msgspec.structs import replace

from controller.alerts import lifecycle
from controller.contract.records import Position, Record, RecordKind
from controller.model.context import Context, Header
from controller.model.watch_state import RefusedGeneration
from controller.transaction.conclusion import Conclusion, Outcome
from controller.transaction.transaction import Transaction

_PATIENCE_MS: Final = 60_000
# Above the rows of the newest applied record, at whose position these are. A reader keeps a subject's newest row.
_ORDINAL: Final = 1_000_000


def refuse(context: Context, record: Record) -> Outcome | None:
    """Refuse a record of an older generation.

    Return the outcome, with the alert once this has lasted a minute. Only heartbeats are measured, because they
    come at a steady pace, even if Kafka is idle.
    """
    if record.kind is not RecordKind.HEARTBEAT or record.generation >= context.header.position.generation:
        return None
    before = context.header.feed.refused
    refused = _refused(before, record, context.header.time_ms)
    # It takes the place of the newest applied record, so that neither position nor time moves.
    header = context.header
    stand_in = replace(
        record,
        generation=header.position.generation,
        seq=header.position.seq,
        observed_ms=header.wall_ms,
        steady_ms=header.clocks.steady_ms,
        zxid=header.zxid,
    )
    tx = Transaction(context, stand_in)
    conclusion = Conclusion(tx)
    tx.header.feed.refused = refused
    if refused.alerts and not (before and before.alerts):
        tx.rows.number_from(_ORDINAL)
        lifecycle.judge(tx.state, tx.rows)  # but no gauges, which would pass for a heartbeat
    return conclusion.finish()


def _refused(before: RefusedGeneration | None, record: Record, followed_ms: int) -> RefusedGeneration:
    at_ms = record.observed_ms if record.steady_ms < 0 else record.steady_ms
    first_ms, alerts = at_ms, False
    if before is not None:
        alerts = before.alerts
        if before.generation == record.generation and 0 <= at_ms - before.last_ms <= _PATIENCE_MS:
            first_ms = before.first_ms
    alerts = alerts or at_ms - first_ms >= _PATIENCE_MS
    return RefusedGeneration(record.generation, first_ms, at_ms, followed_ms, alerts)


def forget_in_time(header: Header, last: Position) -> None:
    """Forget the refused generation once a newer one is followed, or after a minute without refusals."""
    refused = header.feed.refused
    if refused is None:
        return
    if header.position.generation > last.generation or header.time_ms - refused.followed_ms > _PATIENCE_MS:
        header.feed.refused = None
