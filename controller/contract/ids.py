"""Names and numbers by which rows, records and people name brokers and partitions."""

from __future__ import annotations

from typing import Final, NewType

import msgspec

# Epochs of three kinds meet in states, requests and memories, all of them integers. mypy tells them apart.
LeaderEpoch = NewType("LeaderEpoch", int)  # of a partition: each election raises it
ControllerEpoch = NewType("ControllerEpoch", int)  # of a controller's term, as in /controller_epoch
BrokerEpoch = NewType("BrokerEpoch", int)  # of a broker's registration: the czxid of its znode

NO_BROKER: Final = -1
NO_LEADER: Final = -1


class TopicPartition(msgspec.Struct, frozen=True, order=True, array_like=True, gc=False):
    """Name of a partition."""

    topic: str
    partition: int

    def __str__(self) -> str:
        return f"{self.topic}-{self.partition}"
