"""Topic created without a live broker, because that broker had sent ControlledShutdown before.

If the broker leads no partition and is in no ISR, no other write shows its request.
"""

from __future__ import annotations

from collections.abc import Iterator

from controller.contract.ids import BrokerId
from controller.events import controlled_shutdown
from controller.inference.deferral import is_created_by
from controller.inference.hypotheses.observed_write import Hypothesis, ObservedWrite
from controller.machines import partition_creation
from controller.model.event import Event
from controller.model.leadership import Create
from controller.transaction.transaction import Transaction


def propose(tx: Transaction, write: ObservedWrite) -> Iterator[Hypothesis]:
    """Propose that the missing brokers sent ControlledShutdown before the topic was created."""
    event, missing = missing_brokers(tx, write)
    if event is not None and not event.first_write_ms:
        yield lambda trial: _create_without(trial, trial.events.open_event(event.id), missing)


def missing_brokers(tx: Transaction, write: ObservedWrite) -> tuple[Event | None, set[BrokerId]]:
    """Return the live brokers that a partition was created without, if any, and the event that creates it."""
    create = next((action for action in write.partition.queue if isinstance(action, Create)), None)
    if write.before is not None or create is None:
        return None, set()
    missing = set(create.isr) - set(write.written.isr)
    if not missing or not missing <= set(tx.header.brokers):
        return None, set()
    return tx.events.open_event(create.event), missing


def _create_without(tx: Transaction, event: Event, leaving: set[BrokerId]) -> None:
    tps = [tp for tp in tx.certainty.waiting(event) if is_created_by(tx.state, tp, event)]
    tx.requests.undo(event.id)
    for broker in sorted(leaving):
        controlled_shutdown.ask(tx, broker)
    tx.events.begin(event.kind, event.cause)
    partition_creation.create(tx, tps)
