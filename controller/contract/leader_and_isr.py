"""Leader and ISR of a partition, as in Kafka's LeaderAndIsr, which is the content of the partition's state znode."""

from __future__ import annotations

import msgspec

from controller.contract.ids import BrokerId, ControllerEpoch, LeaderEpoch


class LeaderAndIsr(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """Content of a partition's state znode. `partition_epoch` is its data version, -1 in a predicted state."""

    leader: BrokerId
    leader_epoch: LeaderEpoch
    isr: tuple[BrokerId, ...]
    controller_epoch: ControllerEpoch
    partition_epoch: int = -1
    recovering: bool = False

    def same_write(self, other: LeaderAndIsr) -> bool:
        """Return whether leader, leader epoch and ISR are equal, which together identify a controller's write."""
        return self.leader_epoch == other.leader_epoch and self.leader == other.leader and self.isr == other.isr

    def is_refused_in(self, controller_epoch: ControllerEpoch) -> bool:
        """Return whether a ZooKeeper controller of this epoch refuses to change the state, whose epoch is higher.

        This can happen after a rollback, because KRaft wrote its own epoch into the states (KAFKA-20488).
        """
        return self.controller_epoch > controller_epoch
