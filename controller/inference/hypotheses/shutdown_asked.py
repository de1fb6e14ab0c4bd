"""Live broker that leaves an ISR: it sent ControlledShutdown, for the first time or again.

The request itself is never seen; its first write shows it.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

from controller.events.controlled_shutdown import ask
from controller.inference.hypotheses.observed_write import Hypothesis, ObservedWrite
from controller.transaction.transaction import Transaction


def propose(tx: Transaction, write: ObservedWrite) -> Iterator[Hypothesis]:
    """Propose that a broker that left the ISR sent ControlledShutdown."""
    for broker in write.live_that_left_isr(tx.header.brokers) if write.is_next else ():
        yield partial(ask, broker=broker)
