"""Names and numbers by which rows, records and people name brokers and partitions."""

from __future__ import annotations

from typing import Final

import msgspec

NO_BROKER: Final = -1
NO_LEADER: Final = -1


class TopicPartition(msgspec.Struct, frozen=True, order=True, array_like=True, gc=False):
    """Name of a partition."""

    topic: str
    partition: int

    def __str__(self) -> str:
        return f"{self.topic}-{self.partition}"
