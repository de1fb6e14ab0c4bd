"""The preferred replica leads again: the automatic rebalance elected it, or somebody asked by the API.

From 1.1 to 2.1 an election of a replica that leads already is written too; no recording has one.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from controller.events.replica_leader_election import preferred
from controller.inference.hypotheses.observed_write import Hypothesis, ObservedWrite
from controller.transaction.transaction import Transaction

# How long after a request that nobody could read a write may be its consequence.
_CONSEQUENCE_MS: Final = 5_000


def propose(_: Transaction, write: ObservedWrite) -> Iterator[Hypothesis]:
    """The partition's preferred replica was elected, and all stayed in the ISR."""
    if write.is_next and write.moves_leader and not write.left_isr:
        yield lambda trial: preferred(trial, write.tp)


def propose_in_vain(tx: Transaction, write: ObservedWrite) -> Iterator[Hypothesis]:
    """The preferred replica was elected that leads already: up to 2.1 that costs the partition a leader epoch."""
    asked_lately = tx.header.time_ms - tx.header.triggers.preferred_asked_ms <= _CONSEQUENCE_MS
    if asked_lately and write.is_next and not (write.moves_leader or write.left_isr):
        yield lambda trial: preferred(trial, write.tp)
