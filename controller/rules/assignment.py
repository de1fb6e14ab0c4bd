"""Replica assignment of a partition, with the replicas that a reassignment adds and removes.

The arithmetic of KIP-455 (Kafka 2.4 to 3.9, `ReplicaAssignment`).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence

import msgspec


class ReplicaAssignment(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """Replicas of a partition, the new ones first while it is being reassigned."""

    replicas: tuple[int, ...]
    adding: tuple[int, ...] = ()
    removing: tuple[int, ...] = ()

    @property
    def origin(self) -> tuple[int, ...]:
        """Replicas before the reassignment, in their present order: the former order of replicas it shares is lost."""
        return _without(self.replicas, self.adding)

    @property
    def target(self) -> tuple[int, ...]:
        """Replicas once the reassignment is complete."""
        return _without(self.replicas, self.removing)

    @property
    def is_being_reassigned(self) -> bool:
        """Whether any replica is still being added or removed; a change of order alone is no reassignment."""
        return bool(self.adding or self.removing)

    def reassign_to(self, target: Sequence[int]) -> ReplicaAssignment:
        """First assignment on the way to a target, also where another reassignment is still running.

        Only the origin counts of the present replicas: those that a superseded reassignment was adding are dropped.
        """
        origin = self.origin
        replicas = tuple(dict.fromkeys((*target, *origin)))
        return ReplicaAssignment(
            replicas=replicas, adding=_without(replicas, origin), removing=_without(replicas, target)
        )


def _without(replicas: Sequence[int], others: Iterable[int]) -> tuple[int, ...]:
    left = Counter(others)  # as in Scala's `diff`, one occurrence takes away one: a znode may name a broker twice
    kept = []
    for replica in replicas:
        if left[replica]:
            left[replica] -= 1
        else:
            kept.append(replica)
    return tuple(kept)
