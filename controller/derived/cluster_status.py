"""Status of a cluster for its gauges, and the header that follows from it: all but topics, brokers and /controller."""

from __future__ import annotations

from typing import Final

import msgspec

from controller.contract.gauges_row import ClusterStatus, PendingEvent
from controller.model.context import Header
from controller.model.event import Event, EventKind
from controller.rules.releases import Evidence, profile_of, read_release, release_word

_NAMED_EVENTS: Final = 50
_KINDS: Final = {kind.value: kind for kind in EventKind}


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
        poisoned=header.former.poisoned,
        shutting_down=header.shutdowns.under_way,
        pending=tuple(map(_pending, pending[:_NAMED_EVENTS])),
        release=release_word(header.profile.release) if configuration.profile_is_set else "",
        evidence=msgspec.structs.asdict(configuration.evidence),
        settings=configuration.given,
        dynamic_settings=configuration.dynamic,
    )


def _pending(event: Event) -> PendingEvent:
    return PendingEvent(event.id, event.kind.value, event.cause, event.zxid, event.time_ms, event.writes_due)


def take_status(header: Header, status: ClusterStatus) -> None:
    """Give the header the facts of the status; its controller and controller epoch are known already."""
    header.read.began_ms = status.read_ms
    header.term.active, header.term.epoch, header.term.broker = status.acts, status.term_epoch, status.term_broker
    header.term.duplicate_topic_ids = status.duplicate_topic_ids
    header.former.poisoned = status.poisoned
    header.shutdowns.under_way = status.shutting_down
    known = {field.name for field in msgspec.structs.fields(Evidence)}
    header.configuration.evidence = Evidence(**{name: n for name, n in status.evidence.items() if name in known})
    header.configuration.given, header.configuration.dynamic = status.settings, status.dynamic_settings
    header.expect(profile_of(read_release(status.release)) if status.release else None)
    header.configuration.unclean_as_judged = header.allows_unclean_election
    header.events = {pending.id: _event(pending, header) for pending in status.pending}
    header.next_event = max(header.events, default=-1) + 1


def _event(pending: PendingEvent, header: Header) -> Event:
    return Event(
        id=pending.id,
        kind=_KINDS.get(pending.event, EventKind.UNEXPLAINED),
        cause=pending.cause,
        zxid=pending.zxid,
        time_ms=pending.time_ms,
        epoch=header.controller_epoch,
        due=[pending.writes],
        begun=True,
        pending=pending.writes,
        controller=header.controller,
    )
