"""A cluster's counts: what each partition adds to them, and the row that shows them.

Here belong Kafka's definitions of its gauges (`KafkaController.updateMetrics`, `ReplicaManager`, 3.9). Counts are kept
as partitions change, so that a total never needs a walk over all of them.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

from controller.context import Header, Phase
from controller.health import UNUSABLE, is_under_replicated
from controller.outputs import GaugesRow
from controller.states import PartitionState, ReplicaState
from controller.topics import Partition, Topic

DEFAULT_MIN_INSYNC_REPLICAS: Final = 1  # Kafka's default of min.insync.replicas

_PARTITION_STATE: Final = {state: f"partitions/{state.word}" for state in PartitionState}
_REPLICA_STATE: Final = {state: f"replicas/{state.word}" for state in ReplicaState}

# A broker that was told to delete its replica does not count it any more.
_DELETED_ON_DISK: Final = (ReplicaState.DELETION_STARTED, ReplicaState.DELETION_SUCCESSFUL)


def counted(topic: Topic, partition: Partition) -> Iterator[str]:
    """The counts to which the partition adds one, some of them more than once."""
    yield _PARTITION_STATE[partition.state]
    for replica in partition.replicas:
        if partition.replica_state(replica) not in _DELETED_ON_DISK:
            yield f"replicas_by_broker/{replica}"
    for state in partition.replica_states.values():
        yield _REPLICA_STATE[state]
        if topic.queued and state is not ReplicaState.DELETION_SUCCESSFUL:
            yield "replicas_to_delete"
        if topic.queued and state is ReplicaState.DELETION_INELIGIBLE:
            yield "replicas_ineligible_to_delete"
    if partition.problem in UNUSABLE:
        yield "leaderless"
    yield from _counted_by_leadership(topic, partition)


def _counted_by_leadership(topic: Topic, partition: Partition) -> Iterator[str]:
    value = partition.confirmed
    if value is None:
        return
    yield "partitions"
    if topic.queued:
        yield f"deleting_by_leader/{value.leader}"
    else:
        yield f"by_leader/{value.leader}"
        yield from _counted_by_preference(partition)
    if value.leader < 0:
        return  # nobody leads it, so it is in no broker's count
    yield f"leaders_by_broker/{value.leader}"
    if is_under_replicated(partition, value):
        yield "under_replicated"
        yield f"under_replicated_by_broker/{value.leader}"
    least = topic.min_insync_replicas or DEFAULT_MIN_INSYNC_REPLICAS
    if len(value.isr) < least:
        yield "under_min_isr"
        yield f"under_min_isr_by_broker/{value.leader}"
    elif len(value.isr) == least:
        yield "at_min_isr"
        yield f"at_min_isr_by_broker/{value.leader}"


def _counted_by_preference(partition: Partition) -> Iterator[str]:
    if partition.replicas:
        yield f"preferred_by_broker/{partition.replicas[0]}"
        if _is_imbalanced(partition):
            yield "imbalanced"
            yield f"imbalanced_by_broker/{partition.replicas[0]}"


def _is_imbalanced(partition: Partition) -> bool:
    value = partition.confirmed
    if value is None or not partition.replicas:
        return False
    preferred = partition.replicas[0]
    # While the preferred replica is still being added it counts only once it is in sync, whoever leads.
    return preferred in value.isr if preferred in partition.adding else value.leader != preferred


def counted_for_topic(topic: Topic) -> Iterator[str]:
    """The counts to which the topic itself adds one."""
    if topic.exists:
        yield "topics"
        if topic.queued:
            yield "topics_to_delete"
        if topic.ineligible:
            yield "topics_ineligible_to_delete"


def _part(counts: Mapping[str, int], prefix: str) -> dict[str, int]:
    return {key[len(prefix) :]: count for key, count in counts.items() if key.startswith(prefix) and count}


def _by_broker(counts: Mapping[str, int], prefix: str) -> dict[int, int]:
    return {int(broker): count for broker, count in _part(counts, prefix).items()}


def _offline_partitions(header: Header) -> int:
    """OfflinePartitionsCount as the cluster's release defines it."""
    counts, release = header.counts, header.profile.release
    if release >= (2, 1):  # those in state Offline, with what a topic removed by hand leaves behind
        return counts.get(_PARTITION_STATE[PartitionState.OFFLINE], 0) + header.leaked_offline
    led = _by_broker(counts, "by_leader/")
    if release < (0, 11):  # up to 0.10.1 topics that are being deleted count too
        deleting = _by_broker(counts, "deleting_by_leader/")
        led = {leader: led.get(leader, 0) + deleting.get(leader, 0) for leader in {*led, *deleting}}
    return sum(count for leader, count in led.items() if leader not in header.brokers)


def gauges_row(header: Header, **stamp: Any) -> GaugesRow:  # noqa: ANN401 (a row's common fields)
    """The cluster's counts as they are now."""
    counts = header.counts
    states = {state.word: counts.get(key, 0) for state, key in _PARTITION_STATE.items()}
    return GaugesRow(
        **stamp,
        ready=header.phase is Phase.FOLLOWING,
        session=header.session,
        watch_mode=header.watch_mode,
        controller=header.controller,
        controller_epoch=header.controller_epoch,
        controller_changes=header.controller_changes,
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
        topics_ineligible_to_delete=counts.get("topics_ineligible_to_delete", 0),
        replicas_ineligible_to_delete=counts.get("replicas_ineligible_to_delete", 0),
        leaders_by_broker=_by_broker(counts, "leaders_by_broker/"),
        replicas_by_broker=_by_broker(counts, "replicas_by_broker/"),
        under_replicated_by_broker=_by_broker(counts, "under_replicated_by_broker/"),
        under_min_isr_by_broker=_by_broker(counts, "under_min_isr_by_broker/"),
        at_min_isr_by_broker=_by_broker(counts, "at_min_isr_by_broker/"),
        pending_writes=sum(event.writes_due for event in header.events.values()),
        records=_part(counts, "records/"),
        elections=_part(counts, "elections/"),
        isr_changes=_part(counts, "isr_changes/"),
        refused=counts.get("refused", 0),
        divergences=_part(counts, "divergences/"),
    )
