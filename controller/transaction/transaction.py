"""Transaction, with its parts, and trials of another explanation.

The machines and event handlers that are given a transaction, or a part of it, decide on the changes. `conclusion`
publishes, judges and counts them.
"""

from __future__ import annotations

from controller.contract.records import Record
from controller.model.context import Context
from controller.model.mutable_state import MutableState
from controller.model.published_rows import EVERY_CHANGE, PublishedRows, Shown
from controller.transaction.certainty import Certainty
from controller.transaction.pending_events import PendingEvents
from controller.transaction.pending_requests import PendingRequests


class Transaction:
    """One step in progress, with the state, the rows so far, the events in flight, their requests, their certainty."""

    __slots__ = ("certainty", "events", "header", "requests", "rows", "state")

    def __init__(self, context: Context, record: Record, shown: Shown = EVERY_CHANGE) -> None:
        state, rows = MutableState(context, record, judges_all=shown.judges_all), PublishedRows(record, shown)
        self._compose(state, rows, PendingEvents(state, rows))

    def _compose(self, state: MutableState, rows: PublishedRows, events: PendingEvents) -> None:
        self.state, self.header, self.rows, self.events = state, state.header, rows, events
        self.requests = PendingRequests(state, rows, events)
        self.certainty = Certainty(state, events, self.requests)

    def fork(self) -> Transaction:
        """Return a trial copy of this transaction, whose changes do not affect this one."""
        trial = Transaction.__new__(Transaction)
        state, rows = self.state.fork(), self.rows.fork()
        trial._compose(state, rows, self.events.fork(state, rows))
        return trial

    def adopt(self, trial: Transaction) -> None:
        """Take over the changes of a trial. Every part stays the same object, because handlers refer to it."""
        self.state.adopt(trial.state)
        self.rows.effects = trial.rows.effects
        self.events.adopt(trial.events)
