"""Placement of new partitions' replicas on brokers (Kafka 3.9 `AdminUtils.assignReplicasToBrokers`).

It works with racks and without. Kafka draws the start index and the shift at random unless it is given one number for
both. Here they are always arguments, so that a placement can be computed again.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from enum import Enum
from itertools import zip_longest

from controller.contract.ids import BrokerId, PartitionId


class NoPlacement(Enum):
    """Reason for which Kafka places no replicas. The values are the names of its exceptions."""

    PARTITIONS = "InvalidPartitionsException"
    REPLICATION_FACTOR = "InvalidReplicationFactorException"
    RACKS = "AdminOperationException"


class PlacementError(ValueError):
    """Refusal to place replicas, with its kind, and Kafka's own sentence as the message."""

    def __init__(self, kind: NoPlacement, message: str) -> None:
        super().__init__(message)
        self.kind = kind


def place_replicas(
    brokers: Mapping[BrokerId, str | None],
    partition_count: int,
    replication_factor: int,
    *,
    start_index: int,
    shift: int,
    start_partition_id: int = 0,
) -> dict[PartitionId, tuple[BrokerId, ...]]:
    """Place the replicas of `partition_count` new partitions. Return them by partition id, the preferred leader first.

    `brokers` gives each broker's rack, or None. Without racks the caller's order of the brokers counts. With racks it
    does not. To add partitions to a topic, start at the number that it already has.

    Raises PlacementError.
    """
    _refuse_what_kafka_refuses(brokers, partition_count, replication_factor)
    racks = {broker: rack for broker, rack in brokers.items() if rack is not None}
    ring = _alternate_racks(racks) if racks else tuple(brokers)
    rack_count = len(set(brokers.values()))  # brokers without racks count as one rack
    first_partition = max(0, start_partition_id)
    placed = {}
    for partition in range(first_partition, first_partition + partition_count):
        if partition > 0 and partition % len(ring) == 0:
            shift += 1  # a new round, so that not the same brokers follow the same leaders as in the last round
        first = (partition + start_index) % len(ring)
        candidates = _walk(ring, first, shift * rack_count)
        placed[PartitionId(partition)] = _spread(ring[first], candidates, brokers, rack_count, replication_factor)
    return placed


def _refuse_what_kafka_refuses(
    brokers: Mapping[BrokerId, str | None], partition_count: int, replication_factor: int
) -> None:
    # In Kafka's order. If two things are wrong, the first is named.
    if partition_count <= 0:
        raise PlacementError(NoPlacement.PARTITIONS, "Number of partitions must be larger than 0.")
    if replication_factor <= 0:
        raise PlacementError(NoPlacement.REPLICATION_FACTOR, "Replication factor must be larger than 0.")
    if replication_factor > len(brokers):
        message = f"Replication factor: {replication_factor} larger than available brokers: {len(brokers)}."
        raise PlacementError(NoPlacement.REPLICATION_FACTOR, message)
    if None in brokers.values() and set(brokers.values()) != {None}:
        message = "Not all brokers have rack information for replica rack aware assignment."
        raise PlacementError(NoPlacement.RACKS, message)


def _alternate_racks(racks: Mapping[BrokerId, str]) -> tuple[BrokerId, ...]:
    by_rack: dict[bytes, list[BrokerId]] = {}
    for broker in sorted(racks):
        # Java sorts by UTF-16 code units, Python by code points. They differ beyond the basic plane.
        by_rack.setdefault(racks[broker].encode("utf-16-be", "surrogatepass"), []).append(broker)
    rounds = zip_longest(*(by_rack[rack] for rack in sorted(by_rack)))
    return tuple(broker for one_of_each in rounds for broker in one_of_each if broker is not None)


def _walk(ring: Sequence[BrokerId], first: int, shift: int) -> Iterator[BrokerId]:
    # Endless round of the ring that leaves out the first replica's place.
    while True:
        yield ring[(first + 1 + shift % (len(ring) - 1)) % len(ring)]
        shift += 1


def _spread(
    leader: BrokerId,
    candidates: Iterator[BrokerId],
    racks: Mapping[BrokerId, str | None],
    rack_count: int,
    replication_factor: int,
) -> tuple[BrokerId, ...]:
    replicas, used_racks = [leader], {racks[leader]}
    while len(replicas) < replication_factor:
        broker = next(candidates)
        rack_is_free = racks[broker] not in used_racks or len(used_racks) == rack_count
        if rack_is_free and broker not in replicas:
            replicas.append(broker)
            used_racks.add(racks[broker])
    return tuple(replicas)
