"""Gauges of a cluster: what each partition adds to them, and the row that shows them.

By Kafka's definitions (`KafkaController.updateMetrics`, `ReplicaManager`, 3.9). Counts are kept as partitions change,
so that a total never needs a walk over all of them.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from functools import lru_cache
from typing import Final

import msgspec

from controller.contract.gauges_row import GaugesRow, Maintenance
from controller.contract.problem import UNUSABLE
from controller.contract.row import Stamp
from controller.model.context import FOLLOWING, Header
from controller.model.tally import EVENTS_INFERRED, INFERRED, CountingRules
from controller.model.topics import InTopic, Partition, Topic, Topics
from controller.rules.states import PartitionState, ReplicaState
from controller.view.cluster_status import status_of
from controller.view.health import is_under_replicated, needed_in_sync

_PARTITION_STATE: Final = {state: f"partitions/{state.word}" for state in PartitionState}
_REPLICA_STATE: Final = {state: f"replicas/{state.word}" for state in ReplicaState}

REASSIGNING: Final = "reassigning"  # the groups of `partition_issues` whose partitions are being reassigned

# A broker that received StopReplica with delete does not count the replica any more.
_DELETED_ON_DISK: Final = (ReplicaState.DELETION_STARTED, ReplicaState.DELETION_SUCCESSFUL)

Keys = tuple[str, ...]
_LEADERLESS: Final[Mapping[bool, Keys]] = {False: (), True: ("leaderless",)}

# What a partition adds follows from few facts, which most partitions share.
_REMEMBERED: Final = 1 << 15


def keys_of_partition(topic: Topic, partition: Partition, rules: CountingRules) -> Keys:
    """Counts to which the partition adds one, some of them more than once."""
    return _hosting(topic, partition) + _leading(topic, partition, rules)


def _hosting(topic: Topic, partition: Partition) -> Keys:
    states = tuple(partition.replica_states.items())
    return _by_replicas(partition.state, partition.replicas, states, topic.queued_for_deletion)


def _leading(topic: Topic, partition: Partition, rules: CountingRules) -> Keys:
    value, leaderless = partition.zk_state, partition.problem in UNUSABLE
    if value is None:
        return _LEADERLESS[leaderless]
    needed = topic.min_insync_replicas
    keys = _by_leadership(
        value.leader, value.isr, partition.replicas, partition.adding, needed, topic.queued_for_deletion, rules
    )
    return keys + _LEADERLESS[True] if leaderless else keys


def _hosted_alike(before: Partition, after: Partition) -> bool:
    same_replicas = before.replicas is after.replicas and before.replica_states is after.replica_states
    return same_replicas and before.state is after.state


@lru_cache(_REMEMBERED)
def _by_replicas(
    state: PartitionState, replicas: tuple[int, ...], states: tuple[tuple[int, ReplicaState], ...], queued: bool
) -> Keys:
    deleted = {replica for replica, replica_state in states if replica_state in _DELETED_ON_DISK}
    keys = [_PARTITION_STATE[state]]
    keys += [f"replicas_by_broker/{replica}" for replica in replicas if replica not in deleted]
    for _, replica_state in states:
        keys.append(_REPLICA_STATE[replica_state])
        if queued and replica_state is not ReplicaState.DELETION_SUCCESSFUL:
            keys.append("replicas_to_delete")
        if queued and replica_state is ReplicaState.DELETION_INELIGIBLE:
            keys.append("replicas_ineligible_to_delete")
    return tuple(keys)


@lru_cache(_REMEMBERED)
def _by_leadership(  # noqa: PLR0913 (all that decides it)
    leader: int,
    isr: tuple[int, ...],
    replicas: tuple[int, ...],
    adding: tuple[int, ...],
    needed: int | None,
    queued: bool,
    rules: CountingRules,
) -> Keys:
    keys = ["partitions"]
    if not queued:  # Kafka leaves topics that are being deleted out of these counts
        keys += [f"by_leader/{leader}", *_preferred(leader, isr, replicas, adding, rules)]
        keys += [f"sole_in_sync_by_broker/{isr[0]}"] if len(isr) == 1 else []
    if leader < 0:
        return tuple(keys)  # without a leader it is in no broker's count
    keys.append(f"leaders_by_broker/{leader}")
    excused = len(adding) if rules.adding_need_not_follow else 0
    lacking = ["under_replicated"] if is_under_replicated(len(isr), len(replicas), excused) else []
    margin = len(isr) - needed_in_sync(needed, leader, len(replicas), rules)
    if margin <= 0:
        lacking.append("at_min_isr" if margin == 0 else "under_min_isr")
    for key in lacking:
        keys += [key, f"{key}_by_broker/{leader}"]
    return tuple(keys)


def _preferred(
    leader: int, isr: tuple[int, ...], replicas: tuple[int, ...], adding: tuple[int, ...], rules: CountingRules
) -> Keys:
    if not replicas:
        return ()
    preferred = replicas[0]
    # A replica that is being added counts only once it is in sync, whichever replica leads.
    may_lag = rules.adding_need_not_lead and preferred in adding
    imbalanced = preferred in isr if may_lag else leader != preferred
    keys = (f"preferred_by_broker/{preferred}",)
    return (*keys, "imbalanced", f"imbalanced_by_broker/{preferred}") if imbalanced else keys


def keys_of_topic(topic: Topic) -> Keys:
    """Counts to which the topic itself adds one."""
    if not topic.exists:
        return ()
    more = {
        "topics_to_delete": topic.queued_for_deletion,
        "topics_ineligible_to_delete": topic.ineligible,
        "topics_with_id": topic.topic_id is not None,
    }
    return ("topics", *(key for key, adds in more.items() if adds))


@lru_cache(_REMEMBERED)
def _changes(gone: Keys, come: Keys) -> tuple[tuple[str, int], ...]:
    """Difference of each count."""
    changes = Counter(come)
    changes.subtract(gone)
    return tuple((key, by) for key, by in changes.items() if by)


class GaugeCounts:
    """Counts of a cluster while a transaction changes them; they are copied at the first change."""

    __slots__ = ("_rules", "_owned", "counts")

    def __init__(self, counts: dict[str, int], rules: CountingRules) -> None:
        self.counts = counts
        self._rules = rules
        self._owned = False

    def recount_topic(self, before: Topic | None, after: Topic | None) -> None:
        """Replace what a topic added before the transaction by what it adds after it."""
        self._replace(keys_of_topic(before) if before else (), keys_of_topic(after) if after else ())

    def recount(self, before: InTopic, after: InTopic) -> None:
        """Replace what a partition added before the transaction by what it adds after it; both depend on its topic."""
        (then, was), (now, is_) = before, after
        if (
            then
            and was
            and now
            and is_
            and then.queued_for_deletion is now.queued_for_deletion
            and _hosted_alike(was, is_)
        ):
            self._replace(_leading(then, was, self._rules), _leading(now, is_, self._rules))
        else:
            gone = keys_of_partition(then, was, self._rules) if then and was else ()
            self._replace(gone, keys_of_partition(now, is_, self._rules) if now and is_ else ())

    def _replace(self, gone: Keys, come: Keys) -> None:
        if gone is come:
            return
        changes = _changes(gone, come)
        if changes and not self._owned:
            self.counts, self._owned = self.counts.copy(), True
        counts = self.counts
        for key, by in changes:
            counts[key] = count = counts.get(key, 0) + by
            if not count:
                del counts[key]


def count_gauges(topics: Topics, rules: CountingRules) -> dict[str, int]:
    """All counts, from a walk over all partitions."""
    alike: Counter[Keys] = Counter()
    for _, topic in topics:
        alike[keys_of_topic(topic)] += 1
        for partition in topic.partitions.values():
            alike[_hosting(topic, partition)] += 1
            alike[_leading(topic, partition, rules)] += 1
    gauge_counts: Counter[str] = Counter()
    for keys, times in alike.items():
        for key in keys:
            gauge_counts[key] += times
    return dict(gauge_counts)


def _part(counts: Mapping[str, int], prefix: str) -> dict[str, int]:
    return {key[len(prefix) :]: count for key, count in counts.items() if key.startswith(prefix) and count}


def _by_broker(counts: Mapping[str, int], prefix: str) -> dict[int, int]:
    at = len(prefix)
    return {int(key[at:]): count for key, count in counts.items() if key.startswith(prefix) and count}


def replicas_by_broker(header: Header) -> dict[int, int]:
    """Number of replicas on each broker, registered or not."""
    return _by_broker(header.tally.gauges, "replicas_by_broker/")


def _offline_partitions(header: Header) -> int:
    """OfflinePartitionsCount as the cluster's release defines it."""
    counts = header.tally.gauges
    if header.profile.counts_offline_by_state:  # with the leaked ones of topics removed by hand
        return counts.get(_PARTITION_STATE[PartitionState.OFFLINE], 0) + header.deletions.leaked_offline
    led = _by_broker(counts, "by_leader/")
    return sum(count for leader, count in led.items() if leader not in header.brokers)


def gauges_row(header: Header, stamp: Stamp) -> GaugesRow:
    """Gauges of the cluster as they are now."""
    counts, wall_ms = header.tally.gauges, header.wall_ms
    writes, of_last_hour = header.tally.writes, header.tally.writes_of_last_hour(header.time_ms)
    states = {state.word: counts.get(key, 0) for state, key in _PARTITION_STATE.items()}
    return GaugesRow(
        *stamp,
        ready=header.phase is FOLLOWING,
        session=header.feed.session,
        watch_mode=header.feed.watch_mode,
        controller=header.controller,
        controller_epoch=header.controller_epoch,
        controller_changes=header.former.changes,
        active_brokers=len(header.brokers),
        topics=counts.get("topics", 0),
        partitions=counts.get("partitions", 0),
        partitions_by_state=states,
        replicas_by_state={state.word: counts.get(key, 0) for state, key in _REPLICA_STATE.items()},
        offline_partitions=_offline_partitions(header),
        leaderless_partitions=counts.get("leaderless", 0),
        under_replicated_partitions=counts.get("under_replicated", 0),
        under_min_isr_partitions=counts.get("under_min_isr", 0),
        at_min_isr_partitions=counts.get("at_min_isr", 0),
        preferred_replica_imbalance=counts.get("imbalanced", 0),
        topics_to_delete=counts.get("topics_to_delete", 0),
        replicas_to_delete=counts.get("replicas_to_delete", 0),
        topics_ineligible_to_delete=counts.get("topics_ineligible_to_delete", 0)
        + len(header.deletions.ineligible_leftovers),
        replicas_ineligible_to_delete=counts.get("replicas_ineligible_to_delete", 0),
        leaders_by_broker=_by_broker(counts, "leaders_by_broker/"),
        replicas_by_broker=replicas_by_broker(header),
        under_replicated_by_broker=_by_broker(counts, "under_replicated_by_broker/"),
        under_min_isr_by_broker=_by_broker(counts, "under_min_isr_by_broker/"),
        at_min_isr_by_broker=_by_broker(counts, "at_min_isr_by_broker/"),
        sole_in_sync_by_broker=_by_broker(counts, "sole_in_sync_by_broker/"),
        reassigning_partitions=sum(
            group.count for key, group in header.tally.issues.items() if key.startswith(REASSIGNING)
        ),
        pending_writes=sum(event.writes_due for event in header.events.values()),
        records=_part(header.tally.happened, "records/"),
        elections=_part(header.tally.happened, "elections/"),
        isr_changes=_part(header.tally.happened, "isr_changes/"),
        refused=header.tally.happened.get("refused", 0),
        divergences=_part(header.tally.happened, "divergences/"),
        writes=msgspec.structs.asdict(writes),
        writes_of_last_hour=msgspec.structs.asdict(of_last_hour),
        agreement=writes.agreement,
        agreement_of_last_hour=of_last_hour.agreement,
        inferences=_part(header.tally.happened, INFERRED),
        status=status_of(header),
        inferred_events=_part(header.tally.happened, EVENTS_INFERRED),
        reactions=header.reactions.by_event,
        slowest_reactions=header.reactions.slowest,
        maintenance=tuple(
            Maintenance(window.brokers, window.until_ms, window.reason)
            for window in header.maintenance
            if window.until_ms > wall_ms
        ),
    )
