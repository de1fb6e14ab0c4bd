"""What differs between Kafka's versions, as switches; the code never asks for a version.

Here belongs the table of switches and their values by release. Which profile a cluster has is inferred or set.
"""

from __future__ import annotations

import msgspec

from controller.states import REPLICA_VALID_PREVIOUS, ReplicaState


class Profile(msgspec.Struct, frozen=True, array_like=True):
    """How a controller behaves; the defaults are those of 3.9."""

    name: str = "3.9"
    fences_writes: bool = True  # from 2.1 (KAFKA-6082): what a lost controller was doing ends in an exception
    removes_dead_replicas_at_failover: bool = True  # from 2.3 (KAFKA-3143)
    notices_bounces: bool = True  # from 2.2 (KAFKA-7235)
    hears_isr_changes_by_notification: bool = False  # IBP before 2.7-IV2: its cache lags behind ZooKeeper
    bump_refreshes_cache: bool = True  # from 2.4 (KAFKA-9212)
    retires_partitions_at_deletion_start: bool = True  # from 2.1; before, at the end
    ineligible_from_offline: bool = True  # from 2.3
    skips_preferred_that_lead: bool = True  # from 2.2
    shutdown_tells_leaving_broker: bool = True  # from 2.1 (KAFKA-7482)
    reassigns_in_topic_znode: bool = True  # from 2.4 (KIP-455)
    adding_replicas_are_new: bool = True  # from 2.7 (KAFKA-10314)
    tells_dead_brokers: bool = False  # 1.1 logs requests to brokers that are gone

    def replica_valid_previous(self, target: ReplicaState) -> frozenset[ReplicaState]:
        """Which states a replica may leave for the target."""
        if target is ReplicaState.DELETION_INELIGIBLE and not self.ineligible_from_offline:
            return frozenset({ReplicaState.DELETION_STARTED})
        return REPLICA_VALID_PREVIOUS[target]


KAFKA_3_9 = Profile()
KAFKA_2_8 = Profile(name="2.8")
KAFKA_2_4 = Profile(name="2.4", hears_isr_changes_by_notification=True, adding_replicas_are_new=False)
KAFKA_1_1 = Profile(
    name="1.1",
    fences_writes=False,
    removes_dead_replicas_at_failover=False,
    notices_bounces=False,
    hears_isr_changes_by_notification=True,
    bump_refreshes_cache=False,
    retires_partitions_at_deletion_start=False,
    ineligible_from_offline=False,
    skips_preferred_that_lead=False,
    shutdown_tells_leaving_broker=False,
    reassigns_in_topic_znode=False,
    adding_replicas_are_new=False,
    tells_dead_brokers=True,
)
