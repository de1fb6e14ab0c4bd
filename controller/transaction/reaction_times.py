"""Reaction times of the controller, from an event's cause to its first and its last write in ZooKeeper.

Only events whose cause was seen before their writes count. An event that was inferred from a write has no beginning.
"""

from __future__ import annotations

from bisect import bisect_left
from typing import Final

import msgspec

from controller.contract.gauges_row import REACTION_BUCKETS_MS, ReactionTimes, SlowReaction
from controller.model.context import Header
from controller.model.event import Event

_SLOWEST: Final = 5


def wrote(header: Header, event: Event, now_ms: int) -> None:
    """Measure an observed write of the event. `event` already counts the write as seen."""
    if event.first_write_ms:
        return
    event.first_write_ms = now_ms
    taken_ms = max(0, now_ms - event.time_ms)
    times = header.reactions.by_event.get(event.kind.value, ReactionTimes())
    first = _counted(times.first, taken_ms)
    _keep(header, event, msgspec.structs.replace(times, first=first, first_sum_ms=times.first_sum_ms + taken_ms))


def done(header: Header, event: Event) -> None:
    """Measure the event as a whole, once its writes are over and at least one was seen."""
    taken_ms = max(0, event.last_write_ms - event.time_ms)
    times = header.reactions.by_event[event.kind.value]
    last = _counted(times.last, taken_ms)
    _keep(header, event, msgspec.structs.replace(times, last=last, last_sum_ms=times.last_sum_ms + taken_ms))
    slow = SlowReaction(
        event.kind.value,
        event.cause,
        event.zxid,
        event.time_ms,
        event.epoch,
        max(0, event.first_write_ms - event.time_ms),
        taken_ms,
    )
    by_duration = sorted((*header.reactions.slowest, slow), key=lambda reaction: -reaction.last_ms)
    header.reactions.slowest = tuple(by_duration[:_SLOWEST])


def _keep(header: Header, event: Event, times: ReactionTimes) -> None:
    header.reactions.by_event = {**header.reactions.by_event, event.kind.value: times}


def _counted(counts: tuple[int, ...], taken_ms: int) -> tuple[int, ...]:
    at = bisect_left(REACTION_BUCKETS_MS, taken_ms)
    return (*counts[:at], counts[at] + 1, *counts[at + 1 :])
