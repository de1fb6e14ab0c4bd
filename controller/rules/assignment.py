"""Replica assignment of a partition, with the replicas that a reassignment adds and removes.

The arithmetic of KIP-455 (Kafka 2.4 to 3.9, `ReplicaAssignment`).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Final

import msgspec

from controller.contract.ids import BrokerId, PartitionId
from controller.contract.znodes import TopicZnode


class ReplicaAssignment(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """Replicas of a partition, the new ones first while it is being reassigned."""

    replicas: tuple[BrokerId, ...]
    adding: tuple[BrokerId, ...] = ()
    removing: tuple[BrokerId, ...] = ()

    @property
    def origin(self) -> tuple[BrokerId, ...]:
        """Return the replicas before the reassignment, in their present order.

        The former order of shared replicas is lost.
        """
        return _without(self.replicas, self.adding)

    @property
    def target(self) -> tuple[BrokerId, ...]:
        """Return the replicas once the reassignment is complete."""
        return _without(self.replicas, self.removing)

    @property
    def is_being_reassigned(self) -> bool:
        """Return whether any replica is still being added or removed. A mere change of order is no reassignment."""
        return bool(self.adding or self.removing)

    def reassign_to(self, target: Sequence[BrokerId]) -> ReplicaAssignment:
        """Return the first assignment on the way to a target, also during another reassignment.

        Of the present replicas only the origin counts. The additions of a superseded reassignment are dropped.
        """
        origin = self.origin
        replicas = tuple(dict.fromkeys((*target, *origin)))
        return ReplicaAssignment(
            replicas=replicas, adding=_without(replicas, origin), removing=_without(replicas, target)
        )


UNNAMED: Final = ReplicaAssignment(())  # of a partition that its topic's znode lacks


def _without(replicas: Sequence[BrokerId], others: Iterable[BrokerId]) -> tuple[BrokerId, ...]:
    left = Counter(others)  # as in Scala's `diff`, one occurrence removes one, because a znode may name a broker twice
    kept = []
    for replica in replicas:
        if left[replica]:
            left[replica] -= 1
        else:
            kept.append(replica)
    return tuple(kept)


def assignment_in(znode: TopicZnode, number: PartitionId) -> ReplicaAssignment:
    """Return the assignment of a partition in a topic's znode."""
    return ReplicaAssignment(
        distinct(znode.partitions.get(number, ())),
        znode.adding_replicas.get(number, ()),
        znode.removing_replicas.get(number, ()),
    )


def distinct(replicas: tuple[BrokerId, ...]) -> tuple[BrokerId, ...]:
    """Return the replicas, of which a broker that is listed twice counts once."""
    return replicas if len(set(replicas)) == len(replicas) else tuple(dict.fromkeys(replicas))
