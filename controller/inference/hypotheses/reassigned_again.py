"""Leader epoch that grows alone, because the partition was reassigned to its present replicas."""

from __future__ import annotations

from collections.abc import Iterator

from controller.events import partition_reassignment
from controller.inference.hypotheses.observed_write import Hypothesis, ObservedWrite
from controller.model.event import EventKind
from controller.transaction.transaction import Transaction


def propose(_: Transaction, write: ObservedWrite) -> Iterator[Hypothesis]:
    """Propose a reassignment requested by the API that completed at once."""
    if write.is_next and not (write.moves_leader or write.left_isr):
        yield lambda trial: _reassign(trial, write)


def _reassign(tx: Transaction, write: ObservedWrite) -> None:
    tx.events.begin(EventKind.API_PARTITION_REASSIGNMENT, f"partition {write.tp} was reassigned to the replicas it has")
    partition_reassignment.run(tx, write.tp, write.partition.assignment)
