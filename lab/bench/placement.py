"""Placements of a made-up cluster's replicas. The number of distinct replica lists limits the use of caches."""

from __future__ import annotations

import argparse
import random
from dataclasses import dataclass
from enum import Enum
from typing import TYPE_CHECKING, Final, cast

from controller.rules.placement import place_replicas

if TYPE_CHECKING:  # benchmarks also run older checkouts, which lack this module
    from controller.contract.ids import BrokerId

PARTITIONS_A_TOPIC: Final = 100
REPLICATION_FACTOR: Final = 3

Replicas = tuple[int, ...]


class Placement(Enum):
    """Ways in which replicas came to be where they are."""

    KAFKA = "kafka"  # each topic was created by Kafka, with a start and a shift of its own
    RANDOM = "random"  # after Cruise Control, or after years of reassignments
    BLOCKS = "blocks"  # three neighbours, with almost no two equal lists


@dataclass(frozen=True, slots=True)
class Shape:
    """Placement and number of brokers of a made-up cluster. The default is the worst realistic one."""

    placement: Placement = Placement.RANDOM
    brokers: int = 100
    seed: int = 0  # of one of several clusters

    def replica_lists(self, partitions: int) -> list[Replicas]:
        """Return the replicas of every partition, topic by topic, equal in each run."""
        drawn = random.Random(partitions + self.seed)
        brokers = range(self.brokers)
        match self.placement:
            case Placement.RANDOM:
                return [tuple(drawn.sample(brokers, REPLICATION_FACTOR)) for _ in range(partitions)]
            case Placement.KAFKA:
                lists: list[Replicas] = []
                while len(lists) < partitions:
                    start_index, shift = drawn.randrange(self.brokers), drawn.randrange(self.brokers)
                    size = min(PARTITIONS_A_TOPIC, partitions - len(lists))
                    ring = dict.fromkeys(cast("list[BrokerId]", list(brokers)))
                    lists += place_replicas(
                        ring, size, REPLICATION_FACTOR, start_index=start_index, shift=shift
                    ).values()
                return lists
            case Placement.BLOCKS:
                places = range(REPLICATION_FACTOR)
                return [tuple((at * 7 + place) % self.brokers for place in places) for at in range(partitions)]

    def __str__(self) -> str:
        return f"{self.brokers} brokers, {self.placement.value} placement"


WORST: Final = Shape()


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add `--placement` and `--brokers`."""
    parser.add_argument(
        "--placement", choices=[placement.value for placement in Placement], default=WORST.placement.value
    )
    parser.add_argument("--brokers", type=int, default=WORST.brokers, metavar="N")


def shape_of(asked: argparse.Namespace) -> Shape:
    """Return the shape that the options ask for."""
    return Shape(Placement(asked.placement), asked.brokers)
