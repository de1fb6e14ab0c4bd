"""Live broker that leaves an ISR, because it sent ControlledShutdown, for the first time or again.

ZooKeeper never shows the request itself, only its first write. The last member of an ISR stays in it. If the partition
has no leader, as in a topic under deletion, the write repeats the state (`removeReplicasFromIsr`, all releases).
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

from controller.events.controlled_shutdown import ask
from controller.inference.hypotheses.observed_write import Hypothesis, ObservedWrite
from controller.transaction.transaction import Transaction


def propose(tx: Transaction, write: ObservedWrite) -> Iterator[Hypothesis]:
    """Propose that a broker that left the ISR, or is offline as its last member, sent ControlledShutdown."""
    offline = write.left_isr | write.kept_as_last_in_isr if write.is_next else set()
    for broker in sorted(offline.intersection(tx.header.brokers)):
        yield partial(ask, broker=broker)
