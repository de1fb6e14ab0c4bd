"""Controller epochs in partitions' states. A ZooKeeper controller elects no leader under an epoch above its own.

Counts are kept as partitions change, and only after a migration to KRaft was seen.
"""

from __future__ import annotations

from collections import Counter
from itertools import islice

from controller.contract.ids import ControllerEpoch
from controller.model.topics import Partition, Topics


def count_state_epochs(topics: Topics) -> dict[ControllerEpoch, int]:
    """Count the partitions by controller epoch, in a walk over all partitions."""
    return dict(
        Counter(
            partition.zk_state.controller_epoch
            for _, topic in topics
            for partition in topic.partitions.values()
            if partition.zk_state is not None
        )
    )


def recounted(
    counts: dict[ControllerEpoch, int], before: Partition | None, after: Partition | None
) -> dict[ControllerEpoch, int]:
    """Return the counts after a change of a partition, the same object if its epoch stays."""
    was, now = _epoch_of(before), _epoch_of(after)
    if was == now:
        return counts
    changed = Counter(counts)
    changed.subtract(() if was is None else (was,))
    changed.update(() if now is None else (now,))
    return dict(+changed)


def never_elected(topics: Topics, epoch: ControllerEpoch, most: int) -> tuple[str, ...]:
    """Return some partitions for which a ZooKeeper controller of this epoch elects no leader."""
    found = (
        f"{name}-{number}"
        for name, topic in sorted(topics)
        for number, partition in topic.partitions.items()
        if partition.zk_state is not None and partition.zk_state.controller_epoch > epoch
    )
    return tuple(islice(found, most))


def _epoch_of(partition: Partition | None) -> ControllerEpoch | None:
    return None if partition is None or partition.zk_state is None else partition.zk_state.controller_epoch
