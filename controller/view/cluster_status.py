"""Status of a cluster for its gauges, from the header's facts beside topics, brokers and /controller."""

from __future__ import annotations

from typing import Final

import msgspec

from controller.contract.gauges_row import ClusterStatus, PendingEvent
from controller.contract.znodes import ReassignmentEntry
from controller.model.context import Header
from controller.model.event import Event
from controller.rules.releases import release_word

_NAMED_EVENTS: Final = 50
_NAMED_ENTRIES: Final = 200  # each takes some 60 bytes of every heartbeat's row


def status_of(header: Header) -> ClusterStatus:
    """Return the status as of now."""
    term, configuration = header.term, header.configuration
    pending = [event for event in header.events.values() if event.writes_due]
    return ClusterStatus(
        read_ms=header.read.began_ms,
        acts=header.acting,
        term_epoch=term.epoch,
        term_broker=term.broker,
        duplicate_topic_ids=term.duplicate_topic_ids,
        reassign=_first(header.triggers.reassign),
        preferred=_first(header.triggers.preferred),
        reassign_unwatched=header.triggers.reassign_unwatched,
        poisoned=dict(header.former.poisoned),
        shutting_down=header.shutdowns.under_way,
        pending=tuple(map(_pending, pending[:_NAMED_EVENTS])),
        release=release_word(header.profile.release) if configuration.profile_is_set else "",
        evidence=msgspec.structs.asdict(configuration.evidence),
        settings=configuration.given,
        dynamic_settings=configuration.dynamic,
    )


def _first(entries: tuple[ReassignmentEntry, ...] | None) -> tuple[ReassignmentEntry, ...] | None:
    return None if entries is None else entries[:_NAMED_ENTRIES]


def _pending(event: Event) -> PendingEvent:
    return PendingEvent(event.id, event.kind.value, event.cause, event.zxid, event.time_ms, event.writes_due)
