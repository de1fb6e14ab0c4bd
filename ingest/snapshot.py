"""The complete read: every znode that gets records, in few requests.

Here belongs which znodes there are; what a reading means for readers is `tree`'s business.
"""

from __future__ import annotations

from ingest.observations import Value
from ingest.paths import PARENTS, SINGLE_ZNODES, TOPICS, partitions_path, state_path
from ingest.zookeeper import WatchedZooKeeper


def read_everything(zookeeper: WatchedZooKeeper) -> dict[str, Value]:
    """The value of each recorded znode that exists; raises ConnectionLostError.

    Not of one moment: with the watches set before, what changes meanwhile comes as events.
    """
    children = zookeeper.read_children(PARENTS)
    below_parents = [f"{parent}/{child}" for parent in PARENTS for child in children.get(parent, [])]
    topics = children.get(TOPICS, [])
    partitions = zookeeper.read_children([partitions_path(topic) for topic in topics])
    states = [
        state_path(topic, partition) for topic in topics for partition in partitions.get(partitions_path(topic), [])
    ]
    values = zookeeper.read_values([*SINGLE_ZNODES, *below_parents, *states]).values
    return {path: value for path, value in values.items() if value is not None}
