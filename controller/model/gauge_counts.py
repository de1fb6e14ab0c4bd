"""Counts of a cluster's topics, partitions and replicas, which `derived/counting.py` keeps current."""

from __future__ import annotations

from typing import Any

import msgspec

from controller.contract.ids import BrokerId
from controller.rules.states import PartitionState, ReplicaState

ByBroker = dict[BrokerId, int]


class GaugeCounts(msgspec.Struct, array_like=True):
    """Counts by Kafka's definitions. Counts by broker omit brokers without a count."""

    topics: int = 0
    topics_to_delete: int = 0
    topics_ineligible_to_delete: int = 0
    topics_with_id: int = 0
    partitions: int = 0  # with a leader and ISR
    leaderless: int = 0  # without a live leader now, an election due or not
    replicas_to_delete: int = 0
    replicas_ineligible_to_delete: int = 0
    partitions_in: list[int] = msgspec.field(default_factory=lambda: [0] * (max(PartitionState) + 1))  # by state
    replicas_in: list[int] = msgspec.field(default_factory=lambda: [0] * (max(ReplicaState) + 1))  # by state
    replicas_on: ByBroker = {}
    named_leader: ByBroker = {}  # -1 too. Kafka omits topics under deletion from these four
    preferring: ByBroker = {}  # by the preferred leader
    imbalanced: ByBroker = {}  # by the preferred leader, which does not lead
    sole_in_sync: ByBroker = {}  # by the one in-sync replica
    led_by: ByBroker = {}
    under_replicated: ByBroker = {}  # by leader, as are the next two
    at_min_isr: ByBroker = {}
    under_min_isr: ByBroker = {}
    unproven_on: ByBroker = {}  # replicas that need not exist, as of a partition without a state, or being added

    def copy(self) -> GaugeCounts:
        """Return a copy to change."""
        values: tuple[Any, ...] = msgspec.structs.astuple(self)
        copied: list[Any] = [value if isinstance(value, int) else value.copy() for value in values]
        return GaugeCounts(*copied)

    @property
    def by_leadership(self) -> tuple[ByBroker, ...]:
        """Return the counts that follow from the leader and the ISR."""
        return (
            self.named_leader,
            self.preferring,
            self.imbalanced,
            self.sole_in_sync,
            self.led_by,
            self.under_replicated,
            self.at_min_isr,
            self.under_min_isr,
        )

    @property
    def imbalanced_partitions(self) -> int:
        """Return the number of partitions whose preferred replica does not lead."""
        return sum(self.imbalanced.values())

    @property
    def under_replicated_partitions(self) -> int:
        """Return the number of partitions with fewer in-sync replicas than replicas."""
        return sum(self.under_replicated.values())

    @property
    def at_min_isr_partitions(self) -> int:
        """Return the number of partitions with just as many in-sync replicas as acks=all needs."""
        return sum(self.at_min_isr.values())

    @property
    def under_min_isr_partitions(self) -> int:
        """Return the number of partitions with fewer in-sync replicas than acks=all needs."""
        return sum(self.under_min_isr.values())
