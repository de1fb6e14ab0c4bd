"""Offline partition that gets a leader from its ISR, elected with the others after a broker change.

If all members of an ISR leave at once, only the write shows which one stays in it, and so which one can lead again.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from controller.contract.ids import TopicPartition
from controller.inference.hypotheses.observed_write import Hypothesis, ObservedWrite
from controller.machines import partition_machine
from controller.model.event import EventKind
from controller.rules.states import PartitionState
from controller.transaction.transaction import Transaction

# Events that try to elect a leader for every offline partition.
_TRY_AGAIN: Final = (EventKind.BROKER_CHANGE, EventKind.CONTROLLER_FAILOVER)


def propose(_: Transaction, write: ObservedWrite) -> Iterator[Hypothesis]:
    """Propose that the newest event that tries offline partitions elected it."""
    elected = write.is_next and write.elects_leader and not write.left_isr
    if elected and write.partition.state is PartitionState.OFFLINE:
        yield lambda trial: _elect(trial, write.tp)


def _elect(tx: Transaction, tp: TopicPartition) -> None:
    tried = [(event.kind, event.cause) for event in tx.events.open_events() if event.kind in _TRY_AGAIN]
    tx.events.begin(*(tried[-1] if tried else (EventKind.BROKER_CHANGE, f"partition {tp} can be led again")))
    partition_machine.bring_online(tx, [tp])
