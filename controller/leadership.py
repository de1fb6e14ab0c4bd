"""What a partition's state znode says, and what the controller is about to write into it.

Here belongs the value (`LeaderAndIsr`), the intents and how an intent changes a value. An intent is data: it holds
what the controller knew when it decided, never the value that results. A partition's predicted value is its pending
intents folded over the value that ZooKeeper confirmed, so an ISR change that lands in between needs no repair.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Union

import msgspec

from controller.election import (
    Elected,
    Strategy,
    elect_for_controlled_shutdown,
    elect_for_reassignment,
    elect_offline,
    elect_preferred,
)
from controller.states import PartitionState

NO_LEADER = -1


class LeaderAndIsr(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """The content of a partition's state znode; `partition_epoch` is its data version, -1 while only predicted."""

    leader: int
    leader_epoch: int
    isr: tuple[int, ...]
    controller_epoch: int
    partition_epoch: int = -1
    recovering: bool = False

    def same_write(self, other: LeaderAndIsr) -> bool:
        """Whether both say the same about leader, leader epoch and ISR: the identity of a controller's write."""
        return self.leader_epoch == other.leader_epoch and self.leader == other.leader and self.isr == other.isr


class _Intent(msgspec.Struct, frozen=True, array_like=True, kw_only=True, gc=False):
    """What every intent has: the event that decided it, and its place among that event's effects."""

    event: int
    ordinal: int


class Create(_Intent, frozen=True, array_like=True, kw_only=True, tag=1, gc=False):
    """The first state of a new partition: the first live replica leads, all live replicas are in sync."""

    isr: tuple[int, ...]


class Elect(_Intent, frozen=True, array_like=True, kw_only=True, tag=2, gc=False):
    """A leader election, with what the controller knew when it began.

    `online` are the candidates that count as alive for the strategy (registered ones for a controlled shutdown).
    """

    strategy: Strategy
    from_state: PartitionState
    candidates: tuple[int, ...]
    online: tuple[int, ...]
    shutting_down: tuple[int, ...] = ()
    allow_unclean: bool = False

    def choose(self, isr: tuple[int, ...]) -> Elected | None:
        """The election's result for this ISR."""
        if self.strategy is Strategy.OFFLINE:
            return elect_offline(self.candidates, isr, self.online, allow_unclean=self.allow_unclean)
        if self.strategy is Strategy.REASSIGN:
            return elect_for_reassignment(self.candidates, isr, self.online)
        if self.strategy is Strategy.PREFERRED:
            return elect_preferred(self.candidates, isr, self.online)
        return elect_for_controlled_shutdown(self.candidates, isr, self.online, self.shutting_down)


class Remove(_Intent, frozen=True, array_like=True, kw_only=True, tag=3, gc=False):
    """A replica that goes offline leaves the ISR; the last member stays, but no longer leads."""

    replica: int
    from_state: int  # the ReplicaState it left


class Bump(_Intent, frozen=True, array_like=True, kw_only=True, tag=4, gc=False):
    """The leader epoch alone grows, so that the brokers accept a changed replica list."""


Intent = Union[Create, Elect, Remove, Bump]  # noqa: UP007 (msgspec needs it at run time on 3.10)


def apply(intent: Intent, value: LeaderAndIsr | None, controller_epoch: int) -> LeaderAndIsr | None:
    """The value after the intent's write; None where it would write nothing."""
    if isinstance(intent, Create):
        return None if value else LeaderAndIsr(intent.isr[0], 0, intent.isr, controller_epoch)
    if value is None:
        return None
    epoch = value.leader_epoch + 1
    if isinstance(intent, Elect):
        elected = intent.choose(value.isr)
        if elected is None:
            return None
        recovering = elected.unclean or value.recovering
        return LeaderAndIsr(elected.leader, epoch, elected.isr, controller_epoch, recovering=recovering)
    if isinstance(intent, Remove):
        if intent.replica not in value.isr:
            return None
        leader = NO_LEADER if value.leader == intent.replica else value.leader
        isr = value.isr if len(value.isr) == 1 else tuple(member for member in value.isr if member != intent.replica)
        return LeaderAndIsr(leader, epoch, isr, controller_epoch, recovering=value.recovering)
    return LeaderAndIsr(value.leader, epoch, value.isr, controller_epoch, recovering=value.recovering)


def fold(pending: Iterable[Intent], confirmed: LeaderAndIsr | None, controller_epoch: int) -> LeaderAndIsr | None:
    """The value that ZooKeeper will hold once all pending intents are written."""
    value = confirmed
    for intent in pending:
        value = apply(intent, value, controller_epoch) or value
    return value
