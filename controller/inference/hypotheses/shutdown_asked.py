"""A live broker leaves an ISR: it asked to be shut down, for the first time or once more (ControlledShutdown).

The request itself is never seen; its first write shows it.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

from controller.events.controlled_shutdown import ask
from controller.inference.hypotheses.observed_write import Hypothesis, ObservedWrite
from controller.transaction.transaction import Transaction


def propose(tx: Transaction, write: ObservedWrite) -> Iterator[Hypothesis]:
    """A broker that left the ISR asked to be shut down."""
    for broker in sorted(write.left_isr.intersection(tx.header.brokers)) if write.is_next else ():
        yield partial(ask, broker=broker)
