"""A shop's cluster: its topics, and the hosts and racks of its brokers."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final, NamedTuple

from lab.record.filling import NewTopic

LONG_NAME: Final = "a-topic-whose-name-is-as-long-as-kafka-allows." * 5 + "and-ends-after-249."


class Size(NamedTuple):
    """Size of a new topic, with its partitions, replicas each, and min.insync.replicas."""

    partitions: int
    replicas: int = 3
    min_insync: int = 2


SHOP: Final[Mapping[str, Size]] = {
    "ledger": Size(6, 3, 3),
    "shop.orders": Size(24),
    "payments": Size(12),
    "__consumer_offsets": Size(50),
    "tmp_scratch": Size(8, 1, 1),
}


def topics_of(sizes: Mapping[str, Size], brokers: int) -> Iterator[NewTopic]:
    """Yield the topics, whose replicas go round the brokers."""
    for first, (name, size) in enumerate(sizes.items()):
        assignment = {
            number: [(first + number * 7 + at) % brokers + 1 for at in range(size.replicas)]
            for number in range(size.partitions)
        }
        yield NewTopic(name, assignment, {"min.insync.replicas": str(size.min_insync)})


def place_of(broker_id: int, racks: int) -> tuple[str, str]:
    """Return the broker's host and rack. Brokers go round the racks."""
    return f"kafka-{broker_id}.example", f"eu-{(broker_id - 1) % racks + 1}"
