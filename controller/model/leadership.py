"""Leader and ISR of a partition (its state znode), and the controller's planned actions that change them.

A write is an intent. It records the controller's knowledge at the decision, and leaves the value open. A partition's
predicted value is its pending writes folded over its state in ZooKeeper, so an ISR change that lands in between needs
no repair. State changes and requests that belong between two writes are queued between them. They take the state that
ZooKeeper then shows.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import lru_cache
from typing import ClassVar, Union

import msgspec

from controller.contract.ids import NO_LEADER, BrokerId, ControllerEpoch, LeaderEpoch, PartitionId
from controller.contract.leader_and_isr import LeaderAndIsr
from controller.contract.znodes import StateZnode
from controller.rules.election import (
    Elected,
    Strategy,
    elect_for_controlled_shutdown,
    elect_for_reassignment,
    elect_offline,
    elect_preferred,
)
from controller.rules.states import ReplicaState

LEADER_DURING_DELETE = BrokerId(-2)  # in UpdateMetadata, makes brokers drop the partition from their metadata
EPOCH_DURING_DELETE = LeaderEpoch(-2)  # in StopReplica, in place of a leader epoch
NO_EPOCH = LeaderEpoch(-1)
_OFFLINE = Strategy.OFFLINE

# After a broker failure the same choice is made for many partitions, and several times for each.
_elect_offline = lru_cache(1 << 15)(elect_offline)


class PlannedAction(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """Planned action of the controller, with its event, its batch in the event, and its ordinal."""

    writes: ClassVar[bool] = False  # read for thousands of actions, three times as fast as isinstance
    is_entry: ClassVar[bool] = False  # whether the action is an entry of a request

    event: int
    at_batch: int
    ordinal: int

    def apply(self, value: LeaderAndIsr | None, controller_epoch: ControllerEpoch) -> LeaderAndIsr | None:  # noqa: ARG002
        """Return the value after the action, None without a write."""
        return None


class Write(PlannedAction, frozen=True, array_like=True, gc=False):
    """Planned write of a partition's state. It is skipped if the state needs no change."""

    writes: ClassVar[bool] = True


class Create(Write, frozen=True, array_like=True, tag=1, gc=False):
    """First state of a new partition, led by the first live replica with all live replicas in sync."""

    isr: tuple[BrokerId, ...]

    def apply(self, value: LeaderAndIsr | None, controller_epoch: ControllerEpoch) -> LeaderAndIsr | None:
        """Return the first state, None if the partition has a state already, which the controller never overwrites."""
        return None if value else LeaderAndIsr(self.isr[0], LeaderEpoch(0), self.isr, controller_epoch)


class Elect(Write, frozen=True, array_like=True, tag=2, gc=False):
    """Leader election, with the controller's knowledge at its beginning.

    `online` are the candidates that count as live for the strategy (registered ones for a controlled shutdown).
    """

    strategy: Strategy
    candidates: tuple[BrokerId, ...]
    online: tuple[BrokerId, ...]
    shutting_down: tuple[BrokerId, ...] = ()
    allow_unclean: bool = False

    def choose(self, isr: tuple[BrokerId, ...]) -> Elected | None:
        """Return the result of the election for this ISR."""
        if self.strategy is _OFFLINE:
            return _elect_offline(self.candidates, isr, self.online, allow_unclean=self.allow_unclean)
        if self.strategy is Strategy.REASSIGN:
            return elect_for_reassignment(self.candidates, isr, self.online)
        if self.strategy is Strategy.PREFERRED:
            return elect_preferred(self.candidates, isr, self.online)
        return elect_for_controlled_shutdown(self.candidates, isr, self.online, self.shutting_down)

    def apply(self, value: LeaderAndIsr | None, controller_epoch: ControllerEpoch) -> LeaderAndIsr | None:
        """Return the elected leader with its ISR, None if no replica can be elected."""
        elected = self.choose(value.isr) if value is not None else None
        if value is None or elected is None:
            return None
        recovering = elected.unclean or value.recovering
        return LeaderAndIsr(
            elected.leader, LeaderEpoch(value.leader_epoch + 1), elected.isr, controller_epoch, recovering=recovering
        )


class RemoveFromIsr(Write, frozen=True, array_like=True, tag=3, gc=False):
    """Removal of an offline replica from the ISR. The last member stays, but no longer leads."""

    replica: BrokerId
    empties: bool = False  # up to 1.0: the last member leaves too where unclean elections are allowed

    def apply(self, value: LeaderAndIsr | None, controller_epoch: ControllerEpoch) -> LeaderAndIsr | None:
        """Return the value without the replica, None if the ISR lacks the replica."""
        if value is None or self.replica not in value.isr:
            return None
        leader = NO_LEADER if value.leader == self.replica else value.leader
        last_stays = len(value.isr) == 1 and not self.empties
        isr = value.isr if last_stays else tuple([member for member in value.isr if member != self.replica])
        return LeaderAndIsr(
            leader, LeaderEpoch(value.leader_epoch + 1), isr, controller_epoch, recovering=value.recovering
        )


class BumpLeaderEpoch(Write, frozen=True, array_like=True, tag=4, gc=False):
    """Increment of the leader epoch alone, so that the brokers accept a changed replica list."""

    def apply(self, value: LeaderAndIsr | None, controller_epoch: ControllerEpoch) -> LeaderAndIsr | None:
        """Return the same value under the next leader epoch."""
        if value is None:
            return None
        epoch = LeaderEpoch(value.leader_epoch + 1)
        return LeaderAndIsr(value.leader, epoch, value.isr, controller_epoch, recovering=value.recovering)


class KnownWrite(Write, frozen=True, array_like=True, tag=8, gc=False):
    """Write whose result is already known, such as a due write that a row shows."""

    value: LeaderAndIsr

    def apply(self, value: LeaderAndIsr | None, controller_epoch: ControllerEpoch) -> LeaderAndIsr | None:  # noqa: ARG002
        """Return the known result."""
        return self.value


class StateChange(PlannedAction, frozen=True, array_like=True, tag=5, gc=False):
    """State change of a partition (`replica` None) or one of its replicas.

    `written` changes are part of a write. `value` is the state after that write, once ZooKeeper has shown it.
    """

    replica: BrokerId | None
    from_state: int
    to_state: int
    written: bool = False
    value: LeaderAndIsr | None = None

    @property
    def takes_replica_offline(self) -> bool:
        """Return whether a replica changes to OfflineReplica."""
        return self.replica is not None and self.to_state == ReplicaState.OFFLINE


class StateEntry(PlannedAction, frozen=True, array_like=True, tag=6, gc=False):
    """Partition state in the requests of a batch, which are LeaderAndIsr to some brokers, and UpdateMetadata.

    `value` is that state, once ZooKeeper has shown it. `read` means that the controller read it just before, so that
    its cached state is as new as ZooKeeper's.
    """

    is_entry: ClassVar[bool] = True

    replicas: tuple[BrokerId, ...]
    read: bool
    brokers: tuple[BrokerId, ...]  # receivers of LeaderAndIsr
    new_on: tuple[BrokerId, ...] = ()  # receivers whose replica is new
    adding: tuple[BrokerId, ...] = ()
    removing: tuple[BrokerId, ...] = ()
    offline: tuple[BrokerId, ...] = ()
    deleted: bool = False  # its topic is queued for deletion
    in_metadata: bool = True
    value: LeaderAndIsr | None = None


class StopEntry(PlannedAction, frozen=True, array_like=True, tag=7, gc=False):
    """Partition in a StopReplica request, queued where the request belongs. The controller knew this leader epoch."""

    is_entry: ClassVar[bool] = True

    broker: BrokerId
    delete: bool
    leader_epoch: LeaderEpoch


AnyEntry = Union[StateEntry, StopEntry]  # noqa: UP007 (msgspec needs it at run time on 3.10)
AnyUnwritten = Union[StateChange, StateEntry, StopEntry]  # noqa: UP007
Done = tuple[PartitionId, AnyUnwritten, LeaderAndIsr | None]  # an unwritten action with its partition and its state
AnyAction = Union[  # noqa: UP007
    Create, Elect, RemoveFromIsr, BumpLeaderEpoch, KnownWrite, StateChange, StateEntry, StopEntry
]


def with_cached_state(actions: Iterable[AnyAction], cached: LeaderAndIsr | None) -> tuple[AnyAction, ...]:
    """Return the actions, with the controller's cached state in each entry whose state it did not read."""
    return tuple(
        [
            msgspec.structs.replace(action, value=cached)
            if isinstance(action, StateEntry) and not action.read and action.value is None
            else action
            for action in actions
        ]
    )


def fold(
    actions: Iterable[PlannedAction], zk_state: LeaderAndIsr | None, controller_epoch: ControllerEpoch
) -> LeaderAndIsr | None:
    """Return the value that ZooKeeper will hold once all writes among the actions are done."""
    value = zk_state
    for action in actions:
        if action.writes:
            value = action.apply(value, controller_epoch) or value
    return value


def state_in(znode: StateZnode, version: int) -> LeaderAndIsr:
    """Return the state that a znode of this version shows."""
    recovering = znode.leader_recovery_state == 1
    return LeaderAndIsr(znode.leader, znode.leader_epoch, znode.isr, znode.controller_epoch, version, recovering)
