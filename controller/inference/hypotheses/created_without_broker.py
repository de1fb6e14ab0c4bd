"""A topic is created without a live broker: that broker had asked to be shut down before.

Where it leads nothing and is in no ISR, no other write shows that it asked.
"""

from __future__ import annotations

from collections.abc import Iterator

from controller.events import controlled_shutdown
from controller.inference.deferral import is_created_by
from controller.inference.hypotheses.observed_write import Hypothesis, ObservedWrite
from controller.machines import partition_creation
from controller.model.event import Event
from controller.model.leadership import Create
from controller.transaction.transaction import Transaction


def propose(tx: Transaction, write: ObservedWrite) -> Iterator[Hypothesis]:
    """The brokers that are missing asked to be shut down before the topic was created."""
    event, missing = missing_brokers(tx, write)
    if event is not None and not event.first_write_ms:
        yield lambda trial: _create_without(trial, trial.open_event(event.id), missing)


def missing_brokers(tx: Transaction, write: ObservedWrite) -> tuple[Event | None, set[int]]:
    """The live brokers that a partition was created without, with the event that creates it; None where none is."""
    create = next((step for step in write.partition.queue if isinstance(step, Create)), None)
    if write.before is not None or create is None:
        return None, set()
    missing = set(create.isr) - set(write.written.isr)
    if not missing or not missing <= set(tx.header.brokers):
        return None, set()
    return tx.open_event(create.event), missing


def _create_without(tx: Transaction, event: Event, leaving: set[int]) -> None:
    tps = [tp for tp in tx.waiting(event) if is_created_by(tx, tp, event)]
    tx.undo(event)
    for broker in sorted(leaving):
        controlled_shutdown.ask(tx, broker)
    tx.begin(event.kind, event.cause)
    partition_creation.create(tx, tps)
