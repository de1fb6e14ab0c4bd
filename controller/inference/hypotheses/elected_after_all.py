"""An offline partition gets a leader out of its ISR: it was elected with the others after a change of brokers.

Who stays in an ISR when all its members leave at once shows only as it is written, and with it who can lead again.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from controller.inference.hypotheses.observed_write import Hypothesis, ObservedWrite
from controller.machines import partition_machine
from controller.model.event import EventKind
from controller.model.topics import TopicPartition
from controller.rules.states import PartitionState
from controller.transaction.transaction import Transaction

# The events after which every partition without a leader is tried again.
_TRY_AGAIN: Final = (EventKind.BROKER_CHANGE, EventKind.CONTROLLER_FAILOVER)


def propose(_: Transaction, write: ObservedWrite) -> Iterator[Hypothesis]:
    """It was elected by the newest event that tries offline partitions."""
    elected = write.is_next and write.moves_leader and not write.left_isr
    if elected and write.partition.state is PartitionState.OFFLINE:
        yield lambda trial: _elect(trial, write.tp)


def _elect(tx: Transaction, tp: TopicPartition) -> None:
    tried = [(event.kind, event.cause) for event in tx.open_events() if event.kind in _TRY_AGAIN]
    tx.begin(*(tried[-1] if tried else (EventKind.BROKER_CHANGE, f"partition {tp} can be led again")))
    partition_machine.bring_online(tx, [tp])
