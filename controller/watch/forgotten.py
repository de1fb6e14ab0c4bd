"""Forgotten cluster, whose alerts end, whose rows are void, and whose state is unknown until it is watched again."""

from __future__ import annotations

from typing import Final

from controller.alerts import lifecycle
from controller.contract.metadata_rows import BeginningRow
from controller.contract.records import Record
from controller.model.context import BOOTSTRAPPING, Context, Header
from controller.model.topics import Topics
from controller.transaction.transaction import Outcome, Transaction

_ENDING: Final = "the cluster was forgotten (`kontrast forget`), so Kontrast no longer watches it"


def forget(context: Context, record: Record) -> Outcome:
    """Forget the cluster except its place in the order, so that earlier writes come too late."""
    tx = Transaction(context, record)
    tx.header.phase, tx.header.events = BOOTSTRAPPING, {}  # prevents other conclusions
    lifecycle.resolve_all(tx, _ENDING)
    tx.effects.append(BeginningRow(*tx.stamp(), forgotten=True))
    before = tx.finish().header
    profile = before.profile if before.configuration.profile_is_set else None
    header = Header(before.cluster, before.chunk_count)
    header.configure(before.configuration.given, profile, before.preferred_controllers)
    header.position, header.feed.forgotten = before.position, True
    return Outcome(Context(header, Topics.emptied(before.chunk_count)), tuple(tx.effects))
