"""A cluster whose records could not be applied: all that was known of it is given up until a complete read has come in.

Here belongs what is said of it meanwhile, and of which failures the records are kept: of the first at each place in the
code, or a cluster that fails over every complete read would fill the output `refused`. That its records failed, and
how often a complete read is asked for, is the business of who applied them.
"""

from __future__ import annotations

from typing import Final

from controller.alerts.conditions import counted
from controller.contract.records import Record
from controller.model.context import Context
from controller.model.feed_state import Quarantines
from controller.transaction.transaction import Outcome, Transaction

# Twice the longest time between two requests for a complete read (`streaming.sources.complete_read_requests`): what
# fails at each of them has not stopped failing.
_OVER_AFTER_MS: Final = 2 * 3_600_000

_PLACES_REMEMBERED: Final = 16


def quarantines_with(before: Quarantines, records: int, last: Record, place: str) -> Quarantines:
    """The cluster's failures with this one: of so many records, at this place in the code."""
    if last.observed_ms - before.last_ms > _OVER_AFTER_MS:
        before = Quarantines()
    known = place in before.kept
    return Quarantines(
        before.times + 1,
        last.observed_ms,
        before.kept if known else (*before.kept, place)[-_PLACES_REMEMBERED:],
        before.unkept + records if known else before.unkept,
    )


def quarantine(unknown: Context, quarantines: Quarantines, last: Record, why: str) -> Outcome:
    """The context behind the last record that failed, and the alert that says so; `unknown` knows of no topic."""
    if quarantines.times > 1:
        why += f"; failure {quarantines.times} in a row"
    if quarantines.unkept:
        why += f" ({counted(quarantines.unkept, 'record')} not kept in `refused`)"
    header = unknown.header.copy()
    header.feed.quarantined, header.feed.quarantines = why, quarantines
    tx = Transaction(Context(header, unknown.topics), last)
    tx.shows_gauges = True
    return Outcome(tx.finish(), tuple(tx.effects))
