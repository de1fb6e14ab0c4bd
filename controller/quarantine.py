"""A cluster whose records could not be applied: all that was known of it is given up until a complete read has come in.

Here belongs what is said of it meanwhile. That its records failed, and are kept, is the business of who applied them.
"""

from __future__ import annotations

from controller.context import Context
from controller.records import Record
from controller.step import Outcome
from controller.turn import Turn, replace


def quarantine(unknown: Context, last: Record, why: str) -> Outcome:
    """The context behind the last record that failed, and the alert that says so; `unknown` knows of no topic."""
    turn = Turn(Context(replace(unknown.header, quarantined=why), unknown.topics), last)
    turn.shows_gauges = True
    return Outcome(turn.finish(), tuple(turn.effects))
