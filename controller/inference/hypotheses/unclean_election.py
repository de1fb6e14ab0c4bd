"""Leader that no election by the settings gives, after a request for an unclean election by the API."""

from __future__ import annotations

from collections.abc import Iterator

from controller.events.replica_leader_election import unclean
from controller.inference.hypotheses.observed_write import Hypothesis, ObservedWrite
from controller.transaction.transaction import Transaction


def propose(_: Transaction, write: ObservedWrite) -> Iterator[Hypothesis]:
    """Propose an unclean election regardless of the settings (ElectLeaders, from Kafka 2.4 on)."""
    if write.is_next and write.elects_leader:
        yield lambda trial: unclean(trial, write.tp)
