"""Notifications in which leaders name partitions with a changed ISR, whose states the controller reads again.

Up to 2.6 leaders write /isr_change_notification. The controller reads the states, sends UpdateMetadata of them to all
brokers, and removes each notification that it has read.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from msgspec.structs import replace

from controller.contract.ids import TopicPartition
from controller.contract.records import Record
from controller.contract.znode_table import ZnodePath
from controller.contract.znodes import NamedPartition, PartitionsZnode, decode
from controller.model.context import Header
from controller.model.event import EventKind
from controller.model.mutable_state import MutableState
from controller.model.triggers import IsrNotification
from controller.transaction.transaction import Transaction, send_update_metadata
from wording.sentences import counted

# More notifications wait only if no controller reads them.
_NOTIFICATIONS_KEPT: Final = 1_000

# The controller removes a notification 3 to 20 ms after it was written. Notifications that waited for a busy or a new
# controller are read together. In 179 recorded reads these had waited for more than a second, and notifications that
# had waited up to 41 ms were read alone.
_READ_TOGETHER_MS: Final = 500


def written(tx: Transaction, where: ZnodePath, record: Record) -> None:
    """Handle a notification. One that cannot be read names no partition. Raise ZnodeError for it."""
    entries: tuple[NamedPartition, ...] = ()
    # The error refuses unreadable content, but such a notification waits for its removal, too.
    try:
        entries = decode(record.content, PartitionsZnode).partitions
    finally:
        tps = tuple(TopicPartition(entry.topic, entry.partition) for entry in entries)
        _notified(tx.header, where.name, IsrNotification(tx.header.time_ms, tps, zxid=record.czxid))


def _notified(header: Header, name: str, notification: IsrNotification) -> None:
    """Handle a leader's notification, a znode of this name. The controller will read these states again."""
    header.witness(notifies_isr_changes=1)
    if len(header.triggers.isr_notifications) < _NOTIFICATIONS_KEPT:
        header.triggers.isr_notifications = {**header.triggers.isr_notifications, name: notification}


def removed(tx: Transaction, name: str) -> None:
    """Handle the removal of a notification. The controller has read its states, after all its writes so far."""
    header, waiting = tx.header, tx.header.triggers.isr_notifications
    if name not in waiting:
        return
    header.term.note_act(header.time_ms)
    states_read(tx.state, waiting[name].partitions)
    if header.acting and header.brokers and not waiting[name].is_published:
        waiting = _published(tx, name)
    header.triggers.isr_notifications = {key: other for key, other in waiting.items() if key != name}


def _published(tx: Transaction, name: str) -> dict[str, IsrNotification]:
    """Send UpdateMetadata of the partitions that the controller read at once, and mark their notifications."""
    waiting = tx.header.triggers.isr_notifications
    together = {
        key: replace(each, is_published=True)
        for key, each in waiting.items()
        if key == name or (not each.is_published and tx.header.time_ms - each.since_ms >= _READ_TOGETHER_MS)
    }
    named = dict.fromkeys(tp for each in together.values() for tp in each.partitions)
    known = [tp for tp in named if (partition := tx.state.partition(tp)) is not None and partition.has_value]
    if known:
        cause = f"leaders notified ISR changes of {counted(len(known), 'partition')}"
        send_update_metadata(tx, EventKind.ISR_CHANGE_NOTIFICATION, cause, known)
    return {**waiting, **together}


def states_read(state: MutableState, tps: Iterable[TopicPartition]) -> None:
    """Refresh the controller's cached states, which it read again after a notification."""
    state.header.witness(notifies_isr_changes=1)
    for tp in tps:
        partition = state.partition(tp)
        if partition is not None and partition.cached is not None:
            state.put_partition(tp, replace(partition, cached=None))
