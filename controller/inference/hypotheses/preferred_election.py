"""Preferred replica that leads again, by the automatic rebalance or by a request to the API.

From 1.1 to 2.1 an election of a replica that leads already is written too. No recording has one.
"""

from __future__ import annotations

from collections.abc import Iterator

from controller.events.replica_leader_election import preferred
from controller.inference.hypotheses.observed_write import Hypothesis, ObservedWrite
from controller.rules import timing
from controller.transaction.transaction import Transaction


def propose(_: Transaction, write: ObservedWrite) -> Iterator[Hypothesis]:
    """Propose that the preferred replica was elected, and the ISR stayed."""
    leads = write.elects_leader and write.partition.replicas[:1] == (write.written.leader,)
    if write.is_next and leads and not write.left_isr:
        yield lambda trial: preferred(trial, write.tp)


def propose_in_vain(tx: Transaction, write: ObservedWrite) -> Iterator[Hypothesis]:
    """Propose an election of the preferred replica that leads already.

    Up to 2.1 it increments the leader epoch.
    """
    # A request that could not be read. A write may be its consequence.
    requested_lately = not tx.header.has_passed(timing.REQUEST_CONSEQUENCE, tx.header.triggers.preferred_asked_ms)
    if requested_lately and write.is_next and not (write.moves_leader or write.left_isr):
        yield lambda trial: preferred(trial, write.tp)
