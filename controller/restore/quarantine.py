"""Quarantine of a cluster whose records could not be applied. Its state is dropped until a complete read comes in.

Records are kept only of the first failure at each place in the code. Otherwise a cluster that fails at every complete
read would fill the output `refused`. The caller applies records, catches the failure and requests complete reads.
"""

from __future__ import annotations

from typing import Final

from controller.contract.records import Record
from controller.model.context import Context
from controller.model.published_rows import RowKinds
from controller.model.watch_state import Quarantines
from controller.transaction.conclusion import Conclusion, Outcome
from controller.transaction.transaction import Transaction
from wording.sentences import counted

# Twice the longest time between two requests for a complete read (`streaming/sources/newest_complete_reads.py`). A
# cluster that fails at each of these has not stopped failing.
_OVER_AFTER_MS: Final = 2 * 3_600_000

_PLACES_REMEMBERED: Final = 16


def quarantines_with(before: Quarantines, records: int, last: Record, place: str) -> Quarantines:
    """Return the cluster's failures with one more, of this number of records at this place in the code."""
    if last.observed_ms - before.last_ms > _OVER_AFTER_MS:
        before = Quarantines()
    is_kept = place in before.kept
    return Quarantines(
        before.times + 1,
        last.observed_ms,
        before.kept if is_kept else (*before.kept, place)[-_PLACES_REMEMBERED:],
        before.unkept + records if is_kept else before.unkept,
    )


def quarantine(unknown: Context, quarantines: Quarantines, last: Record, why: str) -> Outcome:
    """Return the context after the last failed record, with its alert. `unknown` is a context without topics."""
    if quarantines.times > 1:
        why += f", failure {quarantines.times} in a row"
    if quarantines.unkept:
        why += f". {counted(quarantines.unkept, 'record', 'is')} not kept in `refused`"
    header = unknown.header.copy()
    header.feed.quarantined, header.feed.quarantines = why, quarantines
    return Conclusion(Transaction(Context(header, unknown.topics), last, RowKinds(gauges=True))).finish()
