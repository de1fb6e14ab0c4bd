"""Names and numbers by which rows, records and people name brokers and partitions."""

from __future__ import annotations

from typing import Final, NewType

import msgspec

# Integers of six kinds meet in states, requests and memories. mypy tells them apart.
BrokerId = NewType("BrokerId", int)  # also of a KRaft controller, because both take their ids from one space
PartitionId = NewType("PartitionId", int)  # a partition's number in its topic
LeaderEpoch = NewType("LeaderEpoch", int)  # of a partition, raised by each election
ControllerEpoch = NewType("ControllerEpoch", int)  # of a controller's term, as in /controller_epoch
BrokerEpoch = NewType("BrokerEpoch", int)  # of a broker's registration, the czxid of its znode
Zxid = NewType("Zxid", int)  # of a change in ZooKeeper

# Kafka's and ZooKeeper's bounds.
INT32: Final = msgspec.Meta(ge=-(2**31), lt=2**31)
INT64: Final = msgspec.Meta(ge=-(2**63), le=2**63 - 1)

NO_BROKER: Final = BrokerId(-1)
NO_LEADER: Final = BrokerId(-1)
UNKNOWN_ZXID: Final = Zxid(-1)

# Without these topics no consumer group can commit, and no transaction can end.
INTERNAL_TOPICS: Final = frozenset({"__consumer_offsets", "__transaction_state"})


class TopicPartition(msgspec.Struct, frozen=True, order=True, array_like=True, gc=False):
    """Name of a partition."""

    topic: str
    partition: PartitionId

    def __str__(self) -> str:
        return f"{self.topic}-{self.partition}"
