"""The partition of a record's key, and whether a producer can write there now."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Mapping
from enum import Enum
from typing import Final

import msgspec

from controller.contract.ids import BrokerId, PartitionId, TopicPartition
from controller.contract.problem import UNUSABLE
from controller.rules.partitioner import partition_for_key
from controller.view.health import takes_acks_all
from questions.picture import Picture
from wording.said import Said, line

_LONG_BYTES: Final = 8


class KeyFormat(Enum):
    """Notation of a key, and Kafka's serializer for it."""

    UTF8 = "utf8"  # StringSerializer
    HEX = "hex"  # ByteArraySerializer
    LONG = "long"  # LongSerializer
    UUID = "uuid"  # UUIDSerializer writes the text in lower case, as Java does


class KeyAnswer(msgspec.Struct, frozen=True):
    """The partition of a key, who leads it, and whether it takes a record with acks=all now."""

    topic: str
    partition: PartitionId
    partitions: int  # of the topic. If their number changes, the key moves
    leader: BrokerId | None  # None without a live leader
    takes_acks_1: bool
    takes_acks_all: bool
    reason: str | None  # the partition's problem, if it has one
    as_of_ms: int

    def said(self) -> Said:
        """Yield the key's partition, and whether a producer can write there."""
        yield line(f"the key goes to {self.topic}-{self.partition}, one of {self.partitions} partitions")
        yield line(f"leader: {'none' if self.leader is None else f'broker {self.leader}'}", indent=2)
        for acks, accepted in (("1", self.takes_acks_1), ("all", self.takes_acks_all)):
            yield line(f"acks={acks}: ", ("accepted", "ok") if accepted else ("refused", "page"), indent=2)
        if self.reason is not None:
            yield line(self.reason, indent=2)


def key_bytes(text: str, key_format: KeyFormat) -> bytes:
    """Return the key's bytes as the producer's serializer writes them. Raise ValueError for text of another format."""
    try:
        return _READERS[key_format](text)
    except (ValueError, OverflowError) as error:
        raise ValueError(f"{text!r} is no key of the format {key_format.value}: {_EXPECTED[key_format]}") from error


def explain_key(picture: Picture, topic_name: str, key: bytes) -> KeyAnswer:
    """Return the partition of an existing topic to which Kafka's default partitioner sends the key."""
    topic = picture.topic(topic_name)
    assert topic is not None, f"there is no topic {topic_name}"
    tp = TopicPartition(topic_name, partition_for_key(key, len(topic.partitions)))
    partition = topic.partitions[tp.partition]
    problem, value = partition.problem, partition.zk_state
    is_led = value is not None and problem not in UNUSABLE and not topic.queued_for_deletion
    reason = "its topic is being deleted" if topic.queued_for_deletion else picture.reason(tp)
    return KeyAnswer(
        topic=topic_name,
        partition=tp.partition,
        partitions=len(topic.partitions),
        leader=value.leader if is_led and value is not None else None,
        takes_acks_1=is_led,
        takes_acks_all=takes_acks_all(partition, topic),
        reason=reason,
        as_of_ms=picture.as_of_ms,
    )


def _long(text: str) -> bytes:
    return int(text).to_bytes(_LONG_BYTES, "big", signed=True)


def _uuid(text: str) -> bytes:
    return str(uuid.UUID(text)).encode()


_READERS: Final[Mapping[KeyFormat, Callable[[str], bytes]]] = {
    KeyFormat.UTF8: str.encode,
    KeyFormat.HEX: bytes.fromhex,
    KeyFormat.LONG: _long,
    KeyFormat.UUID: _uuid,
}
_EXPECTED: Final[Mapping[KeyFormat, str]] = {
    KeyFormat.UTF8: "expected text",
    KeyFormat.HEX: "expected two hexadecimal digits a byte, like 00ff",
    KeyFormat.LONG: "expected a whole number of 64 bits",
    KeyFormat.UUID: "expected one like 123e4567-e89b-12d3-a456-426614174000",
}
