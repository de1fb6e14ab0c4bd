"""Forgotten cluster, whose alerts end, whose rows are void, and whose state is unknown until it is watched again."""

from __future__ import annotations

from typing import Final

from controller.alerts import lifecycle
from controller.contract.metadata_rows import BeginningRow
from controller.contract.records import Record
from controller.model.context import BOOTSTRAPPING, Context, Header
from controller.model.topics import Topics
from controller.transaction.conclusion import Conclusion, Outcome
from controller.transaction.transaction import Transaction

_ENDING: Final = "the cluster was forgotten (`kontrast forget`), so Kontrast no longer watches it"


def forget(context: Context, record: Record) -> Outcome:
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
    header.configure(before.configuration.given, profile, before.preferred_controllers)
    header.position, header.feed.forgotten = before.position, True
    return Outcome(Context(header, Topics.emptied(before.chunk_count)), concluded.effects)
