"""Notifications in which leaders name partitions with a changed ISR, whose states the controller reads again.

Up to 2.6 leaders write /isr_change_notification, and the controller removes each notification that it has read.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from msgspec.structs import replace

from controller.contract.ids import TopicPartition
from controller.model.context import Header
from controller.model.mutable_state import MutableState
from controller.model.triggers import IsrNotification

# More notifications wait only where no controller reads them.
_NOTIFICATIONS_KEPT: Final = 1_000


def notified(header: Header, name: str, tps: tuple[TopicPartition, ...]) -> None:
    """Handle a leader's notification, a znode of this name. The controller will read these states again."""
    header.witness(notifies_isr_changes=1)
    if len(header.triggers.isr_notifications) < _NOTIFICATIONS_KEPT:
        header.triggers.isr_notifications = {
            **header.triggers.isr_notifications,
            name: IsrNotification(header.time_ms, tps),
        }


def removed(state: MutableState, name: str) -> None:
    """Handle the removal of a notification. The controller has read its states, after all its writes so far."""
    waiting = state.header.triggers.isr_notifications
    if name in waiting:
        state.header.term.note_act(state.header.time_ms)
        states_read(state, waiting[name].partitions)
        state.header.triggers.isr_notifications = {key: other for key, other in waiting.items() if key != name}


def states_read(state: MutableState, tps: Iterable[TopicPartition]) -> None:
    """Refresh the controller's cached states, which it read again after a notification."""
    state.header.witness(notifies_isr_changes=1)
    for tp in tps:
        partition = state.partition(tp)
        if partition is not None and partition.cached is not None:
            state.put_partition(tp, replace(partition, cached=None))
