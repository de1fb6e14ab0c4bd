"""Partition of a record's key, as the default partitioner of Kafka's producers computes it (`Utils.murmur2`).

Records without a key go where the producer likes.
"""

from __future__ import annotations

from controller.contract.ids import PartitionId

_SEED = 0x9747B28C
_MULTIPLIER = 0x5BD1E995
_SHIFT = 24
_WORD_BYTES = 4
_WORD_MASK = 0xFFFFFFFF
_POSITIVE_MASK = 0x7FFFFFFF


def partition_for_key(key: bytes, partition_count: int) -> PartitionId:
    """Return the partition of a key's records, as long as the topic keeps its number of partitions.

    Raises ValueError for a topic without partitions.
    """
    if partition_count < 1:
        raise ValueError(f"a key needs a topic with at least one partition, not {partition_count}")
    # The sign bit is masked away. An absolute value would send half of the keys elsewhere.
    return PartitionId((murmur2(key) & _POSITIVE_MASK) % partition_count)


def murmur2(key: bytes) -> int:
    """Return Kafka's 32-bit MurmurHash2 of a key, unsigned (Java shows the same bits as a signed number)."""
    hashed = _SEED ^ len(key)
    tail_at = len(key) - len(key) % _WORD_BYTES
    for at in range(0, tail_at, _WORD_BYTES):
        word = int.from_bytes(key[at : at + _WORD_BYTES], "little") * _MULTIPLIER & _WORD_MASK
        word = (word ^ word >> _SHIFT) * _MULTIPLIER & _WORD_MASK
        hashed = hashed * _MULTIPLIER & _WORD_MASK ^ word
    if tail_at < len(key):
        hashed = (hashed ^ int.from_bytes(key[tail_at:], "little")) * _MULTIPLIER & _WORD_MASK
    hashed = (hashed ^ hashed >> 13) * _MULTIPLIER & _WORD_MASK
    return hashed ^ hashed >> 15
