"""Controller believed to be poisoned (KAFKA-12315) that changes replica states, which disproves the belief.

The end of a term among removals from the ISR shows a poisoned process. Two other cases look the same. One is a process
that restarted while its broker's znode stayed, the other a term that ended there by chance. No recording has one.
"""

from __future__ import annotations

from collections.abc import Iterator

from controller.events import topic_deletion
from controller.events.controller_failover import start_machines
from controller.inference.hypotheses.observed_write import Hypothesis, ObservedWrite
from controller.model.event import EventKind
from controller.transaction.transaction import Transaction


def propose(tx: Transaction, _: ObservedWrite) -> Iterator[Hypothesis]:
    """Propose that it failed over as any other controller does."""
    if tx.header.is_poisoned:
        yield _run_unpoisoned


def _run_unpoisoned(tx: Transaction) -> None:
    header = tx.header
    header.former.forget_poisoned(header.controller)
    tx.events.begin(EventKind.CONTROLLER_FAILOVER, f"broker {header.controller} is not the process that was poisoned")
    start_machines(tx, list(tx.state.topics))
    topic_deletion.resume_all(tx)
