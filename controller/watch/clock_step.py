"""Alert that the forwarder's wall clock was set, with the clock, the step, and its effect on shown times.

`model/clock.py` recognises the step, and keeps deadlines from following it.
"""

from __future__ import annotations

from controller.alerts import occurrences
from controller.contract.alert_kinds import kinds
from controller.contract.forwarder_status import decode_status
from controller.model.mutable_state import MutableState
from wording.times import duration


def note(state: MutableState, *, of_another_generation: bool) -> None:
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
