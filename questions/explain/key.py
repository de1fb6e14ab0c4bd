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
from questions.question import NotFoundError, Question, Scope
from wording.said import Said, line
from wording.sentences import near


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


class ExplainKey(Question, frozen=True):
    """Find the partition of a producer's key, and whether it accepts writes."""

    answer = KeyAnswer

    topic: str
    key: str
    key_format: KeyFormat = KeyFormat.UTF8

    def __post_init__(self) -> None:
        """Raise ValueError for a key that is not written in its format."""
        key_bytes(self.key, self.key_format)

    def scope(self) -> Scope:
        """Return the topic."""
        return Scope(topics=frozenset({self.topic}))

    def ask(self, picture: Picture) -> KeyAnswer:
        """Return the partition to which Kafka's default partitioner sends the key. Raise NotFoundError."""
        topic = picture.topic(self.topic)
        if topic is None:
            raise NotFoundError(f"there is no topic {self.topic} in cluster {picture.header.cluster}")
        number = partition_for_key(key_bytes(self.key, self.key_format), len(topic.partitions))
        tp, partition = TopicPartition(self.topic, number), topic.partitions[number]
        problem, value = partition.problem, partition.zk_state
        is_led = value is not None and problem not in UNUSABLE and not topic.queued_for_deletion
        return KeyAnswer(
            topic=self.topic,
            partition=number,
            partitions=len(topic.partitions),
            leader=value.leader if is_led and value is not None else None,
            takes_acks_1=is_led,
            takes_acks_all=takes_acks_all(partition, topic),
            reason="its topic is being deleted" if topic.queued_for_deletion else picture.reason(tp),
            as_of_ms=picture.as_of_ms,
        )

    def similar(self, picture: Picture) -> list[str]:
        """Return existing topics with a similar name."""
        return near(self.topic, [name for name, _ in picture.context.topics])


_READERS: Final[Mapping[KeyFormat, Callable[[str], bytes]]] = {
    KeyFormat.UTF8: str.encode,
    KeyFormat.HEX: bytes.fromhex,
    KeyFormat.LONG: lambda text: int(text).to_bytes(8, "big", signed=True),
    KeyFormat.UUID: lambda text: str(uuid.UUID(text)).encode(),
}
_EXPECTED: Final[Mapping[KeyFormat, str]] = {
    KeyFormat.UTF8: "expected text",
    KeyFormat.HEX: "expected two hexadecimal digits a byte, like 00ff",
    KeyFormat.LONG: "expected a whole number of 64 bits",
    KeyFormat.UUID: "expected one like 123e4567-e89b-12d3-a456-426614174000",
}
