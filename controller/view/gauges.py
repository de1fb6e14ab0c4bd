"""Gauges of a cluster, in the row that shows its counts, which `view/counting.py` keeps."""

from __future__ import annotations

from collections.abc import Collection
from typing import Final

import msgspec

from controller.contract.gauges_row import ClusterStatus, GaugesRow, Maintenance, PendingEvent
from controller.contract.ids import BrokerId
from controller.contract.row import Stamp
from controller.contract.znodes import ReassignmentEntry
from controller.model.context import FOLLOWING, Header
from controller.model.event import Event
from controller.model.tally import ByBroker
from controller.rules.releases import release_word
from controller.rules.states import PARTITION_WORDS, REPLICA_WORDS, PartitionState
from controller.view.health import never_registered

REASSIGNING: Final = "reassigning"  # the groups of `partition_issues` whose partitions are being reassigned


def replicas_by_broker(header: Header) -> ByBroker:
    """Return the number of replicas on each broker, registered or not."""
    return header.tally.gauges.replicas_on


def common_leader(header: Header, lagging: Collection[BrokerId]) -> BrokerId | None:
    """Return the one leader of all under-replicated partitions, if several followers lag there and nowhere else.

    Then the leader's own connections or disks are the likelier cause than several followers at once.
    """
    led = header.tally.gauges.under_replicated
    if len(led) != 1 or len(lagging) < 2:
        return None
    ((leader, count),) = led.items()
    hosted = replicas_by_broker(header)
    follow_others = all(hosted.get(broker, 0) > count for broker in lagging)
    return leader if count > 1 and leader not in lagging and follow_others else None


def _offline_partitions(header: Header) -> int:
    """Return OfflinePartitionsCount as the cluster's release defines it."""
    counts = header.tally.gauges
    if header.profile.counts_offline_by_state:  # with the leaked partitions of topics removed by hand
        return counts.partitions_in[PartitionState.OFFLINE] + header.deletions.leaked_offline
    return sum(count for leader, count in counts.named_leader.items() if leader not in header.brokers)


def gauges_row(header: Header, stamp: Stamp) -> GaugesRow:
    """Return the gauges of the cluster as they are now."""
    counts, wall_ms = header.tally.gauges, header.wall_ms
    writes, of_last_hour = header.tally.writes, header.tally.writes_of_last_hour(header.time_ms)
    happened = header.tally.happened
    return GaugesRow(
        *stamp,
        ready=header.phase is FOLLOWING,
        session=header.feed.session,
        watch_mode=header.feed.watch_mode,
        controller=header.controller,
        controller_epoch=header.controller_epoch,
        controller_changes=header.former.changes,
        active_brokers=len(header.brokers),
        topics=counts.topics,
        partitions=counts.partitions,
        partitions_by_state=dict(zip(PARTITION_WORDS.values(), counts.partitions_in, strict=True)),
        replicas_by_state=dict(zip(REPLICA_WORDS.values(), counts.replicas_in[1:], strict=True)),
        offline_partitions=_offline_partitions(header),
        leaderless_partitions=counts.leaderless,
        under_replicated_partitions=counts.under_replicated_partitions,
        under_min_isr_partitions=counts.under_min_isr_partitions,
        at_min_isr_partitions=counts.at_min_isr_partitions,
        preferred_replica_imbalance=counts.imbalanced_partitions,
        topics_to_delete=counts.topics_to_delete,
        replicas_to_delete=counts.replicas_to_delete,
        topics_ineligible_to_delete=counts.topics_ineligible_to_delete + len(header.deletions.ineligible_leftovers),
        replicas_ineligible_to_delete=counts.replicas_ineligible_to_delete,
        leaders_by_broker=counts.led_by,
        replicas_by_broker=replicas_by_broker(header),
        under_replicated_by_broker=counts.under_replicated,
        under_min_isr_by_broker=counts.under_min_isr,
        at_min_isr_by_broker=counts.at_min_isr,
        sole_in_sync_by_broker=counts.sole_in_sync,
        reassigning_partitions=sum(
            group.count for key, group in header.tally.issues.items() if key.startswith(REASSIGNING)
        ),
        pending_writes=sum(event.writes_due for event in header.events.values()),
        records=happened.records,
        elections=happened.elections,
        isr_changes=happened.isr_changes,
        refused=happened.refused,
        divergences=happened.divergences,
        writes=msgspec.structs.asdict(writes),
        writes_of_last_hour=msgspec.structs.asdict(of_last_hour),
        agreement=writes.agreement,
        agreement_of_last_hour=of_last_hour.agreement,
        inferences=happened.inferences,
        status=status_of(header),
        inferred_events=happened.inferred_events,
        ensemble=header.ensemble.newest,
        reactions=header.reactions.by_event,
        slowest_reactions=header.reactions.slowest,
        maintenance=tuple(
            Maintenance(window.brokers, window.until_ms, window.reason)
            for window in header.maintenance
            if window.until_ms > wall_ms
        ),
    )


_NAMED_EVENTS: Final = 50
_NAMED_ENTRIES: Final = 200  # each takes some 60 bytes of every heartbeat's row


def status_of(header: Header) -> ClusterStatus:
    """Return the facts beside the counts that decide the controller's next steps."""
    term, configuration = header.term, header.configuration
    pending = [event for event in header.events.values() if event.writes_due]
    return ClusterStatus(
        read_ms=header.read.began_ms,
        acts=header.acting,
        term_epoch=term.epoch,
        term_broker=term.broker,
        duplicate_topic_ids=term.duplicate_topic_ids,
        reassign=_first(header.triggers.reassign),
        preferred=_first(header.triggers.preferred),
        reassign_unwatched=header.triggers.reassign_unwatched,
        poisoned=dict(header.former.poisoned),
        shutting_down=header.shutdowns.under_way,
        never_registered=tuple(b for b in sorted(replicas_by_broker(header)) if never_registered(header, b)),
        pending=tuple(map(_pending, pending[:_NAMED_EVENTS])),
        release=release_word(header.profile.release) if configuration.profile_is_set else "",
        evidence=msgspec.structs.asdict(configuration.evidence),
        settings=configuration.given,
        dynamic_settings=configuration.dynamic,
    )


def _first(entries: tuple[ReassignmentEntry, ...] | None) -> tuple[ReassignmentEntry, ...] | None:
    return None if entries is None else entries[:_NAMED_ENTRIES]


def _pending(event: Event) -> PendingEvent:
    return PendingEvent(event.id, event.kind.value, event.cause, event.zxid, event.time_ms, event.writes_due)
