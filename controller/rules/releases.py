"""Differences between Kafka's releases as switches, and the release that a cluster's znodes show.

The controller's code asks for a switch, never for a version.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from types import MappingProxyType
from typing import Final

import msgspec

from controller.rules.states import REPLICA_VALID_PREVIOUS, ReplicaState

Release = tuple[int, int]

# The controller does KEY from release VALUE on.
SINCE: Final[Mapping[str, Release]] = MappingProxyType(
    {
        "fences_writes": (2, 1),  # KAFKA-6082
        "retires_partitions_at_deletion_start": (2, 1),
        "shutdown_sends_to_leaving_broker": (2, 1),  # KAFKA-7482
        "notices_bounces": (2, 2),  # KAFKA-7235
        "sends_broker_epochs": (2, 2),  # KIP-380
        "spares_known_metadata": (2, 2),  # KAFKA-7537
        "skips_preferred_that_lead": (2, 2),
        "sends_to_live_brokers_only": (2, 2),
        "removes_offline_replicas_at_failover": (2, 3),  # KAFKA-3143
        "groups_stopped_replicas": (2, 3),  # KAFKA-8294
        "ineligible_from_offline": (2, 3),
        "reassigns_in_topic_znode": (2, 4),  # KIP-455
        "bump_refreshes_cache": (2, 4),  # KAFKA-9212
        "forgets_reassignments": (0, 11),  # KAFKA-5310
        "offlines_every_leaderless": (1, 0),
        "sends_new_and_offline_replicas": (1, 0),  # KIP-112, KIP-113
        "keeps_last_isr_member": (1, 1),  # KAFKA-5642 (before, only if unclean election is not allowed)
        "rewrites_preferred_that_lead": (1, 1),  # KAFKA-5642
        "shutdown_elects_among_live": (1, 1),  # KAFKA-5642
        "failover_drops_reassignments_of_queued_topics": (1, 1),
        "sends_cached_state_to_new_replicas": (1, 1),  # KAFKA-5642
        "offlines_stateless_replicas": (2, 0),  # KAFKA-6650
        "retries_topics_made_unclean": (2, 1),
        "shutdown_spares_queued_topics": (2, 2),
        "replicates_without_adding": (2, 5),
        "updates_metadata_on_every_failure": (3, 1),  # KAFKA-13225
        "flags_each_stopped_replica": (2, 6),  # KIP-570
        "sends_topic_ids": (2, 8),  # KIP-516
        "closes_at_once": (3, 2),
        "sends_recovery_states": (3, 2),  # KIP-704
        "caps_min_isr": (3, 7),  # KAFKA-15583: min.insync.replicas counts up to the replication factor
        "adding_replicas_are_new": (2, 7),  # KAFKA-10314
        "hears_isr_changes_at_once": (2, 7),  # AlterIsr, from IBP 2.7-IV2 on
    }
)
CAPPED_SINCE: Final = SINCE["caps_min_isr"]
OLDEST: Final[Release] = (0, 10)
NEWEST: Final[Release] = (3, 9)


class Profile(msgspec.Struct, frozen=True, array_like=True):
    """Behaviour of a release's controller, with one switch for each difference from another release."""

    release: Release
    fences_writes: bool  # a deposed controller's next write ends in an exception
    retires_partitions_at_deletion_start: bool  # before, at the deletion's end
    shutdown_sends_to_leaving_broker: bool
    notices_bounces: bool
    sends_broker_epochs: bool
    spares_known_metadata: bool  # UpdateMetadata about brokers alone has no partitions (before, it had all)
    skips_preferred_that_lead: bool
    sends_to_live_brokers_only: bool
    removes_offline_replicas_at_failover: bool
    groups_stopped_replicas: bool  # in a StopReplica for each broker (before, a request for each replica)
    ineligible_from_offline: bool  # a replica whose deletion cannot start waits as ineligible
    reassigns_in_topic_znode: bool
    bump_refreshes_cache: bool
    forgets_reassignments: bool  # when the controller resigns (before, its process resumes them in its next term)
    offlines_every_leaderless: bool  # after a broker failure (before, only the partitions that it led)
    sends_new_and_offline_replicas: bool  # `isNew` in LeaderAndIsr, `offlineReplicas` in UpdateMetadata
    keeps_last_isr_member: bool
    rewrites_preferred_that_lead: bool  # in a preferred election (before, these had no write)
    shutdown_elects_among_live: bool  # and sends only to live brokers, until `shutdown_sends_to_leaving_broker`
    failover_drops_reassignments_of_queued_topics: bool  # as a controller also does when the znode is written
    sends_cached_state_to_new_replicas: bool  # before, the controller read the state again for them
    offlines_stateless_replicas: bool  # replicas of partitions without a state (before, that was refused)
    retries_topics_made_unclean: bool  # at once (before, with the next broker startup or failover)
    shutdown_spares_queued_topics: bool
    replicates_without_adding: bool  # a partition counts as replicated without the replicas that are being added
    updates_metadata_on_every_failure: bool  # before, only after a failure that left no partition without a leader
    flags_each_stopped_replica: bool  # and gives its leader epoch (before, replicas to delete have their own request)
    sends_topic_ids: bool
    sends_recovery_states: bool
    closes_at_once: bool  # a broker that shuts down (before, it waits for threads that wake up once a second)
    caps_min_isr: bool
    adding_replicas_are_new: bool
    hears_isr_changes_at_once: bool  # before, the controller's cached state lags until leaders notify it

    @property
    def hears_edits_of_triggers(self) -> bool:
        """Return whether an edit of the reassignment or preferred election znode counts as new, as up to 1.0."""
        return self.release < (1, 1)

    @property
    def rebalances_while_reassigning(self) -> bool:
        """Return whether the automatic rebalance runs while partitions are being reassigned (from 3.4, KAFKA-10149)."""
        return self.release >= (3, 4)

    @property
    def tools_ask_a_broker(self) -> bool:
        """Return whether Kafka's tools learn the brokers only from a broker. Up to 2.8 they can also read ZooKeeper."""
        return self.release >= (3, 0)

    @property
    def counts_offline_by_state(self) -> bool:
        """Return whether OfflinePartitionsCount counts partitions in state Offline, from 2.1 on.

        Earlier releases count partitions of dead leaders.
        """
        return self.release >= (2, 1)

    @property
    def fails_on_an_empty_controller(self) -> bool:
        """Return whether an empty /controller is an exception to the controller, which stays active.

        Up to 2.0 it resigns. Seen on 1.1, 2.0, 2.2, 2.3, 2.4, 2.8 and 3.9.
        """
        return self.release >= (2, 2)

    def replica_valid_previous(self, target: ReplicaState) -> frozenset[ReplicaState]:
        """Return the states that a replica may leave for the target."""
        if target is ReplicaState.DELETION_INELIGIBLE and not self.ineligible_from_offline:
            return frozenset({ReplicaState.DELETION_STARTED})
        return REPLICA_VALID_PREVIOUS[target]


@lru_cache(None)
def profile_of(release: Release) -> Profile:
    """Return the profile of a release."""
    return Profile(release, **{switch: release >= since for switch, since in SINCE.items()})


class Evidence(msgspec.Struct, frozen=True, array_like=True):
    """Versions in a cluster's znodes that show the release of their writer. Each version only ever grows."""

    controller_version: int = 0  # the highest "version" in /controller
    broker_version: int = 0  # in /brokers/ids/N
    topic_version: int = 0  # in /brokers/topics/T
    registers_in_two_steps: int = 0  # 1: a fresh registration already has data version 1
    notifies_isr_changes: int = 0  # 1: an isr_change_N was seen
    feature_version: int = 0  # in /feature, which a controller writes from 2.7 on, as version 2 from IBP 3.3-IV0 on
    finalizes_features: int = 0  # 1: enabled in /feature, from IBP 2.7-IV0 on

    @lru_cache(1 << 7)  # noqa: B019 (evidence is a small value, and a cluster has few)
    def releases(self) -> tuple[Release, Release]:
        """Return the oldest and newest release that write znodes of these versions, the newest without evidence.

        The version of a topic's znode, and the existence of /feature, follow the writer's binary. The versions of a
        broker's znode and of /feature follow its inter.broker.protocol.version.
        """
        if self == Evidence():
            return NEWEST, NEWEST
        spans = [
            (self.controller_version >= 2, ((3, 4), NEWEST)),
            (self.feature_version >= 2, ((3, 3), (3, 3))),
            (self.topic_version >= 3, ((2, 8), (3, 3))),
            (self.broker_version >= 5 or self.feature_version >= 1, ((2, 7), (2, 7))),
            (self.topic_version >= 2, ((2, 4), (2, 6))),
            (self.registers_in_two_steps >= 1, ((2, 2), (2, 3))),
        ]
        return next((span for seen, span in spans if seen), ((1, 1), (2, 1)))

    @lru_cache(1 << 7)  # noqa: B019 (as for `releases`)
    def profile(self) -> Profile:
        """Return the profile of the oldest release that writes znodes of these versions, from 3.4 on of the newest."""
        oldest, newest = self.releases()
        profile = profile_of(newest if oldest == (3, 4) else oldest)
        if self.notifies_isr_changes or (self.feature_version and not self.finalizes_features):
            return msgspec.structs.replace(profile, hears_isr_changes_at_once=False)
        return profile


def least_release(broker_version: int, *, in_two_steps: bool) -> Release:
    """Return the oldest release, by inter.broker.protocol.version, that registers a broker with a znode like this."""
    seen = Evidence(broker_version=broker_version, registers_in_two_steps=int(in_two_steps))
    oldest, _ = seen.releases()
    return oldest if oldest > (1, 1) else OLDEST


def release_word(release: Release) -> str:
    """Return the release as Kafka writes it, like 2.8."""
    return ".".join(map(str, release))


@lru_cache(1 << 7)
def read_release(text: str) -> Release:
    """Return the release that the text names, like 2.8 or 3.9.2. Raise ValueError."""
    parts = text.strip().split(".")
    if len(parts) < 2 or not all(part.isascii() and part.isdigit() for part in parts):
        raise ValueError(f"{text!r} is no Kafka release. Give one like 2.8 or 3.9.2")
    release = (int(parts[0]), int(parts[1]))
    if not OLDEST <= release <= NEWEST:
        raise ValueError(
            f"Kafka {text} has no ZooKeeper controller that Kontrast knows. Give a release from 0.10 to 3.9"
        )
    return release
