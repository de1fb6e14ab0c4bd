"""IsrChangeNotification: leaders name partitions whose ISR they changed, and the controller reads their states again.

Up to 2.6 leaders write /isr_change_notification; the controller removes what it has read.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from controller.model.topics import TopicPartition
from controller.model.triggers import IsrNotification
from controller.transaction.transaction import Transaction, replace

# So many are remembered: more wait only for a controller that reads none.
_NOTIFICATIONS_KEPT: Final = 1_000


def notified(tx: Transaction, name: str, tps: tuple[TopicPartition, ...]) -> None:
    """Leaders tell the controller of ISR changes that they wrote, by a znode of this name: it will read the states."""
    header = tx.header
    header.witness(notifies_isr_changes=1)
    if len(header.triggers.isr_notifications) < _NOTIFICATIONS_KEPT:
        header.triggers.isr_notifications = {
            **header.triggers.isr_notifications,
            name: IsrNotification(header.time_ms, tps),
        }


def removed(tx: Transaction, name: str) -> None:
    """The controller removed a notification: it has just read the states that it names, behind all it wrote before."""
    waiting = tx.header.triggers.isr_notifications
    if name in waiting:
        states_read(tx, waiting[name].partitions)
        tx.header.triggers.isr_notifications = {key: named for key, named in waiting.items() if key != name}


def states_read(tx: Transaction, tps: Iterable[TopicPartition]) -> None:
    """The controller read these states again, of which leaders had told it."""
    tx.header.witness(notifies_isr_changes=1)
    for tp in tps:
        partition = tx.partition(tp)
        if partition is not None and partition.cached is not None:
            tx.put_partition(tp, replace(partition, cached=None))
