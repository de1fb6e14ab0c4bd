"""Live broker that leaves an ISR, because its current controlled shutdown reaches the partition only now.

The shutdown had passed the partition over while no other replica was in sync.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

from controller.events.controlled_shutdown import is_under_way, reach_late
from controller.inference.hypotheses.observed_write import Hypothesis, ObservedWrite
from controller.transaction.transaction import Transaction


def propose(tx: Transaction, write: ObservedWrite) -> Iterator[Hypothesis]:
    """Propose that the shutdown attempt of a broker that left the ISR reaches the partition."""
    for broker in write.live_that_left_isr(tx.header.brokers) if write.is_next else ():
        if is_under_way(tx.header, broker):
            yield partial(reach_late, broker=broker, tp=write.tp)
