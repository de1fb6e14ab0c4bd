"""Records of an older generation than the newest, which are dropped, clocks that were set, and forgotten clusters.

A deposed forwarder still sends a few records. One that keeps sending is either the only one, with a clock that was set
back, or a second one without an election. Without the alert its observations would be lost unnoticed.

`model/clock.py` recognises the step of a wall clock, and keeps deadlines from following it. A
forgotten cluster's alerts end, its rows are void, and its state is unknown until it is watched again.
"""

from __future__ import annotations

from typing import Final

from msgspec.structs import replace

from controller.alerts import lifecycle, occurrences
from controller.contract.forwarder_status import decode_status
from controller.contract.metadata_rows import BeginningRow
from controller.contract.records import Position, Record, RecordKind
from controller.model.context import BOOTSTRAPPING, Context, Header
from controller.model.mutable_state import MutableState
from controller.model.topics import Topics
from controller.model.watch_state import RefusedGeneration
from controller.says.alert_kinds import kinds
from controller.transaction.conclusion import Conclusion, Outcome
from controller.transaction.transaction import Transaction
from wording.times import duration

_PATIENCE_MS: Final = 60_000
# Rows about refused records are at the position of the newest applied record, so they need higher ordinals than its own
# rows, because a reader keeps a subject's newest row.
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
    # The stand-in takes the place of the newest applied record, so that neither position nor time moves.
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
    """Forget the refused generation once a newer generation is followed, or after a minute without refusals."""
    refused = header.feed.refused
    if refused is None:
        return
    if header.position.generation > last.generation or header.time_ms - refused.followed_ms > _PATIENCE_MS:
        header.feed.refused = None


def note_clock_step(state: MutableState, *, of_another_generation: bool) -> None:
    """Note that the wall clock was set before this record, or is another host's from this record on."""
    by, is_ahead = duration(abs(state.clock_set_by_ms)), state.clock_set_by_ms > 0
    before = state.header.clocks.wall_clock_of
    now = decode_status(state.record.content).clock_of if of_another_generation else before
    if now != before:
        step = f"times now go by the clock of {_named(now)}, at least {by} behind that of {_named(before)}"
    else:
        at_least = "at least " if of_another_generation else ""
        step = f"the clock of {_named(now)} was set {'ahead' if is_ahead else 'back'} by {at_least}{by}"
    off = f"times shown before are {by} too {'early' if is_ahead else 'late'}"
    occurrences.note(state, kinds.CLOCK_STEPPED, f"{step}: {off}. Deadlines are not affected")


def _named(whose: str) -> str:
    return whose or "the host of `kontrast watch`"


_ENDING: Final = "the cluster was forgotten (`kontrast forget`), so Kontrast no longer watches it"


def forget_cluster(context: Context, record: Record) -> Outcome:
    """Forget the cluster except its place in the order, so that earlier writes come too late."""
    tx = Transaction(context, record)
    conclusion = Conclusion(tx)
    tx.header.enter(BOOTSTRAPPING)  # prevents other conclusions
    tx.header.events = {}
    lifecycle.resolve_all(tx.header, tx.rows, _ENDING)
    tx.rows.effects.append(BeginningRow(*tx.rows.stamp(), forgotten=True))
    concluded = conclusion.finish()
    before = concluded.context.header
    profile = before.profile if before.configuration.profile_is_set else None
    header = Header(before.cluster, before.chunk_count)
    given = before.configuration.given
    header.configure(given, profile, before.preferred_controllers, before.topic_ranks, before.clean_stop_ms)
    header.position, header.feed.forgotten = before.position, True
    return Outcome(Context(header, Topics.emptied(before.chunk_count)), concluded.effects)
